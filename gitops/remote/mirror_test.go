package remote_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A checkout of a mirror is what git makes of the remote, at a commit that need not be a tip.
func TestChecksOutMirror(t *testing.T) {
	o := newOrigin(t)
	git(t, o.work, "tag", "light", o.side)
	git(t, o.work, "push", "--quiet", o.bare, "light")
	git(t, o.work, "checkout", "--quiet", "-b", "later", o.side)
	later := commit(t, o.work, "later")
	git(t, o.work, "push", "--quiet", o.bare, "later") // which git writes to files of their own
	mirror := remote.Mirror{Remote: at(o.bare), Dir: o.bare}
	cloned := filepath.Join(t.TempDir(), "cloned")
	git(t, o.work, "clone", "--quiet", "--template=", o.bare, cloned)
	refs := []string{"refs/remotes/origin/later", "refs/remotes/origin/main", "refs/remotes/origin/side", "refs/tags/light", "refs/tags/v1"}
	for _, c := range []struct{ branch, commit string }{{"main", o.base}, {"main", git(t, o.bare, "rev-parse", "main~1")}, {"side", o.side}, {"a\"b;c", later}} {
		dir := filepath.Join(t.TempDir(), "checkout")
		must.Do(t, mirror.CheckOut(t.Context(), dir, c.branch, c.commit))
		must.Same(t, c.commit, git(t, dir, "rev-parse", "HEAD"), "HEAD")
		must.Same(t, c.branch, git(t, dir, "symbolic-ref", "--short", "HEAD"), "HEAD is at the branch")
		want := append([]string{"refs/heads/" + c.branch}, refs...)
		wantClone(t, dir, git(t, o.bare, "rev-list", "--count", c.commit), want)
		const format = "--format=%(refname) %(objectname) %(symref)"
		must.Same(t, git(t, cloned, "for-each-ref", format, "refs/remotes", "refs/tags"), git(t, dir, "for-each-ref", format, "refs/remotes", "refs/tags"), "refs")
		for name, want := range map[string]string{
			"remote.origin.url": o.bare, "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
			"branch." + c.branch + ".remote": "origin", "branch." + c.branch + ".merge": "refs/heads/" + c.branch,
		} {
			must.Same(t, want, git(t, dir, "config", name), name)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, ".git", "objects", "pack")); err == nil && len(entries) > 0 {
			t.Errorf("the checkout has objects of its own: %v", entries)
		}
	}
	dir := filepath.Join(t.TempDir(), "none")
	must.Fail(t, "", mirror.CheckOut(t.Context(), dir, "main", "0123456789012345678901234567890123456789"), "a commit that is not there was checked out")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a checkout that failed is left behind: %v", err)
	}
}

// A filter of the user's configuration would run among the files of the repository.
func TestMirrorCheckoutStartsNoFilter(t *testing.T) {
	o := newOrigin(t)
	proof := filepath.Join(t.TempDir(), "proof")
	write(t, filepath.Join(o.work, ".gitattributes"), "* filter=shout\n")
	tip := commit(t, o.work, "plant")
	git(t, o.work, "push", "--quiet", o.bare, "HEAD:main")
	config := filepath.Join(t.TempDir(), "config")
	write(t, config, "[filter \"shout\"]\n\tsmudge = sh -c 'pwd >>"+proof+"; cat'\n\trequired = true\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	mirror := remote.Mirror{Remote: at(o.bare), Dir: o.bare}
	must.Do(t, mirror.CheckOut(t.Context(), filepath.Join(t.TempDir(), "checkout"), "main", tip))
	must.Do(t, remote.Clone(t.Context(), mirror.Remote, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "checkout")}))
	must.Fail(t, "", must.Err(os.ReadFile(proof)), "git started the filter in")
}
