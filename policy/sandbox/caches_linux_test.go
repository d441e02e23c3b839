package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
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

func TestCacheChangesStayInSandbox(t *testing.T) {
	for _, tier := range namespacedTiers {
		for _, where := range []string{"elsewhere", "in /tmp"} {
			t.Run(tier+"/"+where, func(t *testing.T) {
				cache := newCache(t, where)
				box, o := confined(t, tier, cached(cache, t.TempDir()))
				got := run(t, box, o, "cd "+cache+` && cat entry deep/cred && echo changed >entry && echo new >new && rm -r deep 2>/dev/null; mv deep away 2>/dev/null; cat entry new; ls deep; echo "[$GOCACHE]"`)
				must.Same(t, "outside\nchanged\nnew\ncred\n[]\n", got)
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
func TestLaterSandboxSeesCacheChanges(t *testing.T) {
	for _, kept := range []string{"elsewhere", "in the cache"} {
		t.Run(kept, func(t *testing.T) {
			cache, home := newCache(t, "elsewhere"), t.TempDir()
			scratch := filepath.Join(map[string]string{"elsewhere": t.TempDir(), "in the cache": cache}[kept], "run", "first")
			first, o := confined(t, "namespaces", func(o *Options) {
				cached(cache, home)(o)
				o.Scratch = scratch
			})
			run(t, first, o, "cd "+cache+" && echo fetched >module && rm entry")
			must.Do(t, first.Close())
			for range 2 { // what the later ones change is their own
				later, o := confined(t, "namespaces", func(o *Options) {
					cached(cache, home)(o)
					o.EarlierScratch = []string{scratch}
				})
				must.Same(t, "fetched\n", run(t, later, o, "cd "+cache+" && cat module && test ! -e entry && echo changed >module"))
			}
		})
	}
}

func TestLandlockMakesCachesReadOnly(t *testing.T) {
	for _, where := range []string{"elsewhere", "in /tmp"} {
		t.Run(where, func(t *testing.T) {
			cache := newCache(t, where)
			box, o := confined(t, "landlock", cached(cache, t.TempDir()))
			got := run(t, box, o, "cd "+cache+` && cat entry; cat deep/cred 2>/dev/null; echo x 2>/dev/null >entry; echo x 2>/dev/null >new; echo "$GOCACHE"`)
			must.Same(t, "outside\n"+filepath.Join(o.Scratch, "cache/go-build")+"\n", got)
			must.Same(t, 2, len(must.Get(os.ReadDir(cache))(t)), "outside there are")
		})
	}
}

// Without overlays of the caches a later sandbox begins with a copy of what an earlier one cached.
// What it does to that, neither a third one nor the earlier one's folder has.
func TestLaterSandboxCopiesCaches(t *testing.T) {
	for tier, caches := range map[string]string{"landlock": "$GOCACHE", "namespaces": "/tmp/.cache"} {
		t.Run(tier, func(t *testing.T) {
			scratch, outside := t.TempDir(), t.TempDir()
			first, o := confined(t, tier, func(o *Options) { o.Scratch, o.Home = scratch, "" })
			run(t, first, o, "mkdir -p "+caches+"/ab && cd "+caches+" && echo object >ab/1 && ln -s "+outside+" away && mkfifo pipe")
			must.Do(t, first.Close())
			for range 2 {
				later, o := confined(t, tier, func(o *Options) { o.CachesFrom, o.Home = scratch, "" })
				got := run(t, later, o, "cd "+caches+" && cat ab/1 && readlink away && echo forged >ab/1 && echo forged >ab/2; echo $?; ls")
				must.Same(t, "object\n"+outside+"\n0\nab\naway\npipe\n", got)
			}
			// A folder that leads elsewhere is not followed, and caches of its own stay.
			leads := t.TempDir()
			for _, name := range grants.MovedCaches {
				must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(leads, name)), 0o700), os.Symlink(scratch, filepath.Join(leads, name))))
			}
			second := t.TempDir()
			last, o := confined(t, tier, func(o *Options) { o.Scratch, o.CachesFrom, o.Home = second, leads, "" })
			run(t, last, o, "mkdir -p "+caches+" && echo own >"+caches+"/own")
			must.Do(t, last.Close())
			again, o := confined(t, tier, func(o *Options) { o.Scratch, o.CachesFrom, o.Home = second, scratch, "" })
			must.Same(t, "own\n", run(t, again, o, "ls "+caches))
		})
	}
}

// Where the kernel gives no overlay, the folder is there to be read, and a cache that
// can be done without begins anew.
func TestCacheWithoutOverlayIsReadOnly(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		cache, home, scratch := newCache(t, "in /tmp"), t.TempDir(), t.TempDir()
		change := func(o *Options) {
			cached(cache, home)(o)
			o.Scratch = scratch
		}
		box, _ := confined(t, tier, change)
		must.Do(t, box.Close())
		works, err := filepath.Glob(filepath.Join(scratch, "caches/*/work"))
		if err != nil || len(works) != 1 {
			t.Fatalf("there are %q, %v", works, err)
		}
		must.Do(t, RemoveScratch(works[0]))
		if err := os.Symlink("/proc", works[0]); err != nil { // on another file system than the changes
			t.Fatal(err)
		}
		box, o := confined(t, tier, change)
		var output bytes.Buffer
		c := bash(o, "cd "+cache+` && cat entry deep/cred; echo x 2>/dev/null >entry || echo refused; mkdir -p "$GOCACHE" && echo "$GOCACHE"`, &output)
		must.Same(t, 0, must.Get(box.Run(t.Context(), c))(t).ExitCode)
		must.Same(t, "outside\nrefused\n"+filepath.Join(home, ".cache/go-build")+"\n", output.String())
	})
}
