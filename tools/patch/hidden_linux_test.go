package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

const hiddenWords = "hidden words\n"

// hiding is a workplace of which a run hides conf/cred and vault.
func hiding(t *testing.T, name string) workplace {
	t.Helper()
	var view func() (*grants.View, error)
	w := newWorkplace(t, patch.Options{View: func() (*grants.View, error) { return view() }})
	for _, name := range []string{"conf/cred", "vault/inner"} {
		w.put(t, name, hiddenWords)
	}
	w.put(t, "pub/cred", "public\n")
	if err := os.Link(filepath.Join(w.dir, "conf/cred"), filepath.Join(w.dir, name)); err != nil {
		t.Fatal(err)
	}
	o := sandbox.Options{
		Network: sandbox.NetworkNone,
		Folders: grants.Folders{
			Mode: grants.WorkspaceWrite, Workspace: w.dir, Scratch: t.TempDir(), DenyRead: []string{filepath.Join(w.dir, "conf/cred"), filepath.Join(w.dir, "vault"), filepath.Join(w.dir, "none/there")},
		},
	}
	view = sync.OnceValues(func() (*grants.View, error) { return sandbox.NewView(o, sandbox.LevelFull) })
	return w
}

func (w workplace) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A patch touches nothing hidden, whichever of its paths leads there.
func TestPatchesOfWhatIsHiddenAreRefused(t *testing.T) {
	w := hiding(t, "second")
	for link, target := range map[string]string{"link": "conf", "to-cred": "conf/cred", "to-none": "none", "to-vault": "vault"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, named := range []string{
		"conf/cred", "./conf//cred", "vault/inner", "vault/new", "vault/deep/new", "second", "link/cred", "to-cred", "to-vault/inner", "to-vault/new", "none/there", "none/there/below",
	} {
		for _, section := range []string{
			"*** Add File: %s\n+x", "*** Delete File: %s", "*** Update File: %s\n@@\n-does not fit\n+x", "*** Update File: %s\n*** Move to: shown\n@@\n-hidden words\n+x",
			"*** Update File: greeting.txt\n*** Move to: %s\n@@\n-hello\n+x", "*** Add File: beside\n+x\n*** Add File: %s\n+x",
		} {
			if named == "to-cred" && strings.HasPrefix(section, "*** Delete") {
				continue // of the link alone
			}
			text := "*** Begin Patch\n" + fmt.Sprintf(section, named) + "\n*** End Patch\n"
			result := w.apply(t.Context(), tools.Call{Form: tools.Freeform, Input: text})
			if want := "patch rejected: " + named + " can't be read: it is kept from commands"; !result.Failed || !strings.Contains(result.Output, want) {
				t.Errorf("%s%s", text, result.Output)
			}
		}
	}
	w.untouched(t, "beside", "shown", "none", "vault/new")
}

func TestRewritesOfWhatIsHiddenAreRefused(t *testing.T) {
	w := hiding(t, "second")
	if err := os.Symlink("conf/cred", filepath.Join(w.dir, "to-cred")); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"conf/cred", "vault/new", "second", "to-cred", "none/there"} {
		got, err := w.patcher.Rewrite(t.Context(), w.dir, []string{"greeting.txt", named}, func(was tree.Texts) (tree.Texts, error) {
			t.Errorf("%s was read", named)
			return nil, nil
		})
		if want := "change rejected: " + named + " can't be read: it is kept from commands"; err != nil || !got.Failed || !strings.Contains(got.Output, want) {
			t.Errorf("%s: %+v, %v", named, got, err)
		}
	}
	w.untouched(t, "vault/new", "none")
}

// untouched checks that all is as it was made.
func (w workplace) untouched(t *testing.T, absent ...string) {
	t.Helper()
	for name, want := range map[string]string{"conf/cred": hiddenWords, "vault/inner": hiddenWords, "greeting.txt": "hello\nworld\n"} {
		if got, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	for _, name := range absent {
		if _, err := os.Lstat(filepath.Join(w.dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// Nor does one whose path a command leads elsewhere meanwhile.
func TestNoLinkLeadsAPatchToWhatIsHidden(t *testing.T) {
	w := hiding(t, "second")
	end, ended := make(chan struct{}), make(chan struct{})
	defer func() { close(end); <-ended }()
	go func() {
		defer close(ended)
		way := filepath.Join(w.dir, "way")
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				_ = os.Symlink([]string{"conf", "pub", "vault"}[i%3], way+".next")
				_ = os.Rename(way+".next", way)
			}
		}
	}()
	for i := range 400 {
		section := []string{"*** Update File: way/cred\n@@\n-does not fit\n+x", "*** Add File: way/cred\n+public", "*** Update File: way/cred\n*** Move to: shown\n@@\n-hidden words\n+x", "*** Add File: way/inner\n+x"}[i%4]
		result := w.apply(t.Context(), tools.Call{Form: tools.Freeform, Input: "*** Begin Patch\n" + section + "\n*** End Patch\n"})
		if strings.Contains(result.Output, "+hidden") {
			t.Fatalf("%s: %s", section, result.Output)
		}
	}
	w.untouched(t, "shown")
}
