package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// A command that swaps links and folders while a tool works gets nothing hidden
// shown, and neither does another name of it.
func TestWhatIsHiddenIsShownUnderNoName(t *testing.T) {
	dir, words := t.TempDir(), "hidden words"
	for _, name := range []string{"conf/cred", "vault/inner"} {
		write(t, filepath.Join(dir, name), words)
	}
	write(t, filepath.Join(dir, "pub/cred"), "public")
	if err := os.Link(filepath.Join(dir, "conf/cred"), filepath.Join(dir, "second")); err != nil {
		t.Fatal(err)
	}
	p := hiding(t, dir, "conf/cred", "vault")
	stop := swapLinks(t, filepath.Join(dir, "way"), "conf", "pub", "vault", ".")
	defer stop()
	for range 40 {
		for _, call := range []struct{ tool, arguments string }{
			{"read_file", `{"file_path":"way/cred"}`},
			{"read_file", `{"file_path":"way/inner"}`},
			{"read_file", `{"file_path":"second"}`},
			{"grep_files", `{"pattern":"hidden","path":"way"}`},
			{"grep_files", `{"pattern":"hidden","path":"way/cred"}`},
			{"grep_files", `{"pattern":"hidden"}`},
			{"list_dir", `{"dir_path":"way","depth":3}`},
			{"view_image", `{"path":"way/cred"}`},
		} {
			result := p.d.Dispatch(t.Context(), []tools.Call{{ID: "1", Name: call.tool, Input: call.arguments}})[0]
			if found := !result.Failed && call.tool == "grep_files" && !strings.Contains(result.Output, "No matches"); found || strings.Contains(result.Output, words) || strings.Contains(result.Output, "inner\n") {
				t.Fatalf("%s %s: %s", call.tool, call.arguments, result.Output)
			}
		}
	}
}

// hiding is a working directory of which a run hides paths.
func hiding(t *testing.T, dir string, paths ...string) place {
	t.Helper()
	o := sandbox.Options{Network: sandbox.NetworkNone, Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: dir, Scratch: t.TempDir()}}
	for _, path := range paths {
		o.DenyRead = append(o.DenyRead, filepath.Join(dir, path))
	}
	view := func() (*grants.View, error) { return sandbox.NewView(o, sandbox.LevelFull) }
	registry := tools.New(files.New(files.Options{Dir: toolstest.Folder(t, dir), View: sync.OnceValues(view)})...)
	return place{dir: dir, d: &tools.Dispatcher{Registry: registry, Outputs: new(tools.Outputs)}}
}

// swapLinks lets a link lead to one target after the other until stop is called.
func swapLinks(t *testing.T, link string, targets ...string) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				_ = os.Symlink(targets[i%len(targets)], link+".next")
				_ = os.Rename(link+".next", link)
			}
		}
	}()
	return func() { close(end); <-ended }
}
