package gitops_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

// shape is a kind of checkout, and what an agent does in it.
type shape struct {
	name      string
	make      func(r repo) repo
	agent     func(r repo)
	want      []string // name-status of the change
	untracked []string // status lines that stand before and after
	kept      []string // paths that the agent made and that no change holds: Restore leaves them
	problems  []gitops.ProblemKind
}

// seeded makes a repository with a few files and then does more.
func seeded(more ...func(r repo)) func(r repo) repo {
	return func(r repo) repo {
		for _, f := range more {
			f(r)
		}
		r.Seed()
		return r
	}
}

func edit(r repo) { r.Write("README", "one\n2\n") }

var shapes = []shape{
	{
		name: "plain", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Remove("gone")
			r.Write("src/new.go", "package main\n")
			r.Write("other/new", "n\n")
		},
		want: []string{"A other/new", "A src/new.go", "D gone", "M README"},
	},
	{name: "nothing changed", make: seeded(), agent: func(repo) {}},
	{name: "written again alike", make: seeded(), agent: func(r repo) { r.Write("README", "one\ntwo\n") }},
	{
		name: "executable bit", make: seeded(),
		agent: func(r repo) { r.Chmod("src/main.go", 0o755) },
		want:  []string{"M src/main.go"},
	},
	{
		name: "core.fileMode false",
		make: func(r repo) repo {
			r.Write("run.sh", "#!/bin/sh\n")
			r.Chmod("run.sh", 0o755)
			r.Seed()
			r.Git("config", "core.fileMode", "false")
			return r
		},
		agent: func(r repo) {
			r.Write("run.sh", "#!/bin/sh\nexit\n")
			r.Chmod("run.sh", 0o644)
		},
		want: []string{"M run.sh"},
	},
	{
		name: "renamed", make: seeded(),
		agent: func(r repo) {
			r.Write("moved/main.go", "package main\n")
			r.Remove("src/main.go")
		},
		want: []string{"A moved/main.go", "D src/main.go"},
	},
	{
		name: "folder becomes file", make: seeded(),
		agent: func(r repo) {
			r.Remove("src")
			r.Write("src", "a file now\n")
		},
		want: []string{"A src", "D src/deep/er/x", "D src/main.go"},
	},
	{
		name: "file becomes folder", make: seeded(),
		agent: func(r repo) {
			r.Remove("gone")
			r.Write("gone/in", "in\n")
			r.Write("gone/deeper/in", "in\n")
		},
		want: []string{"A gone/deeper/in", "A gone/in", "D gone"},
	},
	{
		name: "file becomes link", make: seeded(),
		agent: func(r repo) {
			r.Remove("gone")
			r.Link("README", "gone")
		},
		want: []string{"T gone"},
	},
	{
		name: "everything deleted", make: seeded(),
		agent: func(r repo) { r.Remove("README", "src", "gone") },
		want:  []string{"D README", "D gone", "D src/deep/er/x", "D src/main.go"},
	},
	{
		name: "names out of the ordinary", make: seeded(),
		agent: func(r repo) {
			for _, name := range []string{"grün/ä ö.txt", "tab\there", "line\nbreak", `quote"back\slash`, "-dash", "日本", "bad\xffutf8", "a-b", "a/b", "a.b"} {
				r.Write(name, name)
			}
		},
		want: []string{
			"A -dash", "A a-b", "A a.b", "A a/b", "A bad\xffutf8", "A grün/ä ö.txt", "A line\nbreak",
			"A quote\"back\\slash", "A tab\there", "A 日本",
		},
	},
	{
		name: "binary file", make: seeded(func(r repo) { r.Write("blob", "\x00\x01\x02") }),
		agent: func(r repo) { r.Write("blob", "\x00\x01\x02\x03\xff\x00") },
		want:  []string{"M blob"},
	},
	{
		name: "absolute and outward links that are tracked",
		make: seeded(func(r repo) {
			r.Link("/etc/passwd", "absolute")
			r.Link("../../outside", "outward")
			r.Link("/does/not/exist", "dangling")
		}),
		agent: edit,
		want:  []string{"M README"},
	},
	{
		name: "new link that leads out", make: seeded(),
		agent: func(r repo) {
			r.Link("/etc/passwd", "absolute")
			r.Link("../../x", "src/up")
			r.Link("../README", "src/fine")
			r.Link(".git/config", "inside")
		},
		want:     []string{"A absolute", "A inside", "A src/fine", "A src/up"},
		problems: []gitops.ProblemKind{gitops.ProblemLink, gitops.ProblemLink, gitops.ProblemLink},
	},
	{
		name: "new link that leads out by another one", make: seeded(),
		agent: func(r repo) {
			r.Link("..", "src/root")
			r.Link("root/../secret", "src/round")
		},
		want:     []string{"A src/root", "A src/round"},
		problems: []gitops.ProblemKind{gitops.ProblemLink},
	},
	{
		name: "ignored and new", make: seeded(func(r repo) { r.Write(".gitignore", "*.log\n/out/\n!keep.log\n") }),
		agent: func(r repo) {
			r.Write("x.log", "1")
			r.Write("out/y", "2")
			r.Write("keep.log", "3")
			r.Write("src/out/z", "4")
		},
		want: []string{"A keep.log", "A src/out/z"},
		kept: []string{"out/y", "x.log"},
	},
	{
		name: "tracked although ignored",
		make: func(r repo) repo {
			r.Write(".gitignore", "*.log\nbuild/\n")
			r.Write("a.log", "1\n")
			r.Write("build/x", "1\n")
			r.Seed()
			r.Git("add", "-f", "a.log", "build/x")
			r.Commit("ignored ones")
			return r
		},
		agent: func(r repo) {
			r.Write("a.log", "2\n")
			r.Write("build/x", "2\n")
			r.Write("build/y", "new but ignored\n")
		},
		want: []string{"M a.log", "M build/x"},
		kept: []string{"build/y"},
	},
	{
		name: "untracked before",
		make: func(r repo) repo {
			r.Seed()
			r.Write("mine", "the user's\n")
			r.Write("notes/mine", "the user's\n")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Write("notes/new", "the agent's\n")
		},
		want:      []string{"A notes/new", "M README"},
		untracked: []string{"?? mine", "?? notes/mine"},
	},
	{
		name: "info/exclude",
		make: func(r repo) repo {
			r.Seed()
			r.Write(".git/info/exclude", "private/\n*.tmp\n")
			r.Write("private/key", "k")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Write("a.tmp", "t")
			r.Write(".git/info/exclude", "new\n")
			r.Write("new", "n\n")
			r.Write(".git/info/exclude", "private/\n*.tmp\n")
		},
		want: []string{"A new", "M README"},
		kept: []string{"a.tmp"},
	},
	{
		name: "core.excludesFile",
		make: func(r repo) repo {
			r.Seed()
			r.Write("../excludes", "*.swp\n")
			r.Git("config", "core.excludesFile", r.Path("../excludes"))
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Write("a.swp", "t")
		},
		want: []string{"M README"},
		kept: []string{"a.swp"},
	},
	{
		name: "ignored before and no longer",
		make: func(r repo) repo {
			r.Write(".gitignore", "dist/\n*.log\n")
			r.Seed()
			r.Write("dist/bundle", "b")
			r.Write("a.log", "l")
			return r
		},
		agent: func(r repo) {
			r.Write(".gitignore", "")
			r.Write("fresh.log", "f\n")
		},
		want:      []string{"A fresh.log", "M .gitignore"},
		untracked: []string{"?? a.log", "?? dist/bundle"},
	},
	{
		name: "autocrlf true",
		make: func(r repo) repo {
			r.Seed()
			r.Git("config", "core.autocrlf", "true")
			r.Remove("README", "src")
			r.Git("checkout", "-q", ".")
			return r
		},
		agent: func(r repo) {
			r.Write("README", "one\r\n2\r\n")
			r.Write("dos", "a\r\nb\r\n")
			r.Write("unix", "a\nb\n")
			r.Write("src/main.go", "package main\r\n")
		},
		want: []string{"A dos", "A unix", "M README"},
	},
	{
		name: "autocrlf input",
		make: func(r repo) repo {
			r.Git("config", "core.autocrlf", "input")
			r.Seed()
			return r
		},
		agent: func(r repo) { r.Write("dos", "a\r\nb\r\n") },
		want:  []string{"A dos"},
	},
	{
		name: "CRLF in the repository with autocrlf",
		make: func(r repo) repo {
			r.Write("legacy", "a\r\nb\r\n")
			r.Seed()
			r.Git("config", "core.autocrlf", "true")
			return r
		},
		agent: func(r repo) { r.Write("legacy", "a\r\nB\r\n") },
		want:  []string{"M legacy"},
	},
	{
		name: "line ending attributes",
		make: func(r repo) repo {
			r.Write(".gitattributes", "* text=auto\n*.txt text eol=crlf\n*.sh text eol=lf\n*.bin -text\n")
			r.Write("a.txt", "a\r\nb\r\n")
			r.Write("a.sh", "a\nb\n")
			r.Write("a.bin", "a\r\nb\r\n")
			r.Write("sub/.gitattributes", "*.txt -text\n")
			r.Write("sub/a.txt", "a\r\nb\r\n")
			r.Seed()
			return r
		},
		agent: func(r repo) {
			r.Write("a.txt", "a\r\nB\r\n")
			r.Write("a.sh", "a\r\nb\r\n")
			r.Write("a.bin", "a\r\nB\r\n")
			r.Write("sub/b.txt", "x\r\n")
			r.Write("c.txt", "y\r\n")
		},
		want: []string{"A c.txt", "A sub/b.txt", "M a.bin", "M a.txt"},
	},
	{
		name: "clean and smudge filter",
		make: func(r repo) repo {
			r.Git("config", "filter.caps.clean", "tr A-Z a-z")
			r.Git("config", "filter.caps.smudge", "tr a-z A-Z")
			r.Git("config", "filter.caps.required", "true")
			r.Write(".gitattributes", "*.caps filter=caps\n")
			r.Write("a.caps", "HELLO\n")
			r.Write("b.caps", "UNTOUCHED\n")
			r.Write("sub/c.caps", "GOES\n")
			r.Seed()
			return r
		},
		agent: func(r repo) {
			r.Write("a.caps", "GOOD BYE\n")
			r.Write("new.caps", "NEW\n")
			r.Write("b.caps", "UNTOUCHED\n")
			r.Remove("sub/c.caps")
			edit(r)
		},
		want: []string{"A new.caps", "D sub/c.caps", "M README", "M a.caps"},
	},
	{
		name: "ident and encoding",
		make: func(r repo) repo {
			r.Write(".gitattributes", "*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n")
			r.Write("a.id", "$Id$\n")
			r.Write("a.u16", "h\x00i\x00\n\x00")
			r.Seed()
			r.Remove("a.id")
			r.Git("checkout", "-q", "a.id")
			return r
		},
		agent: func(r repo) {
			r.Write("a.id", "$Id: whatever $\nmore\n")
			r.Write("a.u16", "h\x00o\x00\n\x00")
		},
		want: []string{"M a.id", "M a.u16"},
	},
	{
		name: "filter that is not configured",
		make: func(r repo) repo {
			r.Write(".gitattributes", "*.big filter=lfs diff=lfs merge=lfs -text\n")
			r.Write("a.big", "version https://git-lfs.github.com/spec/v1\n")
			r.Seed()
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "shallow clone",
		make: func(r repo) repo {
			r.Seed()
			edit(r)
			r.Commit("second")
			r.Write("README", "one\ntwo\nthree\n")
			r.Commit("third")
			clone := at(r.T, r.Path("../clone"))
			r.Git("clone", "-q", "--depth=1", "file://"+r.Dir, clone.Dir)
			return clone
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "clone that borrows objects",
		make: func(r repo) repo {
			r.Seed()
			clone := at(r.T, r.Path("../clone"))
			r.Git("clone", "-q", "--shared", r.Dir, clone.Dir)
			return clone
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "packed",
		make: func(r repo) repo {
			r.Seed()
			r.Git("gc", "-q")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "repacked meanwhile", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Git("gc", "-q", "--prune=now")
		},
		want: []string{"M README"},
	},
	{
		name: "linked worktree",
		make: func(r repo) repo {
			r.Seed()
			linked := at(r.T, r.Path("../linked"))
			r.Git("worktree", "add", "-q", "-b", "side", linked.Dir)
			return linked
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "submodule",
		make: func(r repo) repo {
			other := newRepo(r.T)
			other.Seed()
			r.Seed()
			r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.Dir, "sub")
			r.Commit("with a submodule")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "submodule that is not checked out",
		make: func(r repo) repo {
			other := newRepo(r.T)
			other.Seed()
			r.Seed()
			r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.Dir, "sub")
			r.Commit("with a submodule")
			r.Git("submodule", "--quiet", "deinit", "-f", "sub")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "agent committed", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Commit("by the agent")
			r.Write("more", "m\n")
		},
		want: []string{"A more", "M README"},
	},
	{
		name: "agent made another branch and reset",
		make: func(r repo) repo {
			r.Write("README", "zero\n")
			r.Commit("before")
			r.Seed()
			return r
		},
		agent: func(r repo) {
			r.Git("checkout", "-q", "-b", "wild")
			r.Git("reset", "-q", "--hard", "HEAD~1")
		},
		want: []string{"D gone", "D src/deep/er/x", "D src/main.go", "M README"},
	},
	{
		name: "agent staged", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Write("new", "n\n")
			r.Git("add", "-A")
			r.Git("rm", "-q", "--cached", "gone")
		},
		want: []string{"A new", "M README"},
	},
	{
		name: "agent deleted the index", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Remove(".git/index")
		},
		want: []string{"M README"},
	},
	{
		name: "nested repository", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Git("init", "-q", "vendored")
			r.Write("vendored/file", "f\n")
		},
		want:     []string{"M README"},
		kept:     []string{"vendored/file"},
		problems: []gitops.ProblemKind{gitops.ProblemRepository},
	},
	{
		name: "repository made in a tracked folder", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Git("init", "-q", "src")
		},
		want:     []string{"M README"},
		problems: []gitops.ProblemKind{gitops.ProblemRepository},
	},
	{
		name: "nested repository that stood there",
		make: func(r repo) repo {
			r.Seed()
			r.Git("init", "-q", "vendored")
			r.Write("vendored/file", "f\n")
			return r
		},
		agent: edit, want: []string{"M README"},
		untracked: []string{"?? vendored/"},
	},
	{
		name: "base with an empty tree",
		make: func(r repo) repo {
			r.Git("commit", "-q", "--allow-empty", "-m", "nothing")
			return r
		},
		agent: func(r repo) { r.Write("a/b", "first\n") },
		want:  []string{"A a/b"},
	},
	{
		name: "detached HEAD",
		make: func(r repo) repo {
			r.Seed()
			r.Git("checkout", "-q", "--detach")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "packed references",
		make: func(r repo) repo {
			r.Seed()
			r.Git("pack-refs", "--all")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "index version 4",
		make: func(r repo) repo {
			r.Seed()
			r.Git("update-index", "--index-version", "4")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Write("src/deep/other", "o\n")
		},
		want: []string{"A src/deep/other", "M README"},
	},
	{
		name: "split index",
		make: func(r repo) repo {
			r.Seed()
			r.Git("update-index", "--split-index")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "assume unchanged",
		make: func(r repo) repo {
			r.Seed()
			r.Git("update-index", "--assume-unchanged", "gone")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "extensions.worktreeConfig without a sparse checkout",
		make: func(r repo) repo {
			r.Seed()
			r.Git("config", "extensions.worktreeConfig", "true")
			r.Git("config", "core.repositoryFormatVersion", "1")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name+"/switch", func(t *testing.T) { t.Parallel(); switchTo(t, s) })
	}
}

func switchTo(t *testing.T, s shape) {
	r := s.make(newRepo(t))
	base := r.Git("rev-parse", "HEAD")
	branch := r.Git("rev-parse", "--abbrev-ref", "HEAD")
	c := r.open()
	if _, err := c.SetBase(gitops.BaseSpec{}); err != nil {
		t.Fatal(err)
	}
	tree, in, snap, _ := private(t, c)
	s.agent(tree)
	cs := changes(t, in, snap)
	gittest.Same(t, "change", s.want, nameStatus(cs))
	gittest.Same(t, "problems", s.problems, kinds(cs))
	if len(s.want) == 0 {
		return
	}
	patchApplies(t, r, c, cs)
	packArrives(t, r, base, c, cs)

	sha := commit(t, c, cs)
	if err := c.Switch(t.Context(), "agent-ci/task", sha, cs); err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "diff of base and head", s.want, r.diffNameStatus(base, "HEAD"))
	gittest.Same(t, "HEAD", "refs/heads/agent-ci/task "+sha, r.Git("symbolic-ref", "HEAD")+" "+r.Git("rev-parse", "HEAD"))
	if branch != "HEAD" {
		gittest.Same(t, "base branch", base, r.Git("rev-parse", "refs/heads/"+branch))
	}
	if len(s.problems) == 0 {
		gittest.Same(t, "status", s.untracked, r.status())
	}
	gittest.Same(t, "status by content", nil, r.reread())
	r.Git("fsck", "--strict", "--no-dangling")
}

func kinds(cs *gitops.ChangeSet) []gitops.ProblemKind {
	var list []gitops.ProblemKind
	for _, p := range cs.Problems {
		list = append(list, p.Kind)
	}
	return list
}

// patchApplies applies the patch to the base in an index of its own.
func patchApplies(t *testing.T, r repo, c *gitops.Checkout, cs *gitops.ChangeSet) {
	t.Helper()
	var patch bytes.Buffer
	if err := c.WritePatch(t.Context(), cs, &patch); err != nil {
		t.Fatal(err)
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	r.GitWith(env, nil, "read-tree", cs.Base.SHA)
	r.GitWith(env, patch.Bytes(), "apply", "--cached", "--binary", "--whitespace=nowarn")
	gittest.Same(t, "tree of the patch", string(cs.Tree), r.GitWith(env, nil, "write-tree"))
}

// packArrives reads the pack in a fresh clone of the base.
func packArrives(t *testing.T, r repo, base string, c *gitops.Checkout, cs *gitops.ChangeSet) {
	t.Helper()
	var pack bytes.Buffer
	if err := c.WritePack(t.Context(), cs, &pack); err != nil {
		t.Fatal(err)
	}
	clone := at(t, filepath.Join(t.TempDir(), "clone"))
	r.Git("clone", "-q", "--no-checkout", "--no-local", r.Dir, clone.Dir)
	clone.Git("-c", "core.autocrlf=false", "checkout", "-q", "--detach", base)
	there := clone.open()
	got, err := there.ReadPack(t.Context(), bytes.NewReader(pack.Bytes()), cs.Tree)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "change that arrives", nameStatus(cs), nameStatus(got))
	gittest.Same(t, "its tree", cs.Tree, got.Tree)
}
