package gitops_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
)

// oneChange opens r and makes a change set with a new file.
func oneChange(t *testing.T, r repo) (*gitops.Checkout, *gitops.ChangeSet) {
	t.Helper()
	c := r.open("")
	snap := snapshot(t, c)
	r.write("new", "n\n")
	return c, changes(t, c, snap)
}

func TestSwitchOverABranchThatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, r repo)
		foreign bool
	}{
		"the base itself": {func(_ *testing.T, r repo) { r.git("branch", "agent-ci/x") }, false},
		"an ancestor of the base": {func(_ *testing.T, r repo) {
			r.git("branch", "agent-ci/x")
			r.write("later", "l\n")
			r.commit("later")
		}, false},
		"a commit of ours": {func(t *testing.T, r repo) {
			r.git("checkout", "-q", "-b", "agent-ci/x")
			base := r.git("rev-parse", "HEAD")
			r.git("commit", "-q", "--allow-empty", "-m", "x\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
			r.git("checkout", "-q", "main")
		}, false},
		"somebody's commit": {func(_ *testing.T, r repo) {
			r.git("checkout", "-q", "-b", "agent-ci/x")
			r.commit("by hand")
			r.git("checkout", "-q", "main")
		}, true},
		"somebody's commit below one of ours": {func(_ *testing.T, r repo) {
			base := r.git("rev-parse", "HEAD")
			r.git("checkout", "-q", "-b", "agent-ci/x")
			r.commit("by hand")
			r.git("commit", "-q", "--allow-empty", "-m", "x\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
			r.git("checkout", "-q", "main")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.seed()
			c.prepare(t, r)
			before := r.git("for-each-ref")
			checkout, cs := oneChange(t, r)
			sha := commit(t, checkout, cs)
			err := checkout.Switch(t.Context(), "agent-ci/x", sha, cs)
			if is[*gitops.ForeignCommitError](err) != c.foreign || !c.foreign && err != nil {
				t.Fatalf("got %v", err)
			}
			if c.foreign {
				same(t, "references", before, r.git("for-each-ref"))
				return
			}
			same(t, "tip", sha, r.git("rev-parse", "agent-ci/x"))
			same(t, "status", nil, r.status())
			same(t, "log of the branch", sha, strings.Fields(r.git("reflog", "show", "--format=%H", "agent-ci/x"))[0])
		})
	}
}

func TestSwitchRefusesABranchName(t *testing.T) {
	for _, branch := range []string{"", "a..b", "x.lock", "../../HEAD", "with space", "-x/.y"} {
		r := newRepo(t)
		r.seed()
		c, cs := oneChange(t, r)
		before := r.git("for-each-ref")
		if err := c.Switch(t.Context(), branch, commit(t, c, cs), cs); err == nil {
			t.Errorf("%q was taken", branch)
		}
		same(t, "references", before, r.git("for-each-ref"))
	}
}

func TestSwitchToAPackChecksItOut(t *testing.T) {
	r := newRepo(t)
	r.seed()
	root := tree(entry{"100755", "run", blob("#!\n")})
	c := r.open("")
	cs, err := c.ReadPack(t.Context(), strings.NewReader(string(packOf(root, blob("#!\n")))), gitops.Tree(hexID(root)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs); err != nil {
		t.Fatal(err)
	}
	same(t, "work tree", map[string]string{"run": "x #!\n"}, r.files())
	same(t, "status", nil, r.status())
}

func TestTip(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.git("checkout", "-q", "-b", "agent-ci/x")
	base := r.git("rev-parse", "HEAD")
	r.git("commit", "-q", "--allow-empty", "-m", "x\n\ntext\n\nAgent-CI-Run: r0\nAgent-CI-Base: "+base)
	r.git("checkout", "-q", "main")
	r.git("clone", "-q", "--bare", ".", "../bare.git")
	want := &gitops.CommitInfo{
		SHA: r.git("rev-parse", "agent-ci/x"), Tree: gitops.Tree(r.git("rev-parse", "agent-ci/x^{tree}")),
		Parents: []string{base}, Message: "x\n\ntext\n\nAgent-CI-Run: r0\nAgent-CI-Base: " + base + "\n", Author: "A <a@example.org>",
	}
	c := r.open("")
	for name, read := range map[string]func(branch string) (*gitops.CommitInfo, error){
		"checkout": func(branch string) (*gitops.CommitInfo, error) { return c.Tip(t.Context(), branch) },
		"plain":    func(branch string) (*gitops.CommitInfo, error) { return gitops.ReadTip(t.Context(), r.dir, branch) },
		"bare": func(branch string) (*gitops.CommitInfo, error) {
			return gitops.ReadTip(t.Context(), r.path("../bare.git"), branch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read("agent-ci/x")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "tip", want, got)
			none, err := read("agent-ci/none")
			if none != nil || err != nil {
				t.Errorf("of no branch: %v, %v", none, err)
			}
		})
	}
	if _, err := gitops.ReadTip(t.Context(), t.TempDir(), "main"); err == nil {
		t.Error("a tip of no repository")
	}
}

func TestOurs(t *testing.T) {
	const trailers = "x\n\nAgent-CI-Run: r\nAgent-CI-Base: abc\n"
	for name, c := range map[string]struct {
		info gitops.CommitInfo
		want bool
	}{
		"ours":               {gitops.CommitInfo{Message: trailers, Parents: []string{"abc"}}, true},
		"another parent":     {gitops.CommitInfo{Message: trailers, Parents: []string{"def"}}, false},
		"a merge":            {gitops.CommitInfo{Message: trailers, Parents: []string{"abc", "def"}}, false},
		"a first commit":     {gitops.CommitInfo{Message: "x\n\nAgent-CI-Run: r\nAgent-CI-Base: \n"}, false},
		"no run":             {gitops.CommitInfo{Message: "x\n\nAgent-CI-Base: abc\n", Parents: []string{"abc"}}, false},
		"not the last lines": {gitops.CommitInfo{Message: trailers + "\nmore\n", Parents: []string{"abc"}}, false},
		"only a subject":     {gitops.CommitInfo{Message: "Agent-CI-Run: r\nAgent-CI-Base: abc\n", Parents: []string{"abc"}}, false},
	} {
		if got := c.info.Ours(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCommitSaysWhoAndWhat(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c, cs := oneChange(t, r)
	who := gitops.Signature{Name: "A <b>\nc", Email: "x@y\n>", When: time.Unix(1_700_000_000, 0)}
	sha, err := c.WriteCommit(t.Context(), cs, gitops.CommitOptions{Message: "subject\n\nbody", Author: who, Committer: who})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Switch(t.Context(), "x", sha, cs); err != nil {
		t.Fatal(err)
	}
	same(t, "commit", "A bc|x@y|subject|body\n", r.git("log", "-1", "--format=%an|%ae|%s|%b"))
}

func TestSwitchRefusesBeforeItMovesAnything(t *testing.T) {
	for name, prepare := range map[string]func(r repo){
		"checked out elsewhere": func(r repo) { r.git("worktree", "add", "-q", "-b", "agent-ci/x", r.path("../linked")) },
		"a packed reference in the way": func(r repo) {
			r.git("branch", "agent-ci")
			r.git("pack-refs", "--all")
		},
		"a reference in the way":  func(r repo) { r.git("branch", "agent-ci") },
		"an index that is locked": func(r repo) { r.write(".git/index.lock", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.seed()
			prepare(r)
			c, cs := oneChange(t, r)
			before, head := r.git("for-each-ref"), r.git("symbolic-ref", "HEAD")
			if err := c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs); err == nil {
				t.Error("it switched")
			}
			same(t, "references", before, r.git("for-each-ref"))
			same(t, "HEAD", head, r.git("symbolic-ref", "HEAD"))
		})
	}
}

// A second run starts where the first has left HEAD: on the task's branch.
func TestRunningTwice(t *testing.T) {
	r := newRepo(t)
	r.seed()
	main := r.git("rev-parse", "main")
	for _, content := range []string{"first\n", "second\n"} {
		c := r.open("")
		if _, err := c.SetBase(t.Context(), gitops.BaseSpec{Branch: "main"}); err != nil {
			t.Fatal(err)
		}
		snap := snapshot(t, c)
		r.write("new", content)
		r.git("add", "-A")
		r.git("commit", "-q", "-m", "by the agent, on whatever branch HEAD is")
		cs := changes(t, c, snap)
		same(t, "change", []string{"A new"}, nameStatus(cs))
		if err := c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs); err != nil {
			t.Fatal(err)
		}
		same(t, "status", nil, r.status())
		same(t, "parent", main, r.git("rev-parse", "HEAD~1"))
		same(t, "content", content, r.git("cat-file", "blob", "HEAD:new")+"\n")
	}
	same(t, "base branch", main, r.git("rev-parse", "main"))
}

func TestBranchesAt(t *testing.T) {
	r := newRepo(t)
	r.seed()
	head := r.git("rev-parse", "HEAD")
	r.git("branch", "b/packed")
	r.git("pack-refs", "--all")
	r.git("branch", "a")
	r.git("checkout", "-q", "b/packed")
	r.commit("later")
	c := r.open("")
	got, err := c.BranchesAt(head)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "branches", []string{"a", "main"}, got)
}

func TestDefaultBranch(t *testing.T) {
	r := newRepo(t)
	r.seed()
	if got := r.open("").DefaultBranch(); got != "" {
		t.Errorf("a repository without origin has the default branch %q", got)
	}
	r.git("update-ref", "refs/remotes/origin/trunk", "HEAD")
	r.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	if got := r.open("").DefaultBranch(); got != "trunk" {
		t.Errorf("the default branch is %q, want trunk", got)
	}
}

func TestBranchFits(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.git("branch", "loose")
	r.git("branch", "packed/below")
	c := r.open("")
	for name, fits := range map[string]bool{
		"new": true, "packed/beside": true, "loose": true,
		"loose/below": false, "a..b": false, "": false,
	} {
		if err := c.BranchFits(name); (err == nil) != fits {
			t.Errorf("BranchFits(%q) = %v", name, err)
		}
	}
}

func TestDropLocksLeavesThoseOfOthers(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.write(".git/HEAD.lock", "")
	c := r.open("")
	r.write(".git/index.lock", "")
	if err := c.DropLocks(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(r.path(".git/index.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("index.lock: %v, want it gone", err)
	}
	if _, err := os.Lstat(r.path(".git/HEAD.lock")); err != nil {
		t.Errorf("HEAD.lock: %v, want it left", err)
	}
}

func TestSettleKeepsTheFilesAndNothingElse(t *testing.T) {
	r := newRepo(t)
	r.seed()
	before := r.git("for-each-ref")
	c := r.open("")
	snap := snapshot(t, c)
	r.write("mine", "m\n")
	r.git("add", "--all")
	r.git("commit", "-q", "-m", "by the agent")
	r.git("checkout", "-q", "-b", "elsewhere")
	if err := c.Settle(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	r.git("branch", "-q", "-D", "elsewhere")
	same(t, "references", before, r.git("for-each-ref"))
	same(t, "HEAD", "refs/heads/main", r.git("symbolic-ref", "HEAD"))
	same(t, "status", "?? mine", r.git("status", "--porcelain"))
}

func TestHolds(t *testing.T) {
	r := newRepo(t)
	r.seed()
	head := r.git("rev-parse", "HEAD")
	r.git("clone", "-q", "--bare", ".", "../copy.git")
	r.commit("later")
	for sha, want := range map[string]bool{head: true, r.git("rev-parse", "HEAD"): false} {
		if got, err := gitops.Holds(r.path("../copy.git"), sha); err != nil || got != want {
			t.Errorf("Holds(%s) = %v, %v, want %v", sha, got, err, want)
		}
	}
	if _, err := gitops.Holds(t.TempDir(), head); !errors.Is(err, gitops.ErrNotRepository) {
		t.Errorf("a plain folder: %v", err)
	}
}
