package remote_test

import (
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestFetch(t *testing.T) {
	o := newOrigin(t)
	for _, w := range o.ways() {
		for _, depth := range []string{"--no-local", "--depth=1"} {
			t.Run(w.name+depth, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "clone")
				git(t, o.work, "clone", "--quiet", "--single-branch", "--branch=main", depth, "file://"+o.bare, dir)
				into := storeOf(t, dir)
				must.Do(t, remote.Fetch(t.Context(), w.remote, into, remote.FetchOptions{Commit: o.side, Have: o.base}))
				own := packs(t, into.Dir)
				for _, objects := range own {
					if objects > 4 {
						t.Errorf("%d objects are here; the commit, its tree and side.txt are enough", objects)
					}
				}
				must.Same(t, 1, len(own), "packs", own)
				must.Same(t, "", git(t, into.Dir, "for-each-ref"), "references stay behind")
			})
		}
	}
}

func TestFetchWithoutHistory(t *testing.T) {
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "new")
	git(t, o.work, "init", "--quiet", dir)
	into := storeOf(t, dir)
	must.Do(t, remote.Fetch(t.Context(), o.remote(), into, remote.FetchOptions{Commit: o.side, WithoutHistory: true}))
	must.Same(t, "side", git(t, into.Dir, "log", "--format=%s", o.side), "commits")
	must.Same(t, "a.txt\nd/b.txt\nside.txt", git(t, into.Dir, "ls-tree", "-r", "--name-only", o.side), "files")
}
