package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

const hiddenWords = "hidden words\n"

// hiding is a workplace of which a run hides conf/cred and vault.
func hiding(t *testing.T) workplace {
	t.Helper()
	var view func() (*grants.View, error)
	w := newWorkplace(t, patch.Options{View: func() (*grants.View, error) { return view() }})
	toolstest.Write(t, w.dir, map[string]string{"conf/cred": hiddenWords, "vault/inner": hiddenWords, "pub/cred": "public\n"})
	must.Do(t, os.Link(filepath.Join(w.dir, "conf/cred"), filepath.Join(w.dir, "second")))
	view = toolstest.Hiding(t, w.dir, "conf/cred", "vault", "none/there")
	return w
}

// A patch touches nothing hidden, whichever of its paths leads there.
func TestRefusesPatchesOfHiddenFiles(t *testing.T) {
	w := hiding(t)
	toolstest.Link(t, w.dir, map[string]string{"link": "conf", "to-cred": "conf/cred", "to-none": "none", "to-vault": "vault"})
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

func TestRefusesRewritesOfHiddenFiles(t *testing.T) {
	w := hiding(t)
	toolstest.Link(t, w.dir, map[string]string{"to-cred": "conf/cred"})
	for _, named := range []string{"conf/cred", "vault/new", "second", "to-cred", "none/there"} {
		got, err := w.patcher.Rewrite(t.Context(), []string{"greeting.txt", named}, func(was tree.Texts) (tree.Texts, error) {
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
	want := map[string]string{"conf/cred": hiddenWords, "vault/inner": hiddenWords, "greeting.txt": "hello\nworld\n"}
	for _, name := range absent {
		want[name] = ""
	}
	w.holds(t, want)
}

// Nor does one whose path a command leads elsewhere meanwhile.
func TestSwappedLinksRevealNoHiddenFiles(t *testing.T) {
	w := hiding(t)
	toolstest.SwapLinks(t, filepath.Join(w.dir, "way"), "conf", "pub", "vault")
	for i := range 400 {
		section := []string{"*** Update File: way/cred\n@@\n-does not fit\n+x", "*** Add File: way/cred\n+public", "*** Update File: way/cred\n*** Move to: shown\n@@\n-hidden words\n+x", "*** Add File: way/inner\n+x"}[i%4]
		result := w.apply(t.Context(), tools.Call{Form: tools.Freeform, Input: "*** Begin Patch\n" + section + "\n*** End Patch\n"})
		if strings.Contains(result.Output, "+hidden") {
			t.Fatalf("%s: %s", section, result.Output)
		}
	}
	w.untouched(t, "shown")
}
