package gitops_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestWithFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("a", "1\n")
	r.Write("dir/b", "2\n")
	r.Commit("base")
	c := r.open()
	snap := snapshot(t, c)
	r.Write("a", "one\n")
	cs := changes(t, c, snap)

	with, err := c.WithFile(t.Context(), cs, "dir/new/c", []byte("3\n"))
	if err != nil || len(with.Files) != 2 || with.Files[1].Path != "dir/new/c" || with.Files[1].Status != changeset.Added || with.Files[1].NewMode != "100644" {
		t.Fatalf("%+v, %v", with, err)
	}
	must.Same(t, "3\n", string(must.Get(c.ReadFile(with.Tree, "dir/new/c", 10))(t)), "it reads")
	must.Is(t, fs.ErrNotExist, must.Err(c.ReadFile(cs.Tree, "dir/new/c", 10)), "the change that it came from has it")
	if _, err := c.ReadFile(with.Tree, "a", 2); !errors.As(err, new(*gitops.TooLargeError)) {
		t.Errorf("a limit lets all through: %v", err)
	}
	must.Same(t, "1\n", string(must.Get(c.ReadBase("a", 10))(t)), "the base reads")
	must.Same(t, with.Files[1].NewID, must.Get(c.IDAt(with.Tree, "dir/new/c"))(t), "its id is")
	must.Same(t, "", must.Get(c.IDAt(with.Tree, "dir/none"))(t), "nothing has the id")
	for _, path := range []string{"../c", "/c", ".git/config", "dir/../c", ""} {
		must.Fail(t, "", must.Err(c.WithFile(t.Context(), cs, path, nil)), path, "is put into a change")
	}

	r.Write("run.sh", "true\n")
	r.Chmod("run.sh", 0o755)
	must.Same(t, "100755", must.Get(c.WithFile(t.Context(), changes(t, c, snap), "run.sh", []byte("false\n")))(t).Files[1].NewMode, "a program becomes")

	without, err := c.Without(t.Context(), with, "a")
	if err != nil || len(without.Files) != 1 || without.Files[0].Path != "dir/new/c" {
		t.Errorf("without a: %+v, %v", without, err)
	}
	if without, err = c.Without(t.Context(), without, "dir/new/c"); err != nil || !without.Empty() {
		t.Errorf("without both: %+v, %v", without, err)
	}
}

func TestHasBase(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("hooks/check.sh", "x\n")
	r.Write("a", "1\n")
	r.Link("hooks", "link")
	r.Commit("begin")
	c := r.open()
	for path, want := range map[string]bool{
		"hooks/check.sh": true, "./hooks/check.sh": true, "hooks": true, "hooks/none": false, "none": false, "a/b": false,
		"link": true, "link/check.sh": true, "link/none": true, // where a link leads is not looked up
	} {
		if got, err := c.HasBase(path); got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}
