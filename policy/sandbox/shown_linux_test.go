package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Commands read what is shown, where there was nothing, something, or what is hidden, and
// change none of it.
func TestReplacementsCoverFiles(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		base := place(t)
		home := filepath.Join(base, "home")
		put(t, filepath.Join(home, ".netrc"), secret, 0o600)
		put(t, filepath.Join(base, "etc/bundle"), "old", 0o644)
		put(t, filepath.Join(base, "run/files/mine"), "read", 0o644)
		must.Do(t, os.Symlink("bundle", filepath.Join(base, "etc/link")))
		made, link := filepath.Join(home, ".m2/settings.xml"), filepath.Join(base, "etc/link")
		box, o := confined(t, tier, func(o *Options) {
			o.Workspace, o.Home, o.Scratch = filepath.Join(base, "workspace"), home, filepath.Join(base, "run/scratch")
			put(t, filepath.Join(o.Workspace, "file"), "", 0o644)
			o.DenyRead, o.Readable = []string{filepath.Join(base, "run")}, []string{filepath.Join(base, "run/files")}
			o.Replacements = map[string][]byte{
				filepath.Join(home, ".netrc"): []byte("shown netrc"), made: []byte("shown settings"), link: []byte("shown bundle"),
				filepath.Join(base, "etc/none"): []byte("never"), filepath.Join(base, "etc"): []byte("never"),
			}
		})
		got := run(t, box, o, `cd `+base+`; cat home/.netrc; echo; cat home/.m2/settings.xml; echo; cat etc/bundle; echo; cat run/files/mine; echo; ls etc;
			for f in home/.netrc home/.m2/settings.xml etc/bundle; do if { echo x >$f || rm -f $f || mv $f $f.old; } 2>/dev/null; then echo "changed $f"; fi; done`)
		must.Same(t, "shown netrc\nshown settings\nshown bundle\nread\nbundle\nlink\n", got, "commands read")
		v := must.Get(NewView(o, box.Level()))(t)
		for path, want := range map[string]string{filepath.Join(home, ".netrc"): "shown netr", made: "shown sett", link: "shown bund"} {
			must.Same(t, want, viewedContent(v, path), path)
		}
		must.Do(t, box.Close())
		must.Same(t, secret, string(must.Get(os.ReadFile(filepath.Join(home, ".netrc")))(t)), "the file outside has")
		must.Is(t, os.ErrNotExist, must.Err(os.Lstat(filepath.Join(home, ".m2"))), "something was made in the user's folder")
	})
}

// What earlier commands made of the folder leads nothing astray.
func TestReplacementsCoverEarlierChanges(t *testing.T) {
	requireTier(t, "namespaces")
	base := place(t)
	home := filepath.Join(base, "home")
	put(t, filepath.Join(home, "file"), "", 0o644)
	first, o := confined(t, "namespaces", func(o *Options) {
		o.Workspace, o.Home, o.Scratch = filepath.Join(base, "workspace"), home, filepath.Join(base, "scratch")
		put(t, filepath.Join(o.Workspace, "file"), "", 0o644)
	})
	run(t, first, o, `mkdir `+home+`/.m2; echo mine >`+home+`/.m2/settings.xml`)
	must.Do(t, first.Close())
	later, o := confined(t, "namespaces", func(later *Options) {
		later.Folders = o.Folders
		later.Scratch, later.EarlierScratch = filepath.Join(base, "later"), []string{o.Scratch}
		later.Replacements = map[string][]byte{filepath.Join(home, ".m2/settings.xml"): []byte("shown")}
	})
	must.Same(t, "shown", run(t, later, o, `cat `+home+`/.m2/settings.xml`), "commands read")
}

// Nothing is made in a folder that is not commands' own.
func TestReplacementsRequireOwnFolder(t *testing.T) {
	base := place(t)
	home := filepath.Join(base, "home")
	put(t, filepath.Join(home, ".m2/other"), "", 0o644)
	put(t, filepath.Join(base, "workspace/file"), "", 0o644)
	f := grants.Folders{
		Mode: grants.WorkspaceWrite, Workspace: filepath.Join(base, "workspace"), Scratch: filepath.Join(base, "scratch"), Home: home, Writable: []string{filepath.Join(home, ".m2")},
		Replacements: map[string][]byte{filepath.Join(home, ".m2/settings.xml"): []byte("shown")},
	}
	_, err := grants.NewPlan(f)
	if unshowable := (*grants.UnshowableError)(nil); !errors.As(err, &unshowable) || unshowable.Path != filepath.Join(home, ".m2/settings.xml") {
		t.Errorf("the plan is made: %v", err)
	}
	f.Writable = nil
	p := must.Get(grants.NewPlan(f))(t)
	must.Fail(t, "without namespaces", must.Err(p.Landlock()), "Landlock shows it")
}
