package gitops_test

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// The branch that is checked out at the time does not move under those who have it, no
// matter which was when the checkout was opened.
func TestMoveBranchRefusesCheckedOutBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others func(r repo)
		moves  bool
	}{
		"nobody does anything":        {func(repo) {}, true},
		"others are on a branch":      {func(r repo) { r.Git("checkout", "-q", "-b", "agent-ci/xy") }, true},
		"others are on no branch":     {func(r repo) { r.Git("checkout", "-q", "--detach", "agent-ci/x") }, true},
		"others are on the branch":    {func(r repo) { r.Git("checkout", "-q", "agent-ci/x") }, false},
		"others renamed theirs to it": {func(r repo) { r.Git("branch", "-q", "-M", "agent-ci/x") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seededRepo(t)
			r.Git("branch", "agent-ci/x")
			above := besideOthers(t, r)
			snap := snapshot(t, above)
			r.Write("new", "n\n")
			cs := changes(t, above, snap)
			id := commit(t, above, cs)
			r.Remove("new")
			c.others(r)
			before, files := r.Git("rev-parse", "agent-ci/x"), r.Files()
			head := r.Read(".git/HEAD")
			err := above.MoveBranch(t.Context(), "agent-ci/x", id, cs)
			if used := errors.As(err, new(*gitops.InUseError)); used == c.moves || c.moves && err != nil {
				t.Errorf("got %v", err)
			}
			after := r.Git("rev-parse", "agent-ci/x")
			if c.moves != (after == id) || !c.moves && after != before {
				t.Errorf("the branch is on %s, was on %s, want %s: %v", after, before, id, c.moves)
			}
			must.Same(t, head, r.Read(".git/HEAD"), "HEAD")
			must.Same(t, files, r.Files(), "work tree")
		})
	}
}

// A change on another base than the checkout has brings that base along, goes over nothing of others, and does
// nothing by halves.
func TestLandingKeepsFilesOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others func(r repo)
		lands  bool
	}{
		"nothing":                         {func(repo) {}, true},
		"a file that is alike on both":    {func(r repo) { r.Write("src/main.go", "theirs\n") }, true},
		"something new":                   {func(r repo) { r.Write("fresh", "theirs\n") }, true},
		"a file that is gone":             {func(r repo) { r.Remove("README") }, true},
		"a file that differs":             {func(r repo) { r.Write("README", "theirs\n") }, false},
		"a file that goes":                {func(r repo) { r.Write("gone", "theirs\n") }, false},
		"something new where a file goes": {func(r repo) { r.Write("only/older", "theirs\n") }, false},
		"a folder where a file goes":      {func(r repo) { r.Write("only/older/there", "theirs\n") }, false},
	} {
		for _, way := range []string{"at once", "resumed"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				r := twoBranches(t)
				opened := besideOthers(t, r)
				base := must.Get(opened.SetBase(gitops.BaseSpec{Branch: "older"}))(t)
				if way == "resumed" {
					opened, _ = resumed(t, r, opened)
				}
				snap, before := snapshot(t, opened), r.Files()
				c.others(r)
				want, head := r.Files(), "ref: refs/heads/main\n"
				if c.lands {
					want["README"], want["only/older"], head = "older\n", "o\n", base.SHA+"\n"
					delete(want, "gone")
				}
				err := opened.ApplyChange(t.Context(), between(t, opened, base, base.Tree))
				must.Same(t, c.lands, err == nil, "it landed", err)
				must.Same(t, want, r.Files(), "work tree")
				must.Same(t, head, r.Read(".git/HEAD"), "HEAD")
				if c.lands {
					must.Same(t, "", r.Git("diff", "--cached", "--name-only"), "staged")
				}
				if name != "nothing" {
					return
				}
				half := changes(t, opened, snap)
				must.Do(t, opened.Revert(t.Context(), half, []string{"README", "gone", "only/older"}))
				must.Do(t, opened.Unswitch(t.Context(), "", base.SHA))
				must.Same(t, before, r.Files(), "work tree that was taken back")
				must.Same(t, "ref: refs/heads/main\n", r.Read(".git/HEAD"), "HEAD that was taken back")
				must.Same(t, []string(nil), r.status(), "status")
			})
		}
	}
}

func between(t *testing.T, c *gitops.Checkout, base gitops.Base, tree gitops.Tree) *gitops.ChangeSet {
	t.Helper()
	return must.Get(c.ChangeBetween(t.Context(), base, tree))(t)
}

// besideOthers opens a checkout that commands of the run leave to others.
func besideOthers(t testing.TB, r repo) *gitops.Checkout {
	t.Helper()
	c := must.Get(gitops.Open(t.Context(), gitops.Options{Dir: r.Dir, Git: gittest.Program(t), State: t.TempDir()}))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// resumed goes on with a checkout as another process does when the one that had it died.
func resumed(t *testing.T, r repo, c *gitops.Checkout) (*gitops.Checkout, *gitops.Snapshot) {
	t.Helper()
	snap := snapshot(t, c)
	mark, err := c.Mark(snap, snap)
	if err == nil {
		err = c.Close()
	}
	must.Do(t, err)
	next := besideOthers(t, r)
	if snap, _, err = next.Resume(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	return next, snap
}

func TestResumeRemembersNonUTF8Names(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	r.Write("mine\xff", "untracked before\n")
	c := besideOthers(t, r)
	must.Get(c.SetBase(gitops.BaseSpec{}))(t)
	next, snap := resumed(t, r, c)
	r.Write("new", "n\n")
	must.Same(t, []string{"A new"}, nameStatus(changes(t, next, snap)), "changes")
}
