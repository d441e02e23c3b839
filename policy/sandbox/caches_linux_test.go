package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newCache is a folder of caches with a file that is hidden: one that commands see
// where it is, and one in a folder that they have of their own.
func newCache(t *testing.T, where string) (cache string) {
	t.Helper()
	cache = filepath.Join(map[string]func() string{"elsewhere": func() string { return place(t) }, "in /tmp": t.TempDir}[where](), "cache")
	put(t, filepath.Join(cache, "entry"), "outside\n", 0o644)
	put(t, filepath.Join(cache, "deep/cred"), secret+"\n", 0o644)
	return cache
}

// cached has a sandbox know a folder of caches.
func cached(cache, home string) func(*Options) {
	return func(o *Options) {
		o.Home, o.Environ, o.Commands = home, []string{"HOME=" + home}, []string{"GOCACHE=" + cache}
		o.DenyRead = []string{filepath.Join(cache, "deep/cred")}
	}
}

func TestCachesAreWrittenToInVain(t *testing.T) {
	for _, tier := range []string{"full", "namespaces"} {
		for _, where := range []string{"elsewhere", "in /tmp"} {
			t.Run(tier+"/"+where, func(t *testing.T) {
				cache := newCache(t, where)
				box, o := confined(t, tier, cached(cache, t.TempDir()))
				got := run(t, box, o, "cd "+cache+` && cat entry deep/cred && echo changed >entry && echo new >new && rm -r deep 2>/dev/null; mv deep away 2>/dev/null; cat entry new; ls deep; echo "[$GOCACHE]"`)
				if want := "outside\nchanged\nnew\ncred\n[]\n"; got != want {
					t.Errorf("got %q, not %q", got, want)
				}
				for name, want := range map[string]string{"entry": "outside\n", "deep/cred": secret + "\n", "new": ""} {
					if got, _ := os.ReadFile(filepath.Join(cache, name)); string(got) != want {
						t.Errorf("outside %s has %q", name, got)
					}
				}
			})
		}
	}
}

// The changes of an earlier sandbox may lie in the folder that they are changes of.
func TestALaterSandboxSeesWhatAnEarlierChangedOfACache(t *testing.T) {
	for _, kept := range []string{"elsewhere", "in the cache"} {
		t.Run(kept, func(t *testing.T) {
			cache, home := newCache(t, "elsewhere"), t.TempDir()
			scratch := filepath.Join(map[string]string{"elsewhere": t.TempDir(), "in the cache": cache}[kept], "run", "first")
			first, o := confined(t, "namespaces", func(o *Options) {
				cached(cache, home)(o)
				o.Scratch = scratch
			})
			run(t, first, o, "cd "+cache+" && echo fetched >module && rm entry")
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what the later ones change is their own
				later, o := confined(t, "namespaces", func(o *Options) {
					cached(cache, home)(o)
					o.Below = []string{scratch}
				})
				if got := run(t, later, o, "cd "+cache+" && cat module && test ! -e entry && echo changed >module"); got != "fetched\n" {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

func TestCachesAreReadUnderLandlock(t *testing.T) {
	for _, where := range []string{"elsewhere", "in /tmp"} {
		t.Run(where, func(t *testing.T) {
			cache := newCache(t, where)
			box, o := confined(t, "landlock", cached(cache, t.TempDir()))
			got := run(t, box, o, "cd "+cache+` && cat entry; cat deep/cred 2>/dev/null; echo x 2>/dev/null >entry; echo x 2>/dev/null >new; echo "$GOCACHE"`)
			if want := "outside\n" + filepath.Join(o.Scratch, "cache/go-build") + "\n"; got != want {
				t.Errorf("got %q, not %q", got, want)
			}
			if entries, err := os.ReadDir(cache); err != nil || len(entries) != 2 {
				t.Errorf("outside there are %v, %v", entries, err)
			}
		})
	}
}

// Where the kernel gives no overlay, the folder is there to be read, and a cache that
// can be done without begins anew.
func TestACacheThatCanNotBeInAnOverlay(t *testing.T) {
	for _, tier := range []string{"full", "namespaces"} {
		t.Run(tier, func(t *testing.T) {
			cache, home, scratch := newCache(t, "in /tmp"), t.TempDir(), t.TempDir()
			change := func(o *Options) {
				cached(cache, home)(o)
				o.Scratch = scratch
			}
			box, _ := confined(t, tier, change)
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
			works, err := filepath.Glob(filepath.Join(scratch, "caches/*/work"))
			if err != nil || len(works) != 1 {
				t.Fatalf("there are %q, %v", works, err)
			}
			if err := RemoveScratch(works[0]); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/proc", works[0]); err != nil { // on another file system than the changes
				t.Fatal(err)
			}
			box, o := confined(t, tier, change)
			var output bytes.Buffer
			c := bash(o, "cd "+cache+` && cat entry deep/cred; echo x 2>/dev/null >entry || echo refused; mkdir -p "$GOCACHE" && echo "$GOCACHE"`, &output)
			if status, err := box.Run(t.Context(), c); err != nil || status.ExitCode != 0 {
				t.Errorf("got %+v, %v", status, err)
			}
			if d := cmp.Diff("outside\nrefused\n"+filepath.Join(home, ".cache/go-build")+"\n", output.String()); d != "" {
				t.Error(d)
			}
		})
	}
}
