package objects_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/policy/must"
)

// treeOf writes the tree of some files by their paths.
func treeOf(t *testing.T, s *objects.Store, files map[string]string) plumbing.Hash {
	t.Helper()
	var edits []index.Entry
	for path, text := range files {
		id := must.Get(s.WriteBytes(plumbing.BlobObject, []byte(text)))(t)
		edits = append(edits, index.Entry{Path: path, Mode: index.Regular, ID: id})
	}
	return must.Get(s.Apply(plumbing.ZeroHash, edits))(t)
}

func TestFind(t *testing.T) {
	r := gittest.Seeded(t)
	r.Link("README", "link")
	r.Chmod("src/main.go", 0o755)
	r.Commit("more")
	s := open(t, "", r.Path(".git"))
	for path, mode := range map[string]uint32{
		"README": index.Regular, "link": index.Symlink, "src": objects.TreeMode, "src/main.go": index.Executable, "src/deep/er/x": index.Regular,
		"none": 0, "src/none/x": 0, "README/below": 0, "src/": 0, "": 0, "readme": 0,
	} {
		e := must.Get(s.Find(revision(r, "HEAD^{tree}"), path))(t)
		must.Same(t, e.Mode, mode, path, "has the mode")
		if mode != 0 {
			must.Same(t, revision(r, "HEAD:"+path), e.ID, path)
		}
	}
}

func TestRefusesDamagedTrees(t *testing.T) {
	s := open(t, emptyStore(t))
	id := strings.Repeat("\x01", 20)
	for name, data := range map[string]string{
		"cut": "100644 name\x00" + id[:19], "no name": "100644" + id, "no mode": "x name\x00" + id, "a huge mode": "77777777777777777777 n\x00" + id,
	} {
		tree := must.Get(s.WriteBytes(plumbing.TreeObject, []byte(data)))(t)
		must.Fail(t, "", must.Err(s.Tree(tree)), name)
	}
	old := must.Get(s.WriteBytes(plumbing.TreeObject, []byte("100664 a\x00"+id+"100700 b\x00"+id)))(t)
	entries, err := s.Tree(old)
	if err != nil || entries[0].Mode != index.Regular || entries[1].Mode != index.Executable {
		t.Errorf("modes of old trees: %+v, %v", entries, err)
	}
}

// Edits of any order make the tree that git makes of the same files.
func TestApplyMatchesGit(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	names := []string{"a", "a-b", "a.b", "a0", "b"}
	path := func() string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = names[random.IntN(len(names))]
		}
		return strings.Join(parts, "/")
	}
	r := gittest.New(t)
	s := open(t, r.Path(".git"))
	files, tree := map[string]string{}, plumbing.ZeroHash
	for step := range 40 {
		edits := map[string]index.Entry{}
		for range 1 + random.IntN(4) {
			at := path()
			for other := range files { // a file and a folder cannot both be
				if strings.HasPrefix(other, at+"/") || strings.HasPrefix(at, other+"/") {
					delete(files, other)
					edits[other] = index.Entry{Path: other}
				}
			}
			for other, e := range edits {
				if e.Mode != 0 && (strings.HasPrefix(other, at+"/") || strings.HasPrefix(at, other+"/")) {
					delete(files, other)
					edits[other] = index.Entry{Path: other}
				}
			}
			if _, there := files[at]; there && random.IntN(2) == 0 {
				delete(files, at)
				edits[at] = index.Entry{Path: at}
				continue
			}
			files[at] = fmt.Sprint(step)
			id := must.Get(s.WriteBytes(plumbing.BlobObject, []byte(files[at])))(t)
			edits[at] = index.Entry{Path: at, Mode: index.Regular, ID: id}
		}
		var err error
		if tree, err = s.Apply(tree, slices.Collect(maps.Values(edits))); err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		for at, text := range files {
			fmt.Fprintf(&lines, "100644 %s\t%s\n", r.GitWith(nil, []byte(text), "hash-object", "--stdin"), at)
		}
		r.Remove(".git/index")
		r.GitWith(nil, []byte(lines.String()), "update-index", "--add", "--index-info")
		if want := r.Git("write-tree"); want != tree.String() {
			t.Fatalf("seed %d, step %d: the tree of %q is %s, git's is %s", seed, step, files, tree, want)
		}
	}
}

func TestListsDifferencesAndAdditions(t *testing.T) {
	s := open(t, emptyStore(t))
	a := treeOf(t, s, map[string]string{"same/x": "x", "gone": "g", "file": "f", "folder/in": "i", "changed": "1", "moved": "m"})
	b := treeOf(t, s, map[string]string{"same/x": "x", "file/now/deep": "f", "folder": "i", "changed": "2", "to/moved": "m"})
	changes := must.Get(s.Differences(t.Context(), a, b))(t)
	var got []string
	for _, d := range changes {
		got = append(got, fmt.Sprintf("%s %t %t", d.Path, d.Old.Mode != 0, d.New.Mode != 0))
	}
	slices.Sort(got)
	must.Same(t, []string{
		"changed true true", "file true false", "file/now/deep false true", "folder false true", "folder/in true false",
		"gone true false", "moved true false", "to/moved false true",
	}, got, "differences")

	ids := must.Get(s.AddedObjects(t.Context(), a, b))(t)
	if want := 1 + 3 + 4; len(ids) != want { // the root, three folders, and the files that are new at their place
		t.Errorf("%d objects are new, want %d", len(ids), want)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it ended")
	cancel(why)
	must.Is(t, why, must.Err(s.Differences(ended, a, b)), "after the end of the context")
	must.None(t, must.Get(s.Differences(ended, a, a))(t), "a tree and itself")
}

func TestValidNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, ".gitignore": true, "git": true, "a.git": true, ".git2": true, "git~2": true, "..a": true, "ä \\ b": true, ".gi": true,
		"": false, ".": false, "..": false, "a/b": false, "a\x00": false,
		".git": false, ".GIT": false, ".git ": false, ".git..": false, "GIT~1": false, "git~1.": false, ".git:stream": false, ".git\\x": false, "x\\.git": false,
		".g\u200cit": false, ".g\u200cit:x": false, ".g\u200cit ": false, "git~1\u200c": false, "\ufeff.git": false, ".gi\u206ft": false,
	} {
		must.Same(t, valid, objects.ValidName(name), name, "is valid")
	}
	if !objects.ValidPath("a/b.git/c") || objects.ValidPath("a/.Git/c") || objects.ValidPath("a//c") || objects.ValidPath("/a") {
		t.Error("a path is valid where each of its parts is")
	}
}
