package repository_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

func inUse(err error) bool {
	var used *repository.InUseError
	return errors.As(err, &used)
}

func TestClaimExcludesSecondRun(t *testing.T) {
	r := gittest.Seeded(t)
	first, second := open(t, r.Dir), open(t, r.Dir)
	must.Do(t, first.Claim())
	if err := second.Claim(); !inUse(err) {
		t.Errorf("a second claim: %v, want an InUseError", err)
	}
	r.Git("worktree", "add", "--quiet", "../other")
	must.Do(t, open(t, r.Path("../other")).Claim(), "another work tree of the repository")
	must.Do(t, first.Close())
	must.Do(t, second.Claim(), "once the first is closed")
}

// Of two that share and claim at once none gets the work tree, and both share it
// still.
func TestConcurrentSharersCannotClaim(t *testing.T) {
	r := gittest.Seeded(t)
	runs := []*repository.Repository{open(t, r.Dir), open(t, r.Dir)}
	stranger := open(t, r.Dir)
	for _, c := range runs {
		must.Do(t, c.Share(t.Context()))
	}
	for range 1000 {
		var each sync.WaitGroup
		for _, c := range runs {
			each.Go(func() {
				if err := c.Claim(); !inUse(err) {
					t.Errorf("a claim while another shares: %v", err)
				}
			})
		}
		each.Wait()
		if err := stranger.Claim(); !inUse(err) {
			t.Fatalf("a claim while two share: %v", err)
		}
	}
}

func TestUnwritableNamesPath(t *testing.T) {
	r := gittest.Seeded(t)
	r.Write("sub/f", "")
	r.Write("sub/g", "")
	outside := t.TempDir()
	must.Do(t, os.Symlink(outside, r.Path("link")))
	c := open(t, r.Dir)
	changed := []string{"README", "new/deep/f", "sub/f", "sub/g/h", "link/f", "link/new/f"}
	requireWritable := func() {
		t.Helper()
		path, err := c.Unwritable(true)
		must.Do(t, err, path)
		path, err = c.UnwritableAmong(changed)
		must.Do(t, err, path)
	}
	requireWritable()
	all, files, tool, lock, unlock := []string{".git", ".git/objects", ".git/refs/heads", "sub"}, []string{".git/HEAD", ".git/index", "README"}, "chmod", "555", "755"
	if os.Getuid() == 0 { // who may write everywhere, but to what is immutable
		all, tool, lock, unlock = append(all, files...), "chattr", "+i", "-i"
	}
	for _, path := range all {
		if out, err := exec.Command(tool, lock, r.Path(path)).CombinedOutput(); err != nil {
			t.Skipf("%s: %s", tool, out)
		}
		got, err := c.Unwritable(true)
		if !strings.HasPrefix(path, ".git") {
			must.Do(t, err, got)
			got, err = c.UnwritableAmong(changed)
		}
		_, uncommitted := c.Unwritable(false)
		must.Do(t, exec.Command(tool, unlock, r.Path(path)).Run())
		must.Same(t, path == ".git", uncommitted != nil, "for files alone", path, uncommitted)
		if !errors.Is(err, fs.ErrPermission) || got != r.Path(path) {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	requireWritable()
	must.Do(t, exec.Command(tool, lock, outside).Run())
	path, err := c.UnwritableAmong(changed) // a folder replaces the link
	must.Do(t, exec.Command(tool, unlock, outside).Run())
	must.Do(t, err, path)
}

func TestHoldIndexBlocksGit(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r.Dir)
	c.LockMark = "mine\n"
	add := func() error {
		r.Write("README", "changed\n")
		return r.TryGit("add", "README")
	}
	ix, err := c.Index(t.Context())
	if err = errors.Join(err, c.HoldIndex(t.Context())); err != nil {
		t.Fatal(err)
	}
	must.Fail(t, "", add(), "git writes the index")
	must.Do(t, errors.Join(c.WriteIndex(ix, nil), c.CheckFree(t.Context(), "other")), "who holds the index")
	atOnce, cancel := context.WithCancel(t.Context())
	cancel() // so that nobody waits for who is at work
	later := open(t, r.Dir)
	if err := later.HoldIndex(atOnce); !inUse(err) {
		t.Errorf("a second one: %v", err)
	}
	r.Write(".git/index.lock", "theirs")
	if err := c.WriteIndex(ix, nil); !inUse(err) {
		t.Errorf("with the lock of another in its place: %v", err)
	}
	r.Write(".git/index.lock", "mine\n")
	if err := errors.Join(later.ReleaseIndex(), c.ReleaseIndex()); err != nil || add() != nil {
		t.Errorf("released: %v", err)
	}
	r.Write(".git/index.lock", "")
	if err := c.ReleaseIndex(); err != nil || c.RequireIdle(atOnce) == nil {
		t.Errorf("the lock of another is removed: %v", err)
	}
	if left, err := filepath.Glob(r.Path(".git/*agent-ci*")); err != nil || left != nil {
		t.Errorf("it leaves %q, %v", left, err)
	}
}

// A lock that a killed agent-ci left is removed: of the index by who goes on with its run alone, any other by
// the next run, too. One of a living process stays, and so does git's.
func TestRemovesOnlyOwnLocks(t *testing.T) {
	const left, gits = "Run 7 of agent-ci writes to this checkout. If it died, resume it.\n", "0123456789abcdef\n"
	for name, test := range map[string]struct {
		path, text          string
		living              bool
		goneNext, goneOwner bool
	}{
		"of a branch":               {"refs/heads/a/b", left, false, true, true},
		"of HEAD":                   {"HEAD", left, false, true, true},
		"of the index":              {"index", left, false, false, true},
		"another run's, of it":      {"index", "Run 8" + left[len("Run 7"):], false, false, false},
		"of a living process":       {"refs/heads/a/b", left, true, false, false},
		"git's, of a branch":        {"refs/heads/a/b", gits, false, false, false},
		"git's, of HEAD":            {"HEAD", "", false, false, false},
		"git's, of the packed refs": {"packed-refs", "", false, false, false},
		"git's, with our words":     {"config", "[branch \"a\"]\n\tdescription = agent-ci writes to this checkout.\n", false, false, false},
		"git's, of a similar name":  {"refs/heads/b.agent-ci", gits, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Seeded(t)
			lock := ".git/" + test.path + ".lock"
			r.Write(lock, test.text)
			r.Write(".git/"+test.path+"~agent-ci.lock", "half")
			if test.living {
				f := must.Get(os.Open(r.Path(lock)))(t)
				defer f.Close()
				must.Do(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
			}
			gone := func() bool {
				left, err := filepath.Glob(r.Path(".git/" + test.path + "*.lock"))
				return err == nil && left == nil
			}
			if err := open(t, r.Dir).RequireIdle(t.Context()); gone() != test.goneNext || (err == nil) != test.goneNext {
				t.Errorf("the next run: %v", err)
			}
			owner := open(t, r.Dir)
			owner.LockMark = left
			if err := owner.DropOwnLocks(); err != nil || gone() != test.goneOwner {
				t.Errorf("who goes on with its run: %v", err)
			}
		})
	}
}

// A reference that a killed agent-ci was writing is written, though its lock is there.
func TestWritesReferenceDespiteStaleLock(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r.Dir)
	r.Write(".git/refs/heads/new.lock", repository.DefaultMark)
	r.Write(".git/refs/heads/new~agent-ci.lock", "half")
	head := r.Git("rev-parse", "HEAD")
	must.Do(t, c.SetBranch("new", plumbing.ZeroHash, plumbing.NewHash(head), "x"))
	must.Same(t, head, r.Git("rev-parse", "new"), "the branch")
	must.Same(t, "main\nnew", r.Git("for-each-ref", "--format=%(refname:short)"), "branches")
	if left, err := filepath.Glob(r.Path(".git/refs/heads/*.lock")); err != nil || left != nil {
		t.Errorf("it leaves %q, %v", left, err)
	}
}
