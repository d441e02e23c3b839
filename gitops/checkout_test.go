package gitops_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

func TestOpenRefuses(t *testing.T) {
	plain := t.TempDir()
	bare := newRepo(t)
	bare.seed()
	bare.git("clone", "-q", "--bare", ".", "../bare.git")
	unborn := newRepo(t)
	for name, c := range map[string]struct {
		dir  string
		want error
	}{
		"no repository":     {plain, gitops.ErrNotRepository},
		"no such folder":    {filepath.Join(plain, "none"), gitops.ErrNotRepository},
		"a bare repository": {bare.path("../bare.git"), gitops.ErrBare},
		"no commit":         {unborn.dir, gitops.ErrNoCommit},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			_, err := gitops.Open(t.Context(), gitops.Options{Dir: c.dir, Git: gitProgram(t), State: state})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			same(t, "left behind", nil, sortedKeys(repo{t, state}.files()))
		})
	}
}

func TestOpenRefusesWhatItCannotDoRight(t *testing.T) {
	for name, prepare := range map[string]func(r repo) repo{
		"sparse": func(r repo) repo {
			r.git("sparse-checkout", "set", "src")
			return r
		},
		"sparse index": func(r repo) repo {
			r.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
			return r
		},
		"partial clone": func(r repo) repo {
			r.git("config", "uploadpack.allowFilter", "true")
			r.git("clone", "-q", "--filter=blob:none", "file://"+r.dir, r.path("../partial"))
			return repo{r.t, r.path("../partial")}
		},
		"sha256": func(r repo) repo {
			other := repo{r.t, r.path("../sha256")}
			r.git("init", "-q", "--object-format=sha256", other.dir)
			other.seed()
			return other
		},
		"reftable": func(r repo) repo {
			r.git("config", "core.repositoryFormatVersion", "1")
			r.git("config", "extensions.refStorage", "reftable")
			return r
		},
		"an unknown extension": func(r repo) repo {
			r.git("config", "core.repositoryFormatVersion", "1")
			r.git("config", "extensions.fromTheFuture", "true")
			return r
		},
		"configuration in the checkout": func(r repo) repo {
			r.write(".gitconfig", "[core]\n\tautocrlf = false\n")
			r.git("config", "include.path", "../.gitconfig")
			return r
		},
		"configuration that could come into the checkout": func(r repo) repo {
			r.git("config", "include.path", "../later")
			return r
		},
		"configuration in the checkout by a link": func(r repo) repo {
			r.link(r.path("later"), "../link")
			r.git("config", "include.path", "../../link")
			return r
		},
		"a filter out of the checkout": func(r repo) repo {
			r.write("tools/clean.sh", "cat\n")
			r.write(".gitattributes", "*.x filter=mine\n")
			r.git("config", "filter.mine.clean", "sh tools/clean.sh")
			r.git("add", "-A")
			return r
		},
	} {
		for _, variant := range []struct{ name, git string }{{"with git", gitProgram(t)}, {"without git", ""}} {
			t.Run(name+"/"+variant.name, func(t *testing.T) {
				t.Parallel()
				r := newRepo(t)
				r.seed()
				r = prepare(r)
				_, err := gitops.Open(t.Context(), gitops.Options{Dir: r.dir, Git: variant.git, State: t.TempDir()})
				var unsupported *gitops.UnsupportedError
				if !errors.As(err, &unsupported) {
					t.Errorf("got %v, want an UnsupportedError", err)
				}
			})
		}
	}
}

func TestOpenFromAFolderBelow(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.path("src/deep"), State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "root", want, c.Root())
}

func TestOriginHasNoCredentials(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.git("remote", "add", "origin", "https://user:secret@example.org/o/r.git")
	for _, git := range []string{gitProgram(t), ""} {
		same(t, "origin", "https://example.org/o/r.git", r.open(git).Origin())
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	r := newRepo(t)
	r.seed()
	state := t.TempDir()
	c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.dir, State: state})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(state)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the state folder: %v, %v", entries, err)
	}
}

func TestDirty(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r repo)
		want []string
	}{
		"nothing":            {func(repo) {}, nil},
		"untracked":          {func(r repo) { r.write("new", "n") }, nil},
		"touched":            {func(r repo) { r.write("README", "one\ntwo\n") }, nil},
		"modified":           {edit, []string{"README"}},
		"deleted":            {func(r repo) { r.remove("src") }, []string{"src/deep/er/x", "src/main.go"}},
		"mode":               {func(r repo) { r.chmod("README", 0o755) }, []string{"README"}},
		"staged":             {func(r repo) { edit(r); r.git("add", "README"); r.write("README", "one\ntwo\n") }, []string{"README"}},
		"staged new":         {func(r repo) { r.write("new", "n"); r.git("add", "new") }, []string{"new"}},
		"intent to add":      {func(r repo) { r.write("new", "n"); r.git("add", "-N", "new") }, []string{"new"}},
		"removed from index": {func(r repo) { r.git("rm", "-q", "--cached", "gone") }, []string{"gone"}},
		"no index at all":    {func(r repo) { r.remove(".git/index") }, []string{"README", "gone", "src/deep/er/x", "src/main.go"}},
		"unresolved merge": {func(r repo) {
			r.git("checkout", "-q", "-b", "other")
			edit(r)
			r.commit("theirs")
			r.git("checkout", "-q", "main")
			r.write("README", "one\nzwei\n")
			r.commit("ours")
			if err := r.tryGit("merge", "-q", "other"); err == nil {
				r.t.Fatal("the merge went well")
			}
		}, []string{"README"}},
		"submodule on another commit": {func(r repo) {
			other := newRepo(r.t)
			other.seed()
			r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
			r.commit("submodule")
			repo{r.t, r.path("sub")}.commit("in it")
		}, []string{"sub"}},
	} {
		for _, variant := range []struct{ name, git string }{{"with git", gitProgram(t)}, {"without git", ""}} {
			t.Run(name+"/"+variant.name, func(t *testing.T) {
				t.Parallel()
				r := newRepo(t)
				r.seed()
				c.do(r)
				got, err := r.open(variant.git).Dirty(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				same(t, "dirty", c.want, got)
			})
		}
	}
}

func TestReadBase(t *testing.T) {
	r := newRepo(t)
	r.seed()
	c := r.open("")
	r.write("README", "not the base's\n")
	data, err := c.ReadBase("README", 100)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "README", "one\ntwo\n", string(data))
	for _, path := range []string{"none", "src", "README/x", "../README", ""} {
		if _, err := c.ReadBase(path, 100); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, want fs.ErrNotExist", path, err)
		}
	}
	_, err = c.ReadBase("README", 3)
	var large *gitops.TooLargeError
	if !errors.As(err, &large) || *large != (gitops.TooLargeError{Path: "README", Size: 8, Limit: 3}) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

// What fails says once of which file, and once of which object.
func TestReadBaseOfADamagedObject(t *testing.T) {
	for name, spec := range map[string]string{"file": "HEAD:src/main.go", "folder": "HEAD:src"} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.seed()
			id := strings.TrimSpace(r.git("rev-parse", spec))
			object := r.path(".git/objects/" + id[:2] + "/" + id[2:])
			if err := os.Remove(object); err != nil {
				t.Fatal(err)
			}
			r.write(".git/objects/"+id[:2]+"/"+id[2:], "damaged")
			_, err := r.open("").ReadBase("src/main.go", 100)
			if err == nil {
				t.Fatal("it is read")
			}
			for _, what := range []string{`"src/main.go" of the base commit`, id} {
				if got := strings.Count(err.Error(), what); got != 1 {
					t.Errorf("%d times %s in: %v", got, what, err)
				}
			}
		})
	}
}

// twoBranches has main, checked out, and older, which lacks a file and has
// another.
func twoBranches(t *testing.T) repo {
	r := newRepo(t)
	r.seed()
	r.git("checkout", "-q", "-b", "older")
	r.write("only/older", "o\n")
	r.write("README", "older\n")
	r.remove("gone")
	r.commit("older")
	r.git("checkout", "-q", "main")
	return r
}

func TestSetBaseOnAnotherBranch(t *testing.T) {
	for _, variant := range []struct{ name, git string }{{"with git", gitProgram(t)}, {"without git", ""}} {
		t.Run(variant.name, func(t *testing.T) {
			r := twoBranches(t)
			r.write("untracked", "u\n")
			main, older := r.git("rev-parse", "main"), r.git("rev-parse", "older")
			before := r.files()
			c := r.open(variant.git)
			base, err := c.SetBase(t.Context(), gitops.BaseSpec{Branch: "older"})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "base", gitops.Base{Branch: "older", SHA: older, Tree: gitops.Tree(r.git("rev-parse", "older^{tree}"))}, base)
			same(t, "status", []string{"?? untracked"}, r.status())
			same(t, "HEAD", older, r.git("rev-parse", "HEAD"))
			same(t, "branches", main+" "+older, r.git("rev-parse", "main")+" "+r.git("rev-parse", "older"))

			snap := snapshot(t, c)
			r.write("only/older", "changed\n")
			cs := changes(t, c, snap)
			same(t, "change", []string{"M only/older"}, nameStatus(cs))
			if err := c.Restore(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			same(t, "work tree", before, r.files())
			same(t, "status after", []string{"?? untracked"}, r.status())
			same(t, "HEAD after", "refs/heads/main "+main, r.git("symbolic-ref", "HEAD")+" "+r.git("rev-parse", "HEAD"))
		})
	}
}

func TestSetBaseToACommitAndSwitch(t *testing.T) {
	r := twoBranches(t)
	older := r.git("rev-parse", "older")
	c := r.open("")
	if _, err := c.SetBase(t.Context(), gitops.BaseSpec{SHA: older}); err != nil {
		t.Fatal(err)
	}
	snap := snapshot(t, c)
	r.write("new", "n\n")
	cs := changes(t, c, snap)
	if err := c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs); err != nil {
		t.Fatal(err)
	}
	same(t, "status", nil, r.status())
	same(t, "diff", []string{"A new"}, r.diffNameStatus("older", "HEAD"))
}

func TestSetBaseOfTheRemote(t *testing.T) {
	r := twoBranches(t)
	clone := repo{t, r.path("../clone")}
	r.git("clone", "-q", r.dir, clone.dir)
	c := clone.open("")
	base, err := c.SetBase(t.Context(), gitops.BaseSpec{Branch: "older"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "base", r.git("rev-parse", "older"), base.SHA)
	same(t, "branches", "main", clone.git("for-each-ref", "--format=%(refname:short)", "refs/heads"))
}

func TestSetBaseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(r repo)
		spec    gitops.BaseSpec
		want    func(error) bool
	}{
		"an unknown branch": {nil, gitops.BaseSpec{Branch: "none"}, is[*gitops.UnknownBaseError]},
		"an unknown commit": {nil, gitops.BaseSpec{SHA: strings.Repeat("1", 40)}, is[*gitops.UnknownBaseError]},
		"no commit":         {nil, gitops.BaseSpec{SHA: "HEAD~1"}, is[*gitops.UnknownBaseError]},
		"a path":            {nil, gitops.BaseSpec{Branch: "../../config"}, func(err error) bool { return err != nil }},
		"a dirty tree":      {edit, gitops.BaseSpec{Branch: "older"}, is[*gitops.DirtyError]},
		"a file in the way": {func(r repo) { r.write("only/older", "mine\n") }, gitops.BaseSpec{Branch: "older"}, is[*gitops.ObstructedError]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := twoBranches(t)
			if c.prepare != nil {
				c.prepare(r)
			}
			before := r.files()
			_, err := r.open("").SetBase(t.Context(), c.spec)
			if !c.want(err) {
				t.Errorf("got %v", err)
			}
			same(t, "work tree", before, r.files())
			same(t, "HEAD", "refs/heads/main", r.git("symbolic-ref", "HEAD"))
		})
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
