package gitops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
)

// oneChange opens r and makes a change set with a new file.
func oneChange(t *testing.T, r repo) (*gitops.Checkout, *gitops.ChangeSet) {
	t.Helper()
	c := r.open()
	tree, in, snap, _ := private(t, c)
	tree.Write("new", "n\n")
	return c, changes(t, in, snap)
}

func TestSwitchMovesExistingBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, r repo)
		foreign bool
	}{
		"an ancestor of the base": {func(_ *testing.T, r repo) {
			r.Git("branch", "agent-ci/x")
			r.Write("later", "l\n")
			r.Commit("later")
		}, false},
		"a commit of ours": {func(t *testing.T, r repo) {
			r.Git("checkout", "-q", "-b", "agent-ci/x")
			base := r.Git("rev-parse", "HEAD")
			r.Git("commit", "-q", "--allow-empty", "-m", "x\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
			r.Git("checkout", "-q", "main")
		}, false},
		"somebody's commit": {func(_ *testing.T, r repo) {
			r.Git("checkout", "-q", "-b", "agent-ci/x")
			r.Commit("by hand")
			r.Git("checkout", "-q", "main")
		}, true},
		"somebody's commit below one of ours": {func(_ *testing.T, r repo) {
			base := r.Git("rev-parse", "HEAD")
			r.Git("checkout", "-q", "-b", "agent-ci/x")
			r.Commit("by hand")
			r.Git("commit", "-q", "--allow-empty", "-m", "x\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
			r.Git("checkout", "-q", "main")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seededRepo(t)
			c.prepare(t, r)
			before := r.Git("for-each-ref")
			checkout, cs := oneChange(t, r)
			sha := commit(t, checkout, cs)
			err := checkout.Switch(t.Context(), "agent-ci/x", sha, cs)
			if is[*gitops.ForeignCommitError](err) != c.foreign || !c.foreign && err != nil {
				t.Fatalf("got %v", err)
			}
			if c.foreign {
				must.Same(t, before, r.Git("for-each-ref"), "references")
				return
			}
			must.Same(t, sha, r.Git("rev-parse", "agent-ci/x"), "tip")
			must.Same(t, nil, r.status(), "status")
			must.Same(t, sha, strings.Fields(r.Git("reflog", "show", "--format=%H", "agent-ci/x"))[0], "log of the branch")
		})
	}
}

func TestTip(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	r.Git("checkout", "-q", "-b", "agent-ci/x")
	base := r.Git("rev-parse", "HEAD")
	r.Git("commit", "-q", "--allow-empty", "-m", "x\n\ntext\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
	r.Git("checkout", "-q", "main")
	r.Git("clone", "-q", "--bare", ".", "../bare.git")
	want := &forge.Commit{
		SHA: r.Git("rev-parse", "agent-ci/x"), Tree: r.Git("rev-parse", "agent-ci/x^{tree}"),
		Parents: []string{base}, Message: "x\n\ntext\n\nAgent-CI-Run: r0\nAgent-CI-Base: " + base + "\n",
		Author: "A <a@example.org>", Committer: "A <a@example.org>",
		Authored: date(t, r, "%aI"), Committed: date(t, r, "%cI"),
	}
	c := r.open()
	for name, read := range map[string]func(branch string) (*forge.Commit, error){
		"checkout": func(branch string) (*forge.Commit, error) { return c.Tip(t.Context(), branch) },
		"plain":    func(branch string) (*forge.Commit, error) { return gitops.ReadTip(t.Context(), r.Dir, branch) },
		"bare": func(branch string) (*forge.Commit, error) {
			return gitops.ReadTip(t.Context(), r.Path("../bare.git"), branch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(read("agent-ci/x"))(t)
			got.Authored, got.Committed = got.Authored.Local(), got.Committed.Local()
			must.Same(t, want, got, "tip")
			none, err := read("agent-ci/none")
			if none != nil || err != nil {
				t.Errorf("of no branch: %v, %v", none, err)
			}
		})
	}
	must.Fail(t, "", must.Err(gitops.ReadTip(t.Context(), t.TempDir(), "main")), "a tip of no repository")
}

func date(t *testing.T, r repo, format string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.RFC3339, r.Git("log", "-1", "--format="+format, "agent-ci/x")))(t)
}

func TestRecognisesOwnCommits(t *testing.T) {
	t.Parallel()
	const trailers = "x\n\nAgent-CI-Run: r\nAgent-CI-Base: abc\n"
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		info forge.Commit
		want bool
	}{
		"ours": {forge.Commit{Message: trailers, Parents: []string{"abc"}}, true},
		"by two": {forge.Commit{
			Message: trailers, Parents: []string{"abc"}, Author: "Ada <>", Committer: "GitHub <>", Authored: made, Committed: made.In(time.FixedZone("", 7200)),
		}, true},
		"amended":            {forge.Commit{Message: trailers, Parents: []string{"abc"}, Authored: made, Committed: made.Add(time.Second)}, false},
		"another parent":     {forge.Commit{Message: trailers, Parents: []string{"def"}}, false},
		"a merge":            {forge.Commit{Message: trailers, Parents: []string{"abc", "def"}}, false},
		"a first commit":     {forge.Commit{Message: "x\n\nAgent-CI-Run: r\nAgent-CI-Base: \n"}, false},
		"no run":             {forge.Commit{Message: "x\n\nAgent-CI-Base: abc\n", Parents: []string{"abc"}}, false},
		"not the last lines": {forge.Commit{Message: trailers + "\nmore\n", Parents: []string{"abc"}}, false},
		"only a subject":     {forge.Commit{Message: "Agent-CI-Run: r\nAgent-CI-Base: abc\n", Parents: []string{"abc"}}, false},
	} {
		must.Same(t, c.want, c.info.MadeByRun(), name)
	}
}

func TestCommitHasAuthorAndMessage(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	c, cs := oneChange(t, r)
	who := gitops.Signature{Name: "A <b>\nc", Email: "x@y\n>", When: time.Unix(1_700_000_000, 0)}
	sha := must.Get(c.WriteCommit(t.Context(), cs, gitops.CommitOptions{Message: "subject\n\nbody", Author: who, Committer: who}))(t)
	must.Do(t, c.Switch(t.Context(), "x", sha, cs))
	must.Same(t, "A bc|x@y|subject|body\n", r.Git("log", "-1", "--format=%an|%ae|%s|%b"), "commit")
}

func TestHolds(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	head := r.Git("rev-parse", "HEAD")
	r.Git("clone", "-q", "--bare", ".", "../copy.git")
	r.Commit("later")
	for sha, want := range map[string]bool{head: true, r.Git("rev-parse", "HEAD"): false} {
		must.Same(t, want, must.Get(gitops.Holds(r.Path("../copy.git"), sha))(t), "Holds", sha)
	}
	must.Is(t, gitops.ErrNotRepository, must.Err(gitops.Holds(t.TempDir(), head)), "a plain folder")
}

func TestSwitchRefusesInvalidBranchNames(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"", "a..b", "x.lock", "../../HEAD", "with space", "-x/.y"} {
		r := seededRepo(t)
		c, cs := oneChange(t, r)
		before := r.Git("for-each-ref")
		must.Fail(t, "", c.Switch(t.Context(), branch, commit(t, c, cs), cs), branch, "was taken")
		must.Same(t, before, r.Git("for-each-ref"), "references")
	}
}

func TestSwitchRefusesAtomically(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(r repo){
		"checked out elsewhere": func(r repo) { r.Git("worktree", "add", "-q", "-b", "agent-ci/x", r.Path("../linked")) },
		"a packed reference in the way": func(r repo) {
			r.Git("branch", "agent-ci")
			r.Git("pack-refs", "--all")
		},
		"a reference in the way":  func(r repo) { r.Git("branch", "agent-ci") },
		"an index that is locked": func(r repo) { r.Write(".git/index.lock", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seededRepo(t)
			prepare(r)
			c, cs := oneChange(t, r)
			before, head := r.Git("for-each-ref"), r.Git("symbolic-ref", "HEAD")
			must.Fail(t, "", c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs), "it switched")
			must.Same(t, before, r.Git("for-each-ref"), "references")
			must.Same(t, head, r.Git("symbolic-ref", "HEAD"), "HEAD")
		})
	}
}
