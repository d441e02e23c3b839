package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// What was hidden before the first command is so in each later sandbox, whatever
// commands make of the links and folders that led to it.
func TestHiddenPathsStayHidden(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		requireTier(t, tier)
		o := withHidden(t, tier)
		first := openOne(t, o)
		run(t, first, o, `
			for way in "mv conf conf2" "mv conf/deep away" "rm -f conf/deep/cred" "rm -f second" "mv pub else" "mv vault else"; do if $way 2>/dev/null; then echo "done: $way" >&2; exit 1; fi; done
			rm link; mkdir pub/deep; echo public >pub/deep/cred; ln -s pub link
			mkdir made; ln -s ../script made/cred; ln -s /bin/sh tool`)
		must.Do(t, first.Close())
		o.Scratch = filepath.Join(filepath.Dir(o.Workspace), "later")
		later := openOne(t, o)
		must.Same(t, "public\nneeded\nneeded\n", run(t, later, o, `cat conf/deep/cred second pub/third; cat link/deep/cred; cat script made/cred; test -s /bin/sh`), "commands read")
		view := must.Get(NewView(o, later.Level()))(t)
		for _, name := range []string{"conf/deep/cred", "second", "pub/third", "vault/inner", "made/cred"} {
			if view.Hides(filepath.Join(o.Workspace, name)) == "" {
				t.Errorf("the view shows %s", name)
			}
		}
		for name, want := range map[string]bool{"conf/deep/cred": true, "second": true, "script": false} {
			file := must.Get(os.Open(filepath.Join(o.Workspace, name)))(t)
			must.Same(t, want, view.HidesFile(file) != "", name)
			file.Close()
		}
	})
}

// withHidden are options of a workspace that a link leads through to a hidden
// socket, which has more names.
func withHidden(t *testing.T, tier string) Options {
	t.Helper()
	base := place(t)
	workspace := filepath.Join(base, "workspace")
	put(t, filepath.Join(workspace, "conf/deep/cred"), secret, 0o644)
	put(t, filepath.Join(workspace, "script"), "needed\n", 0o644)
	put(t, filepath.Join(workspace, "vault/inner"), secret, 0o644)
	for second, first := range map[string]string{"second": "conf/deep/cred", "pub/third": "vault/inner"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(workspace, second)), 0o755))
		must.Do(t, os.Link(filepath.Join(workspace, first), filepath.Join(workspace, second)))
	}
	must.Do(t, os.Symlink("conf", filepath.Join(workspace, "link")))
	o := Options{
		Network: NetworkNone, disabledLayers: tiers[tier],
		Folders: grants.Folders{
			Mode: grants.WorkspaceWrite, Workspace: workspace, Scratch: filepath.Join(base, "scratch"), Home: base, DenyRead: []string{filepath.Join(workspace, "link/deep/cred"), filepath.Join(workspace, "made/cred"), filepath.Join(workspace, "tool"), filepath.Join(workspace, "vault")},
		},
	}
	found := must.Get(grants.FindSecrets(t.Context(), o.Folders))(t)
	o.Secrets = found
	return o
}

func openOne(t *testing.T, o Options) *Sandbox {
	t.Helper()
	box := must.Get(Open(t.Context(), o))(t)
	t.Cleanup(func() { _ = box.Close() })
	return box
}

// A folder above the workspace that commands may write to does not take it away.
func TestWorkspaceStaysInPlace(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		requireTier(t, tier)
		base := place(t)
		o := Options{Network: NetworkNone, disabledLayers: tiers[tier], Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: filepath.Join(base, "over/src/work"), Scratch: filepath.Join(base, "scratch"), Writable: []string{filepath.Join(base, "over")}}}
		put(t, filepath.Join(o.Workspace, "file"), "x", 0o644)
		box := openOne(t, o)
		run(t, box, o, `cd ..; for way in "mv ../src ../other" "mv work other"; do if $way 2>/dev/null; then echo "done: $way" >&2; exit 1; fi; done; touch ../made made`)
	})
}

// Without namespaces nothing starts once setup has made what is to be hidden.
func TestLandlockRefusesLaterSecrets(t *testing.T) {
	box, o := confined(t, "landlock", nil)
	o.DenyRead = []string{filepath.Join(o.Workspace, "made")}
	run(t, box, o, "echo secret >made")
	found := must.Get(grants.FindSecrets(t.Context(), o.Folders))(t)
	o.Secrets, o.Scratch = found, t.TempDir()
	must.Fail(t, "it can't be kept from them", must.Err(Open(t.Context(), o)), "it is opened")
}
