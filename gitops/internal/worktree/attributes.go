package worktree

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// attributes says what .gitattributes files decide for a path. It reads each
// file once.
type attributes struct {
	fold      bool
	weaker    []rules.Attributes // of the system and the user
	strongest rules.Attributes   // .git/info/attributes
	read      func(path string) ([]byte, error)
	folders   map[string][]rules.Attributes // by folder: those of the root down to it
}

// attributesBy reads the attribute files of a tree or a work tree with read,
// which says fs.ErrNotExist for what is not there.
func (w *Worktree) attributesBy(read func(path string) ([]byte, error)) *attributes {
	weaker, strongest := w.repo.OuterAttributes()
	return &attributes{
		fold: w.repo.Settings.IgnoreCase, weaker: weaker, strongest: strongest,
		read: read, folders: map[string][]rules.Attributes{},
	}
}

// workAttributes are the attributes as they stand in the work tree, which s has
// gone through: it knows the folders that have some.
func (s *Scan) workAttributes() *attributes {
	return s.work.attributesBy(func(path string) ([]byte, error) {
		if !s.attributes[strings.TrimSuffix(path, ".gitattributes")] {
			return nil, fs.ErrNotExist
		}
		return regularfile.ReadIn(s.work.dir, path)
	})
}

func (w *Worktree) treeAttributes(tree plumbing.Hash) *attributes {
	folders := treeFolders{w.objects, map[string]plumbing.Hash{"": tree}}
	return w.attributesBy(func(file string) ([]byte, error) {
		folder, name := path.Split(file)
		id, err := folders.id(folder)
		if err != nil {
			return nil, err
		}
		e, err := w.objects.Find(id, name)
		if err != nil {
			return nil, err
		}
		if e.Mode == 0 || e.IsTree() {
			return nil, fs.ErrNotExist
		}
		return w.objects.BlobBytes(e.ID, regularfile.Small)
	})
}

// treeFolders finds the folders of a tree, each by the one above it, which is
// looked up once.
type treeFolders struct {
	store *objects.Store
	ids   map[string]plumbing.Hash // by path, "" or ending with a slash
}

// id is the tree of a folder; the tree of nothing where there is no such folder.
func (t treeFolders) id(folder string) (plumbing.Hash, error) {
	if id, known := t.ids[folder]; known {
		return id, nil
	}
	above, name := path.Split(strings.TrimSuffix(folder, "/"))
	parent, err := t.id(above)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	e, err := t.store.Find(parent, name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !e.IsTree() {
		e.ID = plumbing.ZeroHash
	}
	t.ids[folder] = e.ID
	return e.ID, nil
}

func (a *attributes) of(file string) rules.Resolved {
	folder, _ := path.Split(file)
	return rules.Resolve(file, a.fold, slices.Concat(a.weaker, a.folder(folder), []rules.Attributes{a.strongest})...)
}

// folder returns the lists that count in a folder: "" or ending with a slash.
func (a *attributes) folder(dir string) []rules.Attributes {
	if lists, ok := a.folders[dir]; ok {
		return lists
	}
	var lists []rules.Attributes
	if dir != "" {
		above, _ := path.Split(strings.TrimSuffix(dir, "/"))
		lists = slices.Clip(a.folder(above))
	}
	if data, err := a.read(dir + ".gitattributes"); err == nil {
		lists = append(lists, rules.ParseAttributes(data, dir))
	}
	a.folders[dir] = lists
	return lists
}

// entries returns the attribute files that were read, for an index, and keeps their contents in store.
func (a *attributes) entries(store *objects.Store) (list []index.Entry, err error) {
	for folder := range a.folders {
		data, err := a.read(folder + ".gitattributes")
		if err != nil {
			continue // there is none
		}
		id, err := store.WriteBytes(plumbing.BlobObject, data)
		if err != nil {
			return nil, err
		}
		list = append(list, index.Entry{Path: folder + ".gitattributes", Mode: index.Regular, ID: id})
	}
	return list, nil
}

// Merging says how the attributes of a tree have its files merged.
type Merging struct{ attributes *attributes }

// Merging says it of a tree.
func (w *Worktree) Merging(tree plumbing.Hash) *Merging { return &Merging{w.treeAttributes(tree)} }

// Driver returns the name of a file's merge driver that is none of git's own; empty where it is one.
func (m *Merging) Driver(path string) string {
	driver := m.attributes.of(path)["merge"].Text()
	if slices.Contains([]string{"text", "binary", "union"}, driver) {
		return ""
	}
	return driver
}

// WriteFiles writes the attribute files that decide about paths into a folder.
func (m *Merging) WriteFiles(to *os.Root, paths []string) error {
	for _, one := range paths {
		m.attributes.of(one)
	}
	for folder := range m.attributes.folders {
		data, err := m.attributes.read(folder + ".gitattributes")
		if err != nil {
			continue // there is none
		}
		if err := to.MkdirAll(path.Dir(folder+".gitattributes"), 0o700); err != nil {
			return err
		}
		if err := to.WriteFile(folder+".gitattributes", data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
