package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// What the view shows at a path, commands see there, in every tier.
func TestViewMatchesCommands(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		base := place(t)
		home := filepath.Join(base, "home")
		for name, content := range map[string]string{
			"home/plain": "plain", "home/.netrc": "secret", "home/changed": "old", "workspace/file": "work", "denied/file": "secret", "other/file": "other", "extra/file": "extra",
			"home/.gitconfig": "[test]\n\tmark = read\n[http]\n\textraheader = secret\n",
		} {
			put(t, filepath.Join(base, name), content, 0o644)
		}
		must.Do(t, os.Symlink(filepath.Join(base, "denied"), filepath.Join(base, "other/link")))
		must.Do(t, os.Symlink(filepath.Join(base, "extra"), filepath.Join(base, "other/extra")))
		box, o := confined(t, tier, func(o *Options) {
			o.Workspace, o.Home, o.Scratch = filepath.Join(base, "workspace"), home, filepath.Join(base, "scratch")
			o.Writable, o.DenyRead = []string{filepath.Join(base, "extra")}, []string{filepath.Join(base, "denied")}
		})
		run(t, box, o, `echo own >"$TMPDIR/own"; echo new >`+home+`/changed; echo made >`+home+`/made; rm -f `+home+`/plain; true`)
		v := must.Get(NewView(o, box.Level()))(t)
		tmp := strings.TrimSpace(run(t, box, o, `echo $TMPDIR`))
		for _, path := range []string{
			"/etc/passwd", tmp + "/own", "/proc/version", "/dev/zero", filepath.Join(home, "plain"), filepath.Join(home, ".netrc"), filepath.Join(home, "changed"),
			filepath.Join(home, "made"), filepath.Join(home, ".gitconfig"), filepath.Join(base, "workspace/file"), filepath.Join(base, "denied/file"), filepath.Join(base, "other/file"),
			filepath.Join(base, "other/link/file"), filepath.Join(base, "other/extra/file"), filepath.Join(base, "missing"), "/etc/shadow", "/run/utmp",
		} {
			want := strings.TrimSpace(run(t, box, o, `head -c 10 `+path+` 2>/dev/null | tr -d '\0'; true`))
			if strings.HasPrefix(path, "/proc/") {
				want = "" // commands have one of their own
			}
			must.Same(t, want, viewedContent(v, path), path)
		}
	})
}

// viewedContent reads through the view as the tools do.
func viewedContent(v *grants.View, path string) string {
	at, inside, err := v.Locate(path)
	if err != nil {
		return ""
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return ""
	}
	defer root.Close()
	content, err := root.ReadFile(inside)
	if err != nil || len(content) == 0 {
		return ""
	}
	return strings.TrimSpace(string(content[:min(10, len(content))]))
}

// Landlock judges where a path ends, not what it leads through.
func TestLandlockFollowsLinksFromUnshownFolders(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "extra/file"), "extra", 0o644)
	put(t, filepath.Join(base, "denied/file"), "secret", 0o644)
	for _, name := range []string{"extra", "denied"} {
		must.Do(t, os.Symlink(filepath.Join(base, name), filepath.Join(base, "to-"+name)))
	}
	box, o := confined(t, "landlock", func(o *Options) {
		o.Writable, o.DenyRead = []string{filepath.Join(base, "extra")}, []string{filepath.Join(base, "denied")}
	})
	v := must.Get(NewView(o, box.Level()))(t)
	for path, want := range map[string]string{"to-extra/file": "extra", "to-denied/file": "", "extra/file": "extra", "denied/file": "", "to-nothing": ""} {
		path = filepath.Join(base, path)
		must.Same(t, want, strings.TrimSpace(run(t, box, o, `cat `+path+` 2>/dev/null; true`)), path)
		must.Same(t, want, viewedContent(v, path), path)
	}
}
