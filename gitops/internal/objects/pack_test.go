package objects_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// packed is a repository with one pack of many deltas. It returns the path of the index of the pack.
func packed(t *testing.T) (r gittest.Repo, idx string) {
	t.Helper()
	r = gittest.New(t)
	text := strings.Repeat("a line that is the same in each version of the file\n", 400)
	for i := range 12 {
		text += fmt.Sprintf("line %d\n", i)
		r.Write("file", text)
		r.Write(fmt.Sprintf("d%d/file", i), fmt.Sprintf("%d\n", i))
		r.Commit(fmt.Sprintf("commit %d", i))
	}
	r.Git("repack", "-q", "-a", "-d", "-f", "--depth=50")
	found, err := filepath.Glob(r.Path(".git/objects/pack/*.idx"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	return r, found[0]
}

// rewrite replaces a file, which git has written without the right to write.
func rewrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestReadsPackAsGit(t *testing.T) {
	r, idx := packed(t)
	for _, offsets := range []string{"of 4 bytes", "of 8 bytes"} {
		if offsets == "of 8 bytes" {
			long := filepath.Join(t.TempDir(), "long.idx")
			r.Git("index-pack", "--index-version=2,0x40", "-o", long, strings.TrimSuffix(idx, ".idx")+".pack")
			data, err := os.ReadFile(long)
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, idx, data)
		}
		s := open(t, emptyStore(t), r.Path(".git"))
		deltas := 0
		for line := range strings.SplitSeq(r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize) %(deltabase)"), "\n") {
			fields := strings.Fields(line)
			id := plumbing.NewHash(fields[0])
			if size, err := s.Size(id); err != nil || fmt.Sprint(size) != fields[2] || !s.Has(id) {
				t.Fatalf("%s with offsets %s: %d bytes, %v", line, offsets, size, err)
			}
			if fields[1] == "blob" {
				gittest.Same(t, line, r.Git("cat-file", "blob", fields[0]), strings.TrimSpace(content(t, s, id)))
			}
			if fields[3] != plumbing.ZeroHash.String() {
				deltas++
			}
		}
		if deltas < 10 {
			t.Errorf("only %d objects are deltas", deltas)
		}
	}
}

func TestFindsObjectsAfterRepack(t *testing.T) {
	r, _ := packed(t)
	s := open(t, emptyStore(t), r.Path(".git"))
	before := revision(r, "HEAD")
	r.Commit("later")
	later := revision(r, "HEAD")
	if _, err := s.Commit(before); err != nil {
		t.Fatal(err)
	}
	r.Git("gc", "-q", "--prune=now")
	for _, id := range []plumbing.Hash{later, before} {
		if _, err := s.Commit(id); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusesDamagedPackIndex(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"cut":             func(data []byte) []byte { return data[:len(data)-30] },
		"nearly empty":    func(data []byte) []byte { return data[:20] },
		"another version": func(data []byte) []byte { data[7] = 3; return data },
		"unsorted":        func(data []byte) []byte { data[8] = 0xff; return data },
	} {
		r, idx := packed(t)
		id := revision(r, "HEAD")
		data, err := os.ReadFile(idx)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, idx, damage(data))
		if _, err := open(t, emptyStore(t), r.Path(".git")).Commit(id); !errors.As(err, new(*objects.DamagedError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// go-git would look for them below the folder.
func TestIgnoresAlternatesOfFolder(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	dir := emptyStore(t)
	lent := filepath.Join(dir, "lent", "objects")
	if err := errors.Join(os.CopyFS(lent, os.DirFS(r.Path(".git/objects"))), os.WriteFile(filepath.Join(dir, "objects/info/alternates"), []byte("lent/objects\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, "", dir).Commit(revision(r, "HEAD")); !errors.Is(err, plumbing.ErrObjectNotFound) {
		t.Errorf("got %v", err)
	}
}
