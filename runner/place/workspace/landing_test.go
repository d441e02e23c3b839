package workspace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

// What can't be put into the checkout to its end is taken out again, and nothing of what
// others change there.
func TestLandsChangeAtomically(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("mine", "untracked\n")
	w, tree := working(t, repo.Dir)
	before := repo.Files()
	tree.Write("README", "whole\n")
	tree.Write("new", "whole, too\n")
	tree.Write("saved", "of the change\n")
	tree.Remove("gone")
	change := must.Get(w.Changes(t.Context()))(t)
	broken := errors.New("the disk is full")
	err := w.land(t.Context(), landing{}, change, func() error {
		repo.Write("README", "whole\n")
		repo.Write("new", "whole")
		repo.Remove("gone")
		repo.Write("src/main.go", "of others\n")
		repo.Write("saved", "of others\n")
		return broken
	})
	must.Is(t, broken, err)
	before["src/main.go"], before["saved"] = "of others\n", "of others\n"
	must.Same(t, before, repo.Files(), "the checkout has others")
	if got := repo.Git("status", "--porcelain"); got != " M src/main.go\n?? mine\n?? saved" || w.rec.Has(landingFile) {
		t.Errorf("git tells %q", got)
	}
}

// A merge that others begin meanwhile keeps the change out, though it moves neither HEAD nor the index.
func TestKeepsChangeOutOfMerge(t *testing.T) {
	repo := gittest.Seeded(t)
	diverge(repo)
	w, tree := working(t, repo.Dir)
	tree.Write("README", "whole\n")
	change := must.Get(w.Changes(t.Context()))(t)
	repo.Git("merge", "-q", "--no-commit", "other")
	w.WriteToCheckout(t.Context(), change)
	outcometest.Want(t, w.NotWritten(), "not_in_checkout", "where a merge is in progress")
	must.Same(t, "", repo.Git("status", "--porcelain"), "changed files")
}

// killedLanding is a run that was killed while its change came into the checkout: after
// its files, and after the branch, too, where it was switched.
func killedLanding(t *testing.T, switched bool) cut {
	t.Helper()
	c := cutShort(t)
	w := opened(t, c.repo.Dir)
	w.rec = c.Record
	inTree(t, w)
	must.Do(t, w.TakeSnapshot(t.Context()))
	change := must.Get(w.ReadWork(t.Context(), c.Directory, c.change))(t)
	by := gitops.Signature{Name: "a", Email: "a@example.com", When: time.Now()}
	commit := must.Get(w.checkout.WriteCommit(t.Context(), change, gitops.CommitOptions{Message: "worked", Author: by, Committer: by}))(t)
	must.Do(t, w.land(t.Context(), landing{Branch: "task", Commit: commit}, change, func() error {
		if switched {
			return w.checkout.Switch(t.Context(), "task", commit, change)
		}
		return w.checkout.ApplyChange(t.Context(), change)
	}))
	c.repo.Write(".git/index.lock", lockMark(w.rec))
	must.Do(t, w.Close())
	return c
}

func TestRevertsInterruptedLanding(t *testing.T) {
	unlocked := func(do ...func(gittest.Repo)) func(gittest.Repo) {
		return all(append([]func(gittest.Repo){func(r gittest.Repo) { r.Remove(".git/index.lock") }}, do...)...)
	}
	for name, test := range map[string]struct {
		others func(gittest.Repo)
		why    string // that it is not taken back
	}{
		"nothing":             {func(gittest.Repo) {}, ""},
		"a lock less":         {unlocked(), ""},
		"another file":        {func(r gittest.Repo) { r.Write("src/main.go", "theirs\n") }, "others changed src/main.go there"},
		"a file of it":        {func(r gittest.Repo) { r.Write("README", "theirs\n") }, "others changed README there"},
		"an untracked file":   {func(r gittest.Repo) { r.Write("theirs", "") }, "others changed theirs there"},
		"a commit":            {unlocked(git("commit", "--quiet", "--allow-empty", "-m", "theirs")), "others committed, staged or switched"},
		"something staged":    {unlocked(git("update-index", "--chmod=+x", "src/main.go")), "others committed, staged or switched"},
		"another branch":      {unlocked(git("checkout", "--quiet", "-b", "theirs")), "others committed, staged or switched"},
		"another git at work": {func(r gittest.Repo) { r.Write(".git/index.lock", "") }, "the index there can't be locked"},
	} {
		hows := []string{"", "switched", "without its tree", "switched, without its tree"}
		if test.why != "" { // it stops before it looks for a tree
			hows = hows[1:3]
		}
		for _, how := range hows {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				c := killedLanding(t, strings.HasPrefix(how, "switched"))
				c.earlier.HasTree = !strings.HasSuffix(how, "tree")
				test.others(c.repo)
				before := c.repo.Files()
				_, _, err := c.goOn(t, "")
				if test.why != "" {
					outcometest.Want(t, err, "not_resumable", test.why)
					must.Same(t, before, c.repo.Files(), "what others have")
					return
				}
				must.Do(t, err)
				before["README"] = "one\ntwo\n"
				must.Same(t, before, c.repo.Files(), "the checkout")
				if got := c.repo.Git("status", "--porcelain", "--branch"); got != "## main\n?? mine" || c.Has(landingFile) {
					t.Errorf("git tells %q", got)
				}
			})
		}
	}
}
