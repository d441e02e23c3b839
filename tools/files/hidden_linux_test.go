package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// A command that swaps links and folders while a tool works gets nothing hidden
// shown, and neither does another name of it.
func TestHidesSecretsUnderEveryName(t *testing.T) {
	dir, words := t.TempDir(), "hidden words"
	toolstest.Write(t, dir, map[string]string{"conf/cred": words, "vault/inner": words, "pub/cred": "public"})
	must.Do(t, os.Link(filepath.Join(dir, "conf/cred"), filepath.Join(dir, "second")))
	all := files.New(files.Options{Dir: toolstest.Folder(t, dir), View: toolstest.Hiding(t, dir, "conf/cred", "vault")})
	p := resolver{dir: dir, d: &tools.Dispatcher{Registry: tools.New(all...), Outputs: new(tools.Outputs)}}
	toolstest.SwapLinks(t, filepath.Join(dir, "way"), "conf", "pub", "vault", ".")
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
