package gitops_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

// shape is a kind of checkout, and what an agent does in it.
type shape struct {
	name      string
	needsGit  bool // cannot be worked in without the git program
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
		r.seed()
		return r
	}
}

func edit(r repo) { r.write("README", "one\n2\n") }

var shapes = []shape{
	{
		name: "plain", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.remove("gone")
			r.write("src/new.go", "package main\n")
			r.write("other/new", "n\n")
		},
		want: []string{"A other/new", "A src/new.go", "D gone", "M README"},
	},
	{name: "nothing changed", make: seeded(), agent: func(repo) {}},
	{name: "written again alike", make: seeded(), agent: func(r repo) { r.write("README", "one\ntwo\n") }},
	{
		name: "executable bit", make: seeded(),
		agent: func(r repo) { r.chmod("src/main.go", 0o755) },
		want:  []string{"M src/main.go"},
	},
	{
		name: "core.fileMode false",
		make: func(r repo) repo {
			r.write("run.sh", "#!/bin/sh\n")
			r.chmod("run.sh", 0o755)
			r.seed()
			r.git("config", "core.fileMode", "false")
			return r
		},
		agent: func(r repo) {
			r.write("run.sh", "#!/bin/sh\nexit\n")
			r.chmod("run.sh", 0o644)
		},
		want: []string{"M run.sh"},
	},
	{
		name: "renamed", make: seeded(),
		agent: func(r repo) {
			r.write("moved/main.go", "package main\n")
			r.remove("src/main.go")
		},
		want: []string{"A moved/main.go", "D src/main.go"},
	},
	{
		name: "folder becomes file", make: seeded(),
		agent: func(r repo) {
			r.remove("src")
			r.write("src", "a file now\n")
		},
		want: []string{"A src", "D src/deep/er/x", "D src/main.go"},
	},
	{
		name: "file becomes folder", make: seeded(),
		agent: func(r repo) {
			r.remove("gone")
			r.write("gone/in", "in\n")
			r.write("gone/deeper/in", "in\n")
		},
		want: []string{"A gone/deeper/in", "A gone/in", "D gone"},
	},
	{
		name: "file becomes link", make: seeded(),
		agent: func(r repo) {
			r.remove("gone")
			r.link("README", "gone")
		},
		want: []string{"T gone"},
	},
	{
		name: "everything deleted", make: seeded(),
		agent: func(r repo) { r.remove("README", "src", "gone") },
		want:  []string{"D README", "D gone", "D src/deep/er/x", "D src/main.go"},
	},
	{
		name: "names out of the ordinary", make: seeded(),
		agent: func(r repo) {
			for _, name := range []string{"grün/ä ö.txt", "tab\there", "line\nbreak", `quote"back\slash`, "-dash", "日本", "bad\xffutf8", "a-b", "a/b", "a.b"} {
				r.write(name, name)
			}
		},
		want: []string{
			"A -dash", "A a-b", "A a.b", "A a/b", "A bad\xffutf8", "A grün/ä ö.txt", "A line\nbreak",
			"A quote\"back\\slash", "A tab\there", "A 日本",
		},
	},
	{
		name: "binary file", make: seeded(func(r repo) { r.write("blob", "\x00\x01\x02") }),
		agent: func(r repo) { r.write("blob", "\x00\x01\x02\x03\xff\x00") },
		want:  []string{"M blob"},
	},
	{
		name: "absolute and outward links that are tracked",
		make: seeded(func(r repo) {
			r.link("/etc/passwd", "absolute")
			r.link("../../outside", "outward")
			r.link("/does/not/exist", "dangling")
		}),
		agent: edit,
		want:  []string{"M README"},
	},
	{
		name: "new link that leads out", make: seeded(),
		agent: func(r repo) {
			r.link("/etc/passwd", "absolute")
			r.link("../../x", "src/up")
			r.link("../README", "src/fine")
			r.link(".git/config", "inside")
		},
		want:     []string{"A absolute", "A inside", "A src/fine", "A src/up"},
		problems: []gitops.ProblemKind{gitops.ProblemLink, gitops.ProblemLink, gitops.ProblemLink},
	},
	{
		name: "new link that leads out by another one", make: seeded(),
		agent: func(r repo) {
			r.link("..", "src/root")
			r.link("root/../secret", "src/round")
		},
		want:     []string{"A src/root", "A src/round"},
		problems: []gitops.ProblemKind{gitops.ProblemLink},
	},
	{
		name: "ignored and new", make: seeded(func(r repo) { r.write(".gitignore", "*.log\n/out/\n!keep.log\n") }),
		agent: func(r repo) {
			r.write("x.log", "1")
			r.write("out/y", "2")
			r.write("keep.log", "3")
			r.write("src/out/z", "4")
		},
		want: []string{"A keep.log", "A src/out/z"},
		kept: []string{"out/y", "x.log"},
	},
	{
		name: "tracked although ignored",
		make: func(r repo) repo {
			r.write(".gitignore", "*.log\nbuild/\n")
			r.write("a.log", "1\n")
			r.write("build/x", "1\n")
			r.seed()
			r.git("add", "-f", "a.log", "build/x")
			r.commit("ignored ones")
			return r
		},
		agent: func(r repo) {
			r.write("a.log", "2\n")
			r.write("build/x", "2\n")
			r.write("build/y", "new but ignored\n")
		},
		want: []string{"M a.log", "M build/x"},
		kept: []string{"build/y"},
	},
	{
		name: "untracked before",
		make: func(r repo) repo {
			r.seed()
			r.write("mine", "the user's\n")
			r.write("notes/mine", "the user's\n")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.write("notes/new", "the agent's\n")
		},
		want:      []string{"A notes/new", "M README"},
		untracked: []string{"?? mine", "?? notes/mine"},
	},
	{
		name: "info/exclude",
		make: func(r repo) repo {
			r.seed()
			r.write(".git/info/exclude", "private/\n*.tmp\n")
			r.write("private/key", "k")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.write("a.tmp", "t")
			r.write(".git/info/exclude", "new\n")
			r.write("new", "n\n")
			r.write(".git/info/exclude", "private/\n*.tmp\n")
		},
		want: []string{"A new", "M README"},
		kept: []string{"a.tmp"},
	},
	{
		name: "core.excludesFile",
		make: func(r repo) repo {
			r.seed()
			r.write("../excludes", "*.swp\n")
			r.git("config", "core.excludesFile", r.path("../excludes"))
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.write("a.swp", "t")
		},
		want: []string{"M README"},
		kept: []string{"a.swp"},
	},
	{
		name: "ignored before and no longer",
		make: func(r repo) repo {
			r.write(".gitignore", "dist/\n*.log\n")
			r.seed()
			r.write("dist/bundle", "b")
			r.write("a.log", "l")
			return r
		},
		agent: func(r repo) {
			r.write(".gitignore", "")
			r.write("fresh.log", "f\n")
		},
		want:      []string{"A fresh.log", "M .gitignore"},
		untracked: []string{"?? a.log", "?? dist/bundle"},
	},
	{
		name: "autocrlf true",
		make: func(r repo) repo {
			r.seed()
			r.git("config", "core.autocrlf", "true")
			r.remove("README", "src")
			r.git("checkout", "-q", ".")
			return r
		},
		agent: func(r repo) {
			r.write("README", "one\r\n2\r\n")
			r.write("dos", "a\r\nb\r\n")
			r.write("unix", "a\nb\n")
			r.write("src/main.go", "package main\r\n")
		},
		want: []string{"A dos", "A unix", "M README"},
	},
	{
		name: "autocrlf input",
		make: func(r repo) repo {
			r.git("config", "core.autocrlf", "input")
			r.seed()
			return r
		},
		agent: func(r repo) { r.write("dos", "a\r\nb\r\n") },
		want:  []string{"A dos"},
	},
	{
		name: "CRLF in the repository with autocrlf",
		make: func(r repo) repo {
			r.write("legacy", "a\r\nb\r\n")
			r.seed()
			r.git("config", "core.autocrlf", "true")
			return r
		},
		agent: func(r repo) { r.write("legacy", "a\r\nB\r\n") },
		want:  []string{"M legacy"},
	},
	{
		name: "line ending attributes",
		make: func(r repo) repo {
			r.write(".gitattributes", "* text=auto\n*.txt text eol=crlf\n*.sh text eol=lf\n*.bin -text\n")
			r.write("a.txt", "a\r\nb\r\n")
			r.write("a.sh", "a\nb\n")
			r.write("a.bin", "a\r\nb\r\n")
			r.write("sub/.gitattributes", "*.txt -text\n")
			r.write("sub/a.txt", "a\r\nb\r\n")
			r.seed()
			return r
		},
		agent: func(r repo) {
			r.write("a.txt", "a\r\nB\r\n")
			r.write("a.sh", "a\r\nb\r\n")
			r.write("a.bin", "a\r\nB\r\n")
			r.write("sub/b.txt", "x\r\n")
			r.write("c.txt", "y\r\n")
		},
		want: []string{"A c.txt", "A sub/b.txt", "M a.bin", "M a.txt"},
	},
	{
		name: "clean and smudge filter", needsGit: true,
		make: func(r repo) repo {
			r.git("config", "filter.caps.clean", "tr A-Z a-z")
			r.git("config", "filter.caps.smudge", "tr a-z A-Z")
			r.git("config", "filter.caps.required", "true")
			r.write(".gitattributes", "*.caps filter=caps\n")
			r.write("a.caps", "HELLO\n")
			r.write("b.caps", "UNTOUCHED\n")
			r.write("sub/c.caps", "GOES\n")
			r.seed()
			return r
		},
		agent: func(r repo) {
			r.write("a.caps", "GOOD BYE\n")
			r.write("new.caps", "NEW\n")
			r.write("b.caps", "UNTOUCHED\n")
			r.remove("sub/c.caps")
			edit(r)
		},
		want: []string{"A new.caps", "D sub/c.caps", "M README", "M a.caps"},
	},
	{
		name: "ident and encoding", needsGit: true,
		make: func(r repo) repo {
			r.write(".gitattributes", "*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n")
			r.write("a.id", "$Id$\n")
			r.write("a.u16", "h\x00i\x00\n\x00")
			r.seed()
			r.remove("a.id")
			r.git("checkout", "-q", "a.id")
			return r
		},
		agent: func(r repo) {
			r.write("a.id", "$Id: whatever $\nmore\n")
			r.write("a.u16", "h\x00o\x00\n\x00")
		},
		want: []string{"M a.id", "M a.u16"},
	},
	{
		name: "filter that is not configured",
		make: func(r repo) repo {
			r.write(".gitattributes", "*.big filter=lfs diff=lfs merge=lfs -text\n")
			r.write("a.big", "version https://git-lfs.github.com/spec/v1\n")
			r.seed()
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "shallow clone",
		make: func(r repo) repo {
			r.seed()
			edit(r)
			r.commit("second")
			r.write("README", "one\ntwo\nthree\n")
			r.commit("third")
			clone := repo{r.t, r.path("../clone")}
			r.git("clone", "-q", "--depth=1", "file://"+r.dir, clone.dir)
			return clone
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "clone that borrows objects",
		make: func(r repo) repo {
			r.seed()
			clone := repo{r.t, r.path("../clone")}
			r.git("clone", "-q", "--shared", r.dir, clone.dir)
			return clone
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "packed",
		make: func(r repo) repo {
			r.seed()
			r.git("gc", "-q")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "repacked meanwhile", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.git("gc", "-q", "--prune=now")
		},
		want: []string{"M README"},
	},
	{
		name: "linked worktree",
		make: func(r repo) repo {
			r.seed()
			linked := repo{r.t, r.path("../linked")}
			r.git("worktree", "add", "-q", "-b", "side", linked.dir)
			return linked
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "submodule",
		make: func(r repo) repo {
			other := newRepo(r.t)
			other.seed()
			r.seed()
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
			r.commit("with a submodule")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "submodule that is not checked out",
		make: func(r repo) repo {
			other := newRepo(r.t)
			other.seed()
			r.seed()
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
			r.commit("with a submodule")
			r.git("submodule", "--quiet", "deinit", "-f", "sub")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "agent committed", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.commit("by the agent")
			r.write("more", "m\n")
		},
		want: []string{"A more", "M README"},
	},
	{
		name: "agent made another branch and reset",
		make: func(r repo) repo {
			r.write("README", "zero\n")
			r.commit("before")
			r.seed()
			return r
		},
		agent: func(r repo) {
			r.git("checkout", "-q", "-b", "wild")
			r.git("reset", "-q", "--hard", "HEAD~1")
		},
		want: []string{"D gone", "D src/deep/er/x", "D src/main.go", "M README"},
	},
	{
		name: "agent staged", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.write("new", "n\n")
			r.git("add", "-A")
			r.git("rm", "-q", "--cached", "gone")
		},
		want: []string{"A new", "M README"},
	},
	{
		name: "agent deleted the index", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.remove(".git/index")
		},
		want: []string{"M README"},
	},
	{
		name: "nested repository", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.git("init", "-q", "vendored")
			r.write("vendored/file", "f\n")
		},
		want:     []string{"M README"},
		kept:     []string{"vendored/file"},
		problems: []gitops.ProblemKind{gitops.ProblemRepository},
	},
	{
		name: "repository made in a tracked folder", make: seeded(),
		agent: func(r repo) {
			edit(r)
			r.git("init", "-q", "src")
		},
		want:     []string{"M README"},
		problems: []gitops.ProblemKind{gitops.ProblemRepository},
	},
	{
		name: "nested repository that stood there",
		make: func(r repo) repo {
			r.seed()
			r.git("init", "-q", "vendored")
			r.write("vendored/file", "f\n")
			return r
		},
		agent: edit, want: []string{"M README"},
		untracked: []string{"?? vendored/"},
	},
	{
		name: "base with an empty tree",
		make: func(r repo) repo {
			r.git("commit", "-q", "--allow-empty", "-m", "nothing")
			return r
		},
		agent: func(r repo) { r.write("a/b", "first\n") },
		want:  []string{"A a/b"},
	},
	{
		name: "detached HEAD",
		make: func(r repo) repo {
			r.seed()
			r.git("checkout", "-q", "--detach")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "packed references",
		make: func(r repo) repo {
			r.seed()
			r.git("pack-refs", "--all")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "index version 4",
		make: func(r repo) repo {
			r.seed()
			r.git("update-index", "--index-version", "4")
			return r
		},
		agent: func(r repo) {
			edit(r)
			r.write("src/deep/other", "o\n")
		},
		want: []string{"A src/deep/other", "M README"},
	},
	{
		name: "split index", needsGit: true,
		make: func(r repo) repo {
			r.seed()
			r.git("update-index", "--split-index")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "assume unchanged",
		make: func(r repo) repo {
			r.seed()
			r.git("update-index", "--assume-unchanged", "gone")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
	{
		name: "extensions.worktreeConfig without a sparse checkout",
		make: func(r repo) repo {
			r.seed()
			r.git("config", "extensions.worktreeConfig", "true")
			r.git("config", "core.repositoryFormatVersion", "1")
			return r
		},
		agent: edit, want: []string{"M README"},
	},
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		git := gitProgram(t)
		t.Run(s.name+"/switch", func(t *testing.T) { t.Parallel(); switchTo(t, s, git) })
		if s.needsGit {
			t.Run(s.name+"/restore", func(t *testing.T) { t.Parallel(); restore(t, s, git) })
			t.Run(s.name+"/refused without git", func(t *testing.T) { t.Parallel(); refusedWithoutGit(t, s) })
			continue
		}
		t.Run(s.name+"/switch without git", func(t *testing.T) { t.Parallel(); switchTo(t, s, "") })
		t.Run(s.name+"/restore without git", func(t *testing.T) { t.Parallel(); restore(t, s, "") })
	}
}

func refusedWithoutGit(t *testing.T, s shape) {
	r := s.make(newRepo(t))
	_, err := gitops.Open(t.Context(), gitops.Options{Dir: r.dir, State: t.TempDir()})
	var unsupported *gitops.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("opened without git: %v", err)
	}
}

func switchTo(t *testing.T, s shape, git string) {
	r := s.make(newRepo(t))
	base := r.git("rev-parse", "HEAD")
	branch := r.git("rev-parse", "--abbrev-ref", "HEAD")
	c := r.open(git)
	if _, err := c.SetBase(t.Context(), gitops.BaseSpec{}); err != nil {
		t.Fatal(err)
	}
	snap := snapshot(t, c)
	s.agent(r)
	cs := changes(t, c, snap)
	same(t, "change", s.want, nameStatus(cs))
	same(t, "problems", s.problems, kinds(cs))
	if len(s.want) == 0 {
		return
	}
	if git != "" || s.name != "binary file" {
		patchApplies(t, r, c, cs)
	}
	if git == "" || s.needsGit {
		packArrives(t, r, base, git, c, cs)
	}
	after := r.files()

	sha := commit(t, c, cs)
	if err := c.Switch(t.Context(), "agent-ci/task", sha, cs); err != nil {
		t.Fatal(err)
	}
	same(t, "work tree", after, r.files())
	same(t, "diff of base and head", s.want, r.diffNameStatus(base, "HEAD"))
	same(t, "HEAD", "refs/heads/agent-ci/task "+sha, r.git("symbolic-ref", "HEAD")+" "+r.git("rev-parse", "HEAD"))
	if branch != "HEAD" {
		same(t, "base branch", base, r.git("rev-parse", "refs/heads/"+branch))
	}
	if len(s.problems) == 0 {
		same(t, "status", s.untracked, r.status())
	}
	same(t, "status by content", nil, r.reread())
	r.git("fsck", "--strict", "--no-dangling")
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
	r.gitWith(env, nil, "read-tree", cs.Base.SHA)
	r.gitWith(env, patch.Bytes(), "apply", "--cached", "--binary", "--whitespace=nowarn")
	same(t, "tree of the patch", string(cs.Tree), r.gitWith(env, nil, "write-tree"))
}

// packArrives reads the pack in a fresh clone of the base.
func packArrives(t *testing.T, r repo, base, git string, c *gitops.Checkout, cs *gitops.ChangeSet) {
	t.Helper()
	var pack bytes.Buffer
	if err := c.WritePack(t.Context(), cs, "", &pack); err != nil {
		t.Fatal(err)
	}
	clone := repo{t, filepath.Join(t.TempDir(), "clone")}
	r.git("clone", "-q", "--no-checkout", "--no-local", r.dir, clone.dir)
	clone.git("-c", "core.autocrlf=false", "checkout", "-q", "--detach", base)
	there := clone.open(git)
	got, err := there.ReadPack(t.Context(), bytes.NewReader(pack.Bytes()), cs.Tree)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "change that arrives", nameStatus(cs), nameStatus(got))
	same(t, "its tree", cs.Tree, got.Tree)
}

func restore(t *testing.T, s shape, git string) {
	r := s.make(newRepo(t))
	head, err := os.ReadFile(gitDirFile(r, "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	base := r.git("rev-parse", "HEAD")
	before, status := r.files(), r.status()
	same(t, "status before", s.untracked, ignoredLater(status, s))
	c := r.open(git)
	snap := snapshot(t, c)
	s.agent(r)
	cs := changes(t, c, snap)
	if err := c.Restore(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	after := r.files()
	for _, name := range s.kept {
		delete(after, name)
	}
	same(t, "work tree", before, after)
	got, err := os.ReadFile(gitDirFile(r, "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "HEAD", string(head), string(got))
	same(t, "commit", base, r.git("rev-parse", "HEAD"))
	if len(s.problems) == 0 {
		same(t, "status", status, r.status())
	}
	same(t, "status by content", nil, r.reread())
}

// ignoredLater takes the shape's word where files become untracked only by the
// agent's change.
func ignoredLater(status []string, s shape) []string {
	if len(status) == 0 && len(s.untracked) > 0 {
		return s.untracked
	}
	return status
}

func gitDirFile(r repo, name string) string {
	return filepath.Join(r.git("rev-parse", "--absolute-git-dir"), name)
}
