package objects_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/policy/must"
)

// large is more than is held in memory.
var large = strings.Repeat("0123456789abcdef", 100_000)

func content(t *testing.T, s *objects.Store, id plumbing.Hash) string {
	t.Helper()
	r, size, err := s.Blob(id)
	must.Do(t, err)
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != size {
		t.Fatalf("%d bytes of %d: %v", len(data), size, err)
	}
	return string(data)
}

func TestFindsLooseAndPackedObjects(t *testing.T) {
	r := gittest.New(t)
	r.Write("small", "s\n")
	r.Write("large", large)
	r.Commit("seed")
	for _, packed := range []bool{false, true} {
		if packed {
			r.Git("gc", "-q")
		}
		own := emptyStore(t)
		s := open(t, own, r.Path(".git"))
		must.Same(t, "s\n", content(t, s, revision(r, "HEAD:small")), "small")
		must.Same(t, large, content(t, s, revision(r, "HEAD:large")), "the large file is another one")
		must.Same(t, []string{revision(r, "HEAD:large").String()}, looseIn(t, own), "kept for its size")
		c, err := s.Commit(revision(r, "HEAD"))
		if err != nil || c.TreeHash != revision(r, "HEAD^{tree}") || c.Message != "seed\n" || c.Hash != revision(r, "HEAD") {
			t.Errorf("the commit is %+v, %v", c, err)
		}
	}
}

func TestReportsMissingObjects(t *testing.T) {
	r := gittest.Seeded(t)
	none := plumbing.NewHash(strings.Repeat("1", 40))
	for _, s := range []*objects.Store{open(t, "", r.Path(".git")), open(t, emptyStore(t)), open(t, emptyStore(t), r.Path(".git"))} {
		must.Same(t, false, s.Has(none), "it has what is not there")
		if _, err := s.Commit(none); !errors.Is(err, plumbing.ErrObjectNotFound) || errors.As(err, new(*objects.DamagedError)) {
			t.Errorf("a commit: %v", err)
		}
		var damaged *objects.DamagedError
		if _, err := s.Tree(none); !errors.As(err, &damaged) || damaged.ID != none.String() {
			t.Errorf("a tree: %v", err)
		}
		if _, _, err := s.Blob(none); !errors.As(err, &damaged) {
			t.Errorf("a blob: %v", err)
		}
	}
	s := open(t, "", r.Path(".git"))
	if _, _, err := s.Blob(revision(r, "HEAD")); err == nil {
		t.Error("a commit is no blob")
	}
}

// The caller names the alternates. go-git's own search would never end in a folder that borrows from itself.
func TestIgnoresAlternates(t *testing.T) {
	lender, borrower := gittest.New(t), gittest.New(t)
	lender.Write("file", "lent\n")
	lender.Commit("seed")
	id, lent := revision(lender, "HEAD:file"), borrower.Path(".git/lent")
	must.Do(t, os.Rename(lender.Path(".git"), lent))
	borrower.Write(".git/objects/info/alternates", lent+"/objects\n")
	must.Same(t, true, open(t, "", lent).Has(id), "the lender has lost it")
	if _, _, err := open(t, "", borrower.Path(".git")).Blob(id); !errors.Is(err, plumbing.ErrObjectNotFound) {
		t.Errorf("it was found: %v", err)
	}
}

func TestHashesBorrowedObjects(t *testing.T) {
	r := gittest.New(t)
	r.Write("file", "right\n")
	r.Commit("seed")
	id := revision(r, "HEAD:file")
	for _, wrong := range []string{"wrong\n", large} {
		r.Plant(".git", id.String(), wrong)
		own := emptyStore(t)
		s := open(t, own, r.Path(".git"))
		var damaged *objects.DamagedError
		if _, _, err := s.Blob(id); !errors.As(err, &damaged) || damaged.ID != id.String() || !strings.Contains(err.Error(), "another content") {
			t.Errorf("%.10q: %v", wrong, err)
		}
		must.Fail(t, "", s.OwnFiles(t.Context(), []index.Entry{{Path: "file", Mode: index.Regular, ID: id}}), "it was copied")
		must.Same(t, false, open(t, own).Has(id), "the store took it for its own")
	}
}

func TestCheckOwn(t *testing.T) {
	r := gittest.Seeded(t)
	readme, gone := revision(r, "HEAD:README"), plumbing.NewHash(strings.Repeat("1", 40))
	must.Do(t, open(t, r.Path(".git")).CheckOwn([]plumbing.Hash{readme, gone}), "what is whole, or not there")
	r.Plant(".git", readme.String(), "wrong\n")
	if err := open(t, r.Path(".git")).CheckOwn([]plumbing.Hash{readme}); !errors.As(err, new(*objects.DamagedError)) {
		t.Errorf("what is not: %v", err)
	}
}

func TestCheckFilesNamesDamagedFile(t *testing.T) {
	r := gittest.Seeded(t)
	s := open(t, emptyStore(t), r.Path(".git"))
	changes := must.Get(s.Differences(t.Context(), plumbing.ZeroHash, revision(r, "HEAD^{tree}")))(t)
	must.Do(t, s.CheckFiles(t.Context(), changes))
	id := revision(r, "HEAD:src/main.go").String()
	r.Remove(".git/objects/" + id[:2] + "/" + id[2:])
	later := open(t, emptyStore(t), r.Path(".git"))
	if err := later.CheckFiles(t.Context(), changes); !errors.As(err, new(*objects.DamagedError)) || !strings.Contains(err.Error(), `"src/main.go"`) {
		t.Errorf("got %v", err)
	}
}

func TestBlobBytesEnforcesLimit(t *testing.T) {
	s := open(t, emptyStore(t))
	id := must.Get(s.WriteBytes(plumbing.BlobObject, []byte("12345")))(t)
	must.Same(t, "12345", string(must.Get(s.BlobBytes(id, 5))(t)))
	var large *objects.TooLargeError
	if _, err := s.BlobBytes(id, 4); !errors.As(err, &large) || large.Size != 5 || large.Limit != 4 {
		t.Errorf("over the limit: %v", err)
	}
}

func TestWriteMatchesGit(t *testing.T) {
	r := gittest.New(t)
	s := open(t, r.Path(".git"))
	for _, text := range []string{"", "a\n", large} {
		id := must.Get(s.Write(plumbing.BlobObject, int64(len(text)), strings.NewReader(text)))(t)
		must.Same(t, r.GitWith(nil, []byte(text), "hash-object", "--stdin"), id.String(), "id")
		if again, err := s.WriteBytes(plumbing.BlobObject, []byte(text)); err != nil || again != id {
			t.Errorf("again it is %s, %v", again, err)
		}
		must.Same(t, int64(len(text)), must.Get(s.Size(id))(t), "its size")
	}
	r.Git("fsck", "--strict")
}

// A file that grows or shrinks while it is read is no object.
func TestWriteRefusesWrongSize(t *testing.T) {
	own := emptyStore(t)
	s := open(t, own)
	for _, size := range []int64{3, 5} {
		must.Fail(t, "", must.Err(s.Write(plumbing.BlobObject, size, strings.NewReader("four"))), size, "bytes")
	}
	left, err := filepath.Glob(filepath.Join(own, "objects", "*_obj_*"))
	if err != nil || len(left)+len(looseIn(t, own)) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestIsAncestorAsGit(t *testing.T) {
	r := gittest.New(t)
	r.Commit("base")
	r.Git("checkout", "-q", "-b", "side")
	r.Commit("on the side")
	r.Git("checkout", "-q", "main")
	r.Commit("on main")
	r.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	r.Git("checkout", "-q", "--orphan", "other")
	r.Commit("another root")
	names := []string{"main", "main~1", "main~2", "side", "other"}
	s := open(t, "", r.Path(".git"))
	for _, old := range names {
		for _, now := range names {
			cmd := exec.Command("git", "merge-base", "--is-ancestor", old, now)
			cmd.Dir = r.Dir
			want := cmd.Run() == nil
			must.Same(t, want, must.Get(s.IsAncestor(t.Context(), revision(r, old), revision(r, now)))(t), old, now)
		}
	}
	// A shallow history ends where its parents are not.
	r.Git("clone", "-q", "--depth=1", "file://"+r.Dir, "../shallow")
	shallow := open(t, "", r.Path("../shallow/.git"))
	if is, err := shallow.IsAncestor(t.Context(), revision(r, "side"), revision(r, "other")); err != nil || is {
		t.Errorf("beyond a shallow history: %t, %v", is, err)
	}
}
