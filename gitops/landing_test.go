package gitops_test

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// ways are those in which a finished change comes into a checkout.
var ways = map[string]func(t *testing.T, c *gitops.Checkout, cs *gitops.ChangeSet) error{
	"files alone": func(t *testing.T, c *gitops.Checkout, cs *gitops.ChangeSet) error {
		return c.ApplyChange(t.Context(), cs)
	},
	"a branch": func(t *testing.T, c *gitops.Checkout, cs *gitops.ChangeSet) error {
		return c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs)
	},
}

// landing is a checkout of a person, and a change that is not there yet.
func landing(t *testing.T) (repo, *gitops.Checkout, *gitops.ChangeSet) {
	t.Helper()
	r := newRepo(t)
	r.Write(".gitignore", "*.log\n")
	r.Seed()
	there := at(t, r.Path("../there"))
	r.Git("clone", "-q", r.Dir, there.Dir)
	c := besideOthers(t, there)
	r.Write("README", "one\n2\n")
	r.Write("new/file", "new\n")
	r.Write("a.log", "forced\n")
	r.Remove("gone")
	r.Chmod("src/main.go", 0o755)
	r.Git("add", "-A", "-f")
	tree := r.Git("write-tree")
	there.Git("fetch", "-q", r.Dir, r.Git("commit-tree", "-m", "change", tree))
	base := must.Get(c.SetBase(gitops.BaseSpec{}))(t)
	return there, c, between(t, c, base, gitops.Tree(tree))
}

// git would wait for the pipe's writer.
func TestLandingRefusesPipeOfAttributes(t *testing.T) {
	t.Parallel()
	for name, land := range ways {
		r, c, cs := landing(t)
		must.Do(t, syscall.Mkfifo(r.Path("src/.gitattributes"), 0o666))
		if err := land(t, c, cs); !errors.As(err, new(*gitops.UnsupportedError)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLanding(t *testing.T) {
	t.Parallel()
	for name, land := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c, cs := landing(t)
			r.Write("src/deep/er/x", "a person's, who changes other files\n")
			r.Write("mine", "untracked\n")
			r.Write("ignored.log", "ignored\n")
			head, index := r.Git("rev-parse", "HEAD"), r.Git("ls-files", "--stage")
			sprung := trapped(t, r)
			r.Remove(".gitattributes")
			must.Do(t, land(t, c, cs))
			must.Same(t, []string{}, sprung(), "what ran")
			want := map[string]string{
				".gitignore": "*.log\n", "README": "one\n2\n", "new/file": "new\n", "a.log": "forced\n", "src/main.go": "x package main\n",
				"src/deep/er/x": "a person's, who changes other files\n", "mine": "untracked\n", "ignored.log": "ignored\n",
			}
			got := r.Files()
			for path, content := range want {
				must.Same(t, content, got[path], path)
			}
			must.Same(t, len(want), len(got), "there", sortedKeys(got))
			r.Git("config", "--unset-all", "core.fsmonitor")
			r.Remove(".git/hooks")
			if name == "files alone" {
				must.Same(t, head, r.Git("rev-parse", "HEAD"), "HEAD")
				must.Same(t, index, r.Git("ls-files", "--stage"), "index")
				must.Same(t, []string{" D gone", " M README", " M src/deep/er/x", " M src/main.go", "?? mine", "?? new/file"}, sorted(r.status()), "status")
				return
			}
			must.Same(t, "refs/heads/agent-ci/x", r.Git("symbolic-ref", "HEAD"), "branch")
			must.Same(t, []string{" M src/deep/er/x", "?? mine"}, sorted(r.status()), "status")
		})
	}
}

// What a person did first is not lost, and then nothing of the change is written.
func TestRefusesLandingAtomically(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]struct {
		does    func(r repo)
		refused func(error) bool
	}{
		"edits a file of it":                 {func(r repo) { r.Write("README", "mine\n") }, is[*gitops.ChangedError]},
		"edits a file of it, and stages":     {func(r repo) { r.Write("README", "mine\n"); r.Git("add", "README") }, is[*gitops.ChangedError]},
		"edits a file that goes":             {func(r repo) { r.Write("gone", "mine\n") }, is[*gitops.ChangedError]},
		"makes one executable":               {func(r repo) { r.Chmod("README", 0o755) }, is[*gitops.ChangedError]},
		"makes a link of one":                {func(r repo) { r.Remove("README"); r.Link("gone", "README") }, is[*gitops.ChangedError]},
		"makes a file that it adds":          {func(r repo) { r.Write("new/file", "mine\n") }, is[*gitops.ObstructedError]},
		"makes an ignored file that it adds": {func(r repo) { r.Write("a.log", "mine\n") }, is[*gitops.ObstructedError]},
		"makes an empty folder there":        {func(r repo) { r.Write("a.log/x", ""); r.Remove("a.log/x") }, is[*gitops.ObstructedError]},
		"makes a file of its folder":         {func(r repo) { r.Write("new", "mine\n") }, is[*gitops.ObstructedError]},
		"makes a link of its folder":         {func(r repo) { r.Link("src", "new") }, is[*gitops.ObstructedError]},
		"has git at work":                    {func(r repo) { r.Write(".git/index.lock", "") }, is[*gitops.InUseError]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c, cs := landing(t)
			person.does(r)
			files, head, index := r.Files(), r.Git("for-each-ref")+r.Read(".git/HEAD"), r.Read(".git/index")
			for way, land := range ways {
				err := land(t, c, cs)
				must.Same(t, true, person.refused(err), way, err)
				must.Same(t, files, r.Files(), way, "files")
				must.Same(t, head, r.Git("for-each-ref")+r.Read(".git/HEAD"), way, "references")
				must.Same(t, index, r.Read(".git/index"), way, "index")
			}
		})
	}
}

// filtered is a checkout whose filter caps has the given smudge command, and a change of its files.
func filtered(t *testing.T, smudge string, base, change map[string]string) (repo, *gitops.Checkout, *gitops.ChangeSet) {
	t.Helper()
	r, tree := newRepo(t), gittest.New(t)
	for key, value := range map[string]string{"clean": "tr A-Z a-z", "smudge": smudge, "required": "true"} {
		r.Git("config", "filter.caps."+key, value)
	}
	for _, side := range []struct {
		gittest.Repo
		files map[string]string
	}{{r.Repo, base}, {tree, change}} {
		side.Write(".gitattributes", "*.caps filter=caps\n")
		side.WriteAll(side.files)
		side.Seed()
	}
	r.Git("fetch", "-q", tree.Dir, "HEAD")
	c := r.open()
	at := must.Get(c.SetBase(gitops.BaseSpec{}))(t)
	return r, c, between(t, c, at, gitops.Tree(tree.Git("rev-parse", "HEAD^{tree}")))
}

// A file that its filter would make otherwise lands as the run left it.
func TestLandsFilteredFilesUnchanged(t *testing.T) {
	t.Parallel()
	for way, land := range ways {
		r, c, cs := filtered(t, "cat", map[string]string{"a.caps": "old\n"}, map[string]string{"a.caps": "new\n", "b.caps": "b\n", "stale.caps": "stale\n"})
		made := at(t, t.TempDir())
		made.Write("a.caps", "NeW\n")
		made.Write("b.caps", "B\n")
		made.Write("stale.caps", "something else\n")
		root := must.Get(os.OpenRoot(made.Dir))(t)
		t.Cleanup(func() { root.Close() })
		c.CopyFilteredFrom(root)
		must.Do(t, land(t, c, cs), way)
		must.Same(t, "NeW\nB\nstale\n", r.Read("a.caps")+r.Read("b.caps")+r.Read("stale.caps"), way)
		if way == "a branch" {
			must.Same(t, nil, r.status(), "status")
		}
	}
}

// A filter that fails leaves every file of the checkout where it is.
func TestFailingFilterRemovesNoFile(t *testing.T) {
	t.Parallel()
	for way, land := range ways {
		r, c, cs := filtered(t, "false", map[string]string{"a.caps": "old\n", "b": "old\n"}, map[string]string{"a.caps": "new\n", "b": "new\n"})
		if err := land(t, c, cs); !is[*gitops.FilterError](err) {
			t.Errorf("%s: %v", way, err)
		}
		must.Same(t, "old\nold\n", r.Read("a.caps")+r.Read("b"), way)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
