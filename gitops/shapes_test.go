package gitops_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// shape is a kind of checkout, and what an agent does in it.
type shape struct {
	name      string
	make      func(r repo) repo
	agent     func(r repo)
	want      []string // name-status of the change
	untracked []string // status lines that stand before and after
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

var readmeChanged = []string{"M README"}

var shapes = []shape{
	{
		name: "changes of every kind",
		make: seeded(func(r repo) {
			r.Write("blob", "\x00\x01\x02")
			r.Write("folder/deep/in", "in\n")
			r.Write("file", "a file\n")
			r.Write("moves", "moves\n")
			r.Write("becomes-link", "a file\n")
		}),
		agent: func(r repo) {
			edit(r)
			r.Remove("gone", "folder", "file", "moves", "becomes-link")
			r.Write("src/new.go", "package main\n")
			r.Write("other/new", "n\n")
			r.Chmod("src/main.go", 0o755)
			r.Write("moved/here", "moves\n")
			r.Write("folder", "a file now\n")
			r.Write("file/deeper/in", "in\n")
			r.Link("README", "becomes-link")
			r.Write("blob", "\x00\x01\x02\x03\xff\x00")
		},
		want: []string{
			"A file/deeper/in", "A folder", "A moved/here", "A other/new", "A src/new.go", "D file", "D folder/deep/in", "D gone", "D moves",
			"M README", "M blob", "M src/main.go", "T becomes-link",
		},
	},
	{name: "written again alike", make: seeded(), agent: func(r repo) { r.Write("README", "one\ntwo\n") }},
	{
		name: "core.fileMode false",
		make: func(r repo) repo {
			r.Write("run.sh", "#!/bin/sh\n")
			r.Chmod("run.sh", 0o755)
			return seededThen("config core.fileMode false")(r)
		},
		agent: func(r repo) {
			r.Write("run.sh", "#!/bin/sh\nexit\n")
			r.Chmod("run.sh", 0o644)
		},
		want: []string{"M run.sh"},
	},
	{
		name: "files that are nearly alike", make: seeded(), // their pack has no deltas
		agent: func(r repo) {
			var lines strings.Builder
			for i := range 2000 {
				fmt.Fprintln(&lines, i*i)
			}
			r.Write("one", lines.String()+"1")
			r.Write("two", lines.String()+"2")
		},
		want: []string{"A one", "A two"},
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
		name: "links that lead out",
		make: seeded(func(r repo) {
			r.Link("/etc/passwd", "tracked")
			r.Link("/does/not/exist", "dangling")
		}),
		agent: func(r repo) {
			r.Link("/etc/passwd", "absolute")
			r.Link("../../x", "src/up")
			r.Link("../README", "src/fine")
			r.Link(".git/config", "inside")
			r.Link("..", "src/root")
			r.Link("root/../secret", "src/round")
		},
		want:     []string{"A absolute", "A inside", "A src/fine", "A src/root", "A src/round", "A src/up"},
		problems: []gitops.ProblemKind{gitops.ProblemLink, gitops.ProblemLink, gitops.ProblemLink, gitops.ProblemLink},
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
	},
	{
		name: "tracked although ignored",
		make: func(r repo) repo {
			r.Write(".gitignore", "*.log\nbuild/\n")
			r.Write("a.log", "1\n")
			r.Write("build/x", "1\n")
			return seededThen("add -f a.log build/x", "commit -q -m ignored")(r)
		},
		agent: func(r repo) {
			r.Write("a.log", "2\n")
			r.Write("build/x", "2\n")
			r.Write("build/y", "new but ignored\n")
		},
		want: []string{"M a.log", "M build/x"},
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
		name: "ignored by info/exclude and core.excludesFile",
		make: func(r repo) repo {
			r.Seed()
			r.Write(".git/info/exclude", "private/\n*.tmp\n")
			r.Write("private/key", "k")
			r.Write("../excludes", "*.swp\n")
			r.Git("config", "core.excludesFile", r.Path("../excludes"))
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Write("a.tmp", "t")
			r.Write("a.swp", "t")
			r.Write("new", "n\n")
		},
		want: []string{"A new", "M README"},
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
			seededThen("config core.autocrlf true")(r)
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
		name: "line ending attributes",
		make: seeded(func(r repo) {
			r.Write(".gitattributes", "* text=auto\n*.txt text eol=crlf\n*.sh text eol=lf\n*.bin -text\n")
			r.Write("sub/.gitattributes", "*.txt -text\n")
			for _, name := range []string{"a.txt", "a.bin", "sub/a.txt"} {
				r.Write(name, "a\r\nb\r\n")
			}
			r.Write("a.sh", "a\nb\n")
		}),
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
			for _, name := range []string{"a.caps", "b.caps", "sub/c.caps"} {
				r.Write(name, "HELLO\n")
			}
			r.Seed()
			return r
		},
		agent: func(r repo) {
			r.Write("a.caps", "GOOD BYE\n")
			r.Write("new.caps", "NEW\n")
			r.Write("b.caps", "HELLO\n")
			r.Remove("sub/c.caps")
			edit(r)
		},
		want: []string{"A new.caps", "D sub/c.caps", "M README", "M a.caps"},
	},
	{
		name: "filter that is not configured",
		make: seeded(func(r repo) {
			r.Write(".gitattributes", "*.big filter=lfs diff=lfs merge=lfs -text\n")
			r.Write("a.big", "version https://git-lfs.github.com/spec/v1\n")
		}),
		agent: edit, want: readmeChanged,
	},
	{name: "shallow clone", make: clonedBy("--depth=1", "file://"), agent: edit, want: readmeChanged},
	{name: "clone that borrows objects", make: clonedBy("--shared", ""), agent: edit, want: readmeChanged},
	{
		name: "repacked meanwhile", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Git("gc", "-q", "--prune=now")
		},
		want: readmeChanged,
	},
	{
		name: "linked worktree",
		make: func(r repo) repo {
			seededThen("worktree add -q -b side ../linked")(r)
			return at(r.T, r.Path("../linked"))
		},
		agent: edit, want: readmeChanged,
	},
	{name: "submodule", make: withSubmodule, agent: edit, want: readmeChanged},
	{
		name: "submodule that is not checked out",
		make: func(r repo) repo {
			withSubmodule(r).Git("submodule", "--quiet", "deinit", "-f", "sub")
			return r
		},
		agent: edit, want: readmeChanged,
	},
	{
		name: "agent used git", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.Commit("by the agent")
			r.Write("more", "m\n")
			r.Git("checkout", "-q", "-b", "wild")
			r.Git("add", "-A")
			r.Git("rm", "-q", "--cached", "gone")
			r.Remove(".git/index")
		},
		want: []string{"A more", "M README"},
	},
	{
		name: "nested repositories",
		make: func(r repo) repo {
			seededThen("init -q old")(r).Write("old/file", "f\n")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.Git("init", "-q", "vendored")
			r.Write("vendored/file", "f\n")
			r.Git("init", "-q", "src")
		},
		want:      readmeChanged,
		untracked: []string{"?? old/"},
		problems:  []gitops.ProblemKind{gitops.ProblemRepository, gitops.ProblemRepository},
	},
	{
		name: "base with an empty tree",
		make: func(r repo) repo {
			r.Commit("nothing")
			return r
		},
		agent: func(r repo) { r.Write("a/b", "first\n") },
		want:  []string{"A a/b"},
	},
	{name: "detached HEAD", make: seededThen("checkout -q --detach"), agent: edit, want: readmeChanged},
	{
		name: "packed objects and references, index version 4",
		make: seededThen("gc -q", "pack-refs --all", "update-index --index-version 4", "update-index --assume-unchanged gone"),
		agent: func(r repo) {
			edit(r)
			r.Write("src/deep/other", "o\n")
		},
		want: []string{"A src/deep/other", "M README"},
	},
	{name: "split index", make: seededThen("update-index --split-index"), agent: edit, want: readmeChanged},
	{
		name: "extensions.worktreeConfig without a sparse checkout",
		make: seededThen("config extensions.worktreeConfig true", "config core.repositoryFormatVersion 1"), agent: edit, want: readmeChanged,
	},
}

// seededThen makes a repository with a few files and then runs commands of git.
func seededThen(commands ...string) func(r repo) repo {
	return func(r repo) repo {
		r.Seed()
		for _, command := range commands {
			r.Git(strings.Fields(command)...)
		}
		return r
	}
}

func clonedBy(option, scheme string) func(r repo) repo {
	return func(r repo) repo {
		r.Write("README", "zero\n")
		r.Commit("before")
		r.Seed()
		clone := at(r.T, r.Path("../clone"))
		r.Git("clone", "-q", option, scheme+r.Dir, clone.Dir)
		return clone
	}
}

func withSubmodule(r repo) repo {
	other := newRepo(r.T)
	other.Seed()
	r.Seed()
	r.AddSubmodule(other.Repo, "sub")
	r.Commit("with a submodule")
	return r
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { t.Parallel(); switchTo(t, s) })
	}
}

func switchTo(t *testing.T, s shape) {
	r := s.make(newRepo(t))
	base := r.Git("rev-parse", "HEAD")
	branch := r.Git("rev-parse", "--abbrev-ref", "HEAD")
	c := r.open()
	must.Get(c.SetBase(gitops.BaseSpec{}))(t)
	tree, in, snap, _ := private(t, c)
	s.agent(tree)
	cs := changes(t, in, snap)
	must.Same(t, s.want, nameStatus(cs), "change")
	must.Same(t, s.problems, kinds(cs), "problems")
	if len(s.want) == 0 {
		return
	}
	patchApplies(t, r, c, cs)
	packArrives(t, r, base, c, cs)

	sha := commit(t, c, cs)
	must.Do(t, c.Switch(t.Context(), "agent-ci/task", sha, cs))
	must.Same(t, s.want, r.diffNameStatus(base, "HEAD"), "diff of base and head")
	must.Same(t, "refs/heads/agent-ci/task "+sha, r.Git("symbolic-ref", "HEAD")+" "+r.Git("rev-parse", "HEAD"), "HEAD")
	if branch != "HEAD" {
		must.Same(t, base, r.Git("rev-parse", "refs/heads/"+branch), "base branch")
	}
	if len(s.problems) == 0 {
		must.Same(t, s.untracked, r.status(), "status")
	}
	must.Same(t, nil, r.reread(), "status by content")
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
	must.Do(t, c.WritePatch(t.Context(), cs, &patch))
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	r.GitWith(env, nil, "read-tree", cs.Base.SHA)
	r.GitWith(env, patch.Bytes(), "apply", "--cached", "--binary", "--whitespace=nowarn")
	must.Same(t, string(cs.Tree), r.GitWith(env, nil, "write-tree"), "tree of the patch")
}

// packArrives reads the pack in a fresh clone of the base.
func packArrives(t *testing.T, r repo, base string, c *gitops.Checkout, cs *gitops.ChangeSet) {
	t.Helper()
	var pack bytes.Buffer
	must.Do(t, c.WritePack(t.Context(), cs, &pack))
	clone := at(t, filepath.Join(t.TempDir(), "clone"))
	r.Git("clone", "-q", "--no-checkout", "--no-local", r.Dir, clone.Dir)
	clone.Git("-c", "core.autocrlf=false", "checkout", "-q", "--detach", base)
	there := clone.open()
	got := must.Get(there.ReadPack(t.Context(), bytes.NewReader(pack.Bytes()), cs.Tree))(t)
	must.Same(t, nameStatus(cs), nameStatus(got), "change that arrives")
	must.Same(t, cs.Tree, got.Tree, "its tree")
}
