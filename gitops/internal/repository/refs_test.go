package repository_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestReadRefMatchesGit(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("branch", "packed")
	r.Git("branch", "both")
	r.Git("pack-refs", "--all")
	r.Commit("later")
	r.Git("branch", "-f", "both")
	r.Git("branch", "deep/er/loose")
	r.Git("symbolic-ref", "refs/heads/symbolic", "refs/heads/packed")
	refs := open(t, r.Dir)
	for _, name := range []string{"refs/heads/main", "refs/heads/packed", "refs/heads/both", "refs/heads/deep/er/loose", "refs/heads/symbolic", "HEAD"} {
		must.Same(t, r.Git("rev-parse", name), must.Get(refs.ReadRef(name))(t).String(), name)
	}
}

func TestReadFindsNoReference(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("symbolic-ref", "refs/heads/unborn", "refs/heads/none")
	r.Write(".git/refs/heads/a", "ref: refs/heads/b\n")
	r.Write(".git/refs/heads/b", "ref: refs/heads/a\n")
	r.Write(".git/refs/heads/text", "no id\n")
	refs := open(t, r.Dir)
	for name, missing := range map[string]bool{
		"refs/heads/none": true, "refs/heads/unborn": true,
		"refs/heads/a": false, "refs/heads/text": false, "refs/heads/../../config": false, "": false,
	} {
		if id, err := refs.ReadRef(name); err == nil || errors.Is(err, repository.ErrNoRef) != missing {
			t.Errorf("%q is %s, %v", name, id, err)
		}
	}
}

func TestHead(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r.Dir)
	first := r.Git("rev-parse", "HEAD")
	for _, want := range []string{"ref: refs/heads/main", first} {
		text, id, err := c.Head()
		if err != nil || text != want || id.String() != first {
			t.Errorf("HEAD is %q, %s, %v; want %q", text, id, err, want)
		}
		r.Git("checkout", "-q", "--detach")
	}
	r.Git("checkout", "-q", "--orphan", "unborn")
	if text, id, err := c.Head(); text != "ref: refs/heads/unborn" || !id.IsZero() || !errors.Is(err, repository.ErrNoRef) {
		t.Errorf("an unborn HEAD is %q, %s, %v", text, id, err)
	}
	r.Write(".git/HEAD", "gibberish\n")
	if text, _, err := c.Head(); err == nil {
		t.Errorf("HEAD is %q without an error", text)
	}
}

func TestMovesHeadAndBranchLikeGit(t *testing.T) {
	r := gittest.Seeded(t)
	first := r.Git("rev-parse", "HEAD")
	r.Commit("later")
	r.Write(".git/refs/heads/new/left/behind", "")
	r.Remove(".git/refs/heads/new/left/behind")
	c := open(t, r.Dir)
	must.Do(t, c.SetBranch("new", plumbing.ZeroHash, plumbing.NewHash(first), "commit: x\nand no more"))
	for _, from := range []string{"", r.Git("rev-parse", "main")} {
		if err := c.SetBranch("new", plumbing.NewHash(from), plumbing.NewHash(first), "x"); !errors.As(err, new(*repository.BranchMovedError)) {
			t.Errorf("a branch that is not at %q: %v", from, err)
		}
	}
	must.Do(t, c.MoveHead("ref: refs/heads/main", "ref: refs/heads/new", first, "new"))
	must.Same(t, "refs/heads/new "+first, r.Git("symbolic-ref", "HEAD")+" "+r.Git("rev-parse", "HEAD"), "HEAD")
	must.Same(t, "checkout: moving from main to new", r.Git("log", "-g", "-1", "--format=%gs", "HEAD"), "log of HEAD")
	must.Same(t, "commit: x", r.Git("log", "-g", "-1", "--format=%gs", "new"), "log of the branch")
	must.Do(t, c.MoveHead("ref: refs/heads/new", first, first, first))
	must.Same(t, first, strings.TrimSpace(r.Read(".git/HEAD")), "HEAD")
	r.Git("fsck", "--strict")
}

func TestWritesNoReflog(t *testing.T) {
	victim := gittest.New(t)
	victim.Write("file", "mine\n")
	r := gittest.Seeded(t)
	head := r.Git("rev-parse", "HEAD")
	r.Remove(".git/logs/HEAD")
	r.Link(victim.Path("file"), ".git/logs/HEAD")
	must.Fail(t, "", open(t, r.Dir).MoveHead("ref: refs/heads/main", head, head, head), "the log was written through a link")
	must.Same(t, "ref: refs/heads/main", strings.TrimSpace(r.Read(".git/HEAD")), "HEAD whose log cannot be written")
	must.Same(t, "mine\n", victim.Read("file"), "what the link leads to")
	r.Remove(".git/logs")
	r.Git("config", "core.logAllRefUpdates", "false")
	must.Do(t, open(t, r.Dir).MoveHead("ref: refs/heads/main", head, head, head))
	must.Fail(t, "", must.Err(os.Lstat(r.Path(".git/logs"))), "a log was written that git is not to write")
}

func TestWritesNothingDuringGit(t *testing.T) {
	r := gittest.Seeded(t)
	head := r.Git("rev-parse", "HEAD")
	c := open(t, r.Dir)
	ix := must.Get(c.Index(t.Context()))(t)
	for _, lock := range []string{"HEAD", "index", "refs/heads/main"} {
		r.Write(".git/"+lock+".lock", "")
	}
	for name, err := range map[string]error{
		"HEAD":   c.MoveHead("ref: refs/heads/main", head, head, head),
		"index":  c.WriteIndex(ix, nil),
		"branch": c.SetBranch("main", plumbing.NewHash(head), plumbing.NewHash(head), "x"),
		"free":   c.CheckFree(t.Context(), "other"),
	} {
		must.Fail(t, ".lock is there", err, name)
		must.Same(t, true, errors.As(err, new(*repository.InUseError)), name)
	}
	must.Same(t, "ref: refs/heads/main\n", r.Read(".git/HEAD"), "HEAD")
}

func TestCheckFree(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("branch", "packed/below")
	r.Git("pack-refs", "--all")
	r.Git("worktree", "add", "-q", "-b", "elsewhere", "../other")
	c := open(t, r.Dir)
	for branch, free := range map[string]bool{"new": true, "main": true, "elsewhere": false, "packed": false, "packed/below/more": false} {
		err := c.CheckFree(t.Context(), branch)
		must.Same(t, free, err == nil, branch, err)
	}
	must.Fail(t, "", open(t, r.Path("../other")).CheckFree(t.Context(), "main"), "main is free, which the first work tree has checked out")
}
