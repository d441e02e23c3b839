package gitops_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A filter of the repository's own configuration came with the checkout, whoever made that.
func TestRefusesRepositoryFilters(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	r.Git("config", "filter.mine.clean", "cat")
	c := r.open()
	err := c.CheckFilters(t.Context())
	if refused, is := errors.AsType[*gitops.FilterError](err); !is || refused.Key != "filter.mine.clean" {
		t.Errorf("got %v, want a FilterError", err)
	}
	c.AllowFilters(map[string][]string{"mine": nil})
	must.Do(t, c.CheckFilters(t.Context()), "listed")
}

func TestDirty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(r repo)
		want []string
	}{
		"nothing":            {func(repo) {}, nil},
		"untracked":          {func(r repo) { r.Write("new", "n") }, nil},
		"touched":            {func(r repo) { r.Write("README", "one\ntwo\n") }, nil},
		"modified":           {edit, []string{"README"}},
		"deleted":            {func(r repo) { r.Remove("src") }, []string{"src/deep/er/x", "src/main.go"}},
		"mode":               {func(r repo) { r.Chmod("README", 0o755) }, []string{"README"}},
		"staged":             {func(r repo) { edit(r); r.Git("add", "README"); r.Write("README", "one\ntwo\n") }, []string{"README"}},
		"staged new":         {func(r repo) { r.Write("new", "n"); r.Git("add", "new") }, []string{"new"}},
		"intent to add":      {func(r repo) { r.Write("new", "n"); r.Git("add", "-N", "new") }, []string{"new"}},
		"removed from index": {func(r repo) { r.Git("rm", "-q", "--cached", "gone") }, []string{"gone"}},
		"no index at all":    {func(r repo) { r.Remove(".git/index") }, []string{"README", "gone", "src/deep/er/x", "src/main.go"}},
		"unresolved merge": {func(r repo) {
			r.Git("checkout", "-q", "-b", "other")
			edit(r)
			r.Commit("theirs")
			r.Git("checkout", "-q", "main")
			r.Write("README", "one\nzwei\n")
			r.Commit("ours")
			if err := r.TryGit("merge", "-q", "other"); err == nil {
				r.T.Fatal("the merge went well")
			}
		}, []string{"README"}},
		"submodule on another commit": {func(r repo) {
			other := newRepo(r.T)
			other.Seed()
			r.AddSubmodule(other.Repo, "sub")
			r.Commit("submodule")
			at(r.T, r.Path("sub")).Commit("in it")
		}, []string{"sub"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seededRepo(t)
			c.do(r)
			must.Same(t, c.want, must.Get(r.open().Snapshot(t.Context()))(t).Dirty(), "dirty")
		})
	}
}

func TestReadBase(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	c := r.open()
	r.Write("README", "not the base's\n")
	data, err := c.ReadBase("README", 100)
	must.Do(t, err)
	must.Same(t, "one\ntwo\n", string(data), "README")
	for _, path := range []string{"none", "src", "README/x", "../README", ""} {
		must.Is(t, fs.ErrNotExist, must.Err(c.ReadBase(path, 100)), path)
	}
	_, err = c.ReadBase("README", 3)
	var large *gitops.TooLargeError
	if !errors.As(err, &large) || *large != (gitops.TooLargeError{Path: "README", Size: 8, Limit: 3}) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

// twoBranches has main, checked out, and older, which lacks a file and has
// another.
func twoBranches(t *testing.T) repo {
	r := seededRepo(t)
	r.Git("checkout", "-q", "-b", "older")
	r.Write("only/older", "o\n")
	r.Write("README", "older\n")
	r.Remove("gone")
	r.Commit("older")
	r.Git("checkout", "-q", "main")
	return r
}

func TestSetBaseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec gitops.BaseSpec
		want func(error) bool
	}{
		"an unknown branch": {gitops.BaseSpec{Branch: "none"}, is[*gitops.UnknownBaseError]},
		"an unknown commit": {gitops.BaseSpec{SHA: strings.Repeat("1", 40)}, is[*gitops.UnknownBaseError]},
		"no commit":         {gitops.BaseSpec{SHA: "HEAD~1"}, is[*gitops.UnknownBaseError]},
		"a tag":             {gitops.BaseSpec{Branch: "v1"}, func(err error) bool { return strings.Contains(err.Error(), `the base "v1" is a tag in the checkout /`) }},
		"a path":            {gitops.BaseSpec{Branch: "../../config"}, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := twoBranches(t)
			r.Git("tag", "v1")
			before := r.Files()
			_, err := r.open().SetBase(c.spec)
			must.Same(t, true, c.want(err), err)
			must.Same(t, before, r.Files(), "work tree")
			must.Same(t, "refs/heads/main", r.Git("symbolic-ref", "HEAD"), "HEAD")
		})
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// A clone without files gets them as git would write them, filters included.
func TestOpenFillsFreshClone(t *testing.T) {
	origin := newRepo(t)
	origin.Write(".gitattributes", "*.bat eol=crlf\n*.caps filter=caps\n")
	origin.Write("x.bat", "a\n")
	origin.Write("x.caps", "a\n")
	origin.Link("x.bat", "link")
	origin.Seed()
	clone := func() repo {
		dir := filepath.Join(t.TempDir(), "clone")
		origin.Git("clone", "-q", "--no-checkout", origin.Dir, dir)
		return at(t, dir)
	}
	options := func(r repo) gitops.Options {
		return gitops.Options{Dir: r.Dir, Git: gittest.Program(t), State: t.TempDir(), CheckOutHead: true, OpenFilter: unconfined}
	}
	own := clone()
	own.Git("config", "filter.caps.smudge", "tr a-z A-Z")
	if _, err := gitops.Open(t.Context(), options(own)); !errors.As(err, new(*gitops.FilterError)) {
		t.Fatalf("with a filter that is not listed: %v", err)
	}
	t.Setenv("GIT_CONFIG_KEY_0", "filter.caps.smudge")
	t.Setenv("GIT_CONFIG_VALUE_0", "tr a-z A-Z")
	t.Setenv("GIT_CONFIG_COUNT", "2")
	t.Setenv("GIT_CONFIG_KEY_1", "filter.caps.clean")
	t.Setenv("GIT_CONFIG_VALUE_1", "tr A-Z a-z")
	r := clone()
	c := must.Get(gitops.Open(t.Context(), options(r)))(t)
	defer c.Close()
	must.Same(t, "a\r\n", r.Read("x.bat"), "line endings")
	must.Same(t, "A\n", r.Read("x.caps"), "filtered")
	must.Same(t, "", r.Git("status", "--porcelain"), "status")
	must.None(t, must.Get(c.Snapshot(t.Context()))(t).Dirty(), "dirty")
}

// What git keeps may be a pipe that nobody writes to.
func TestOpenDoesNotBlockOnPipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git/info/exclude", ".git/info/attributes", ".git/index", ".git/HEAD", ".git/shallow", ".git/objects/info/alternates"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			r := seededRepo(t)
			r.Remove(name)
			must.Do(t, syscall.Mkfifo(r.Path(name), 0o666))
			state := t.TempDir()
			c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.Dir, Git: gittest.Program(t), State: state})
			if err == nil {
				c.Close()
				t.Error("it was opened")
			}
		})
	}
}

func TestFailingFilterExcludesOnlyItsFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write(".gitattributes", "*.bin filter=large\n")
	r.Seed()
	r.Git("config", "filter.large.clean", "false")
	r.Git("config", "filter.large.required", "true")
	c := r.open()
	snap := snapshot(t, c)
	edit(r)
	r.Write("new.bin", "content")
	cs := changes(t, c, snap)
	must.Same(t, []string{"M README"}, nameStatus(cs), "change")
	must.Same(t, []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs), "problems")
}

// git would match this pattern for hours.
func TestCostlyAttributesExcludeOnlyTheirFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	deep := strings.Repeat("a/", 60) + "file"
	r.Write(deep, "old\n")
	r.Seed()
	c := r.open()
	snap := snapshot(t, c)
	r.Write(deep, "new\n")
	r.Write(".gitattributes", strings.Repeat("**/a*/", 14)+"x text\n")
	cs := changes(t, c, snap)
	must.Same(t, []string{"M " + deep}, nameStatus(cs), "change")
	must.Same(t, []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs), "problems")
}

func TestBaseContainsText(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	c := r.open()
	r.Write("README", "changed since\n")
	r.Write("new", "not committed\n")
	for text, want := range map[string]bool{
		"package main": true, "ackage mai": true, "to be deleted": true, "changed since": false, "not committed": false,
		"p.ckage": false, "one\ntwo": false, "": false, "-e one": false,
	} {
		must.Same(t, want, must.Get(c.BaseContainsText(t.Context(), text))(t), text)
	}
}

func TestBaseFiles(t *testing.T) {
	t.Parallel()
	r := seededRepo(t)
	r.Write(".github/Pull_Request_Template.md", "a\n")
	r.Write(".github/ISSUE_TEMPLATE/bug.md", "b\n")
	r.Link("../README", ".github/link.md")
	r.Commit("templates")
	c := r.open()
	r.Write(".github/untracked.md", "c\n")
	for folder, want := range map[string][]string{
		".github": {"Pull_Request_Template.md"}, ".github/ISSUE_TEMPLATE": {"bug.md"}, "none": nil, "README": nil, "../.github": nil,
	} {
		must.Same(t, want, must.Get(c.BaseFiles(folder))(t), folder)
	}
	must.Same(t, "README", must.Get(c.BaseFiles(""))(t)[0], "the root")
}
