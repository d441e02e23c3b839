package objects

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// TreeMode is the mode of a folder in a tree. Package index has the modes of files.
const TreeMode uint32 = 0o040000

// Entry is an entry of a tree object. Mode 0 means that there is none.
type Entry struct {
	Name string
	Mode uint32
	ID   plumbing.Hash
}

func (e Entry) IsTree() bool { return e.Mode == TreeMode }

// isFile reports whether the entry is a file or link, and so has a blob.
func (e Entry) isFile() bool { return e.Mode != 0 && !e.IsTree() && e.Mode != index.Gitlink }

// At returns the entry as that of an index, at a path.
func (e Entry) At(path string) index.Entry { return index.Entry{Path: path, Mode: e.Mode, ID: e.ID} }

// Key returns the sort key of an entry: git sorts a folder as if its name ended in a slash.
func (e Entry) Key() string {
	if e.IsTree() {
		return e.Name + "/"
	}
	return e.Name
}

const maxTree = 16 << 20 // largest tree object, in bytes

// Tree reads a tree object. The zero id is the empty tree.
func (s *Store) Tree(id plumbing.Hash) ([]Entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	o, r, err := s.open(plumbing.TreeObject, id)
	if err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	defer r.Close()
	if o.Size() > maxTree {
		return nil, fmt.Errorf("read tree %s: %d bytes are too many", id, o.Size())
	}
	var buf bytes.Buffer
	buf.Grow(int(o.Size()))
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	entries, err := decodeTree(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	return entries, nil
}

// decodeTree decodes a tree object. It converts modes that only old versions of git wrote.
func decodeTree(data []byte) ([]Entry, error) {
	var entries []Entry
	for len(data) > 0 {
		mode, rest, hasMode := bytes.Cut(data, []byte{' '})
		name, tail, hasName := bytes.Cut(rest, []byte{0})
		hasID := len(tail) >= len(plumbing.ZeroHash)
		if !hasMode || !hasName || !hasID {
			return nil, fmt.Errorf("entry %d is cut", len(entries))
		}
		value, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("entry %d has no mode", len(entries))
		}
		e := Entry{Name: string(name), Mode: canonicalMode(uint32(value))}
		data = tail[copy(e.ID[:], tail):]
		entries = append(entries, e)
	}
	return entries, nil
}

// canonicalMode converts a mode of an old tree (such as 100664) like git.
func canonicalMode(mode uint32) uint32 {
	if mode&^0o777 != 0o100000 {
		return mode
	}
	if mode&0o100 != 0 {
		return index.Executable
	}
	return index.Regular
}

// encodeTree returns the content of a tree object.
func encodeTree(entries []Entry) []byte {
	var b []byte
	for _, e := range entries {
		b = strconv.AppendUint(b, uint64(e.Mode), 8)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.ID[:]...)
	}
	return b
}

// Find returns the entry of a tree at a path. Its mode is 0 if missing.
func (s *Store) Find(tree plumbing.Hash, path string) (Entry, error) {
	return s.CachedTree(tree).Find(path)
}

// CachedTree finds many entries of one tree. It reads each folder once.
type CachedTree struct {
	store *Store
	root  plumbing.Hash
	read  map[string][]Entry // by path, "" or ending with a slash; nil for a missing folder
}

// CachedTree returns the tree with this id. It reads nothing yet.
func (s *Store) CachedTree(tree plumbing.Hash) *CachedTree {
	return &CachedTree{s, tree, map[string][]Entry{}}
}

// Find returns the entry at a path. Its mode is 0 if missing.
func (f *CachedTree) Find(name string) (Entry, error) {
	folder, name := path.Split(name)
	entries, known := f.read[folder]
	if !known {
		at := Entry{Mode: TreeMode, ID: f.root}
		var err error
		if folder != "" {
			at, err = f.Find(strings.TrimSuffix(folder, "/"))
		}
		if err == nil && at.IsTree() {
			entries, err = f.store.Tree(at.ID)
		}
		if err != nil {
			return Entry{}, err
		}
		f.read[folder] = entries
	}
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }); i >= 0 {
		return entries[i], nil
	}
	return Entry{}, nil
}

// Apply writes tree with edits, at most one per path, and returns its id. Mode 0 removes a path. It
// reads only folders on the edited paths.
func (s *Store) Apply(tree plumbing.Hash, edits []index.Entry) (plumbing.Hash, error) {
	edited, err := s.applyEdits(tree, edits)
	if err == nil && edited.IsZero() {
		return s.WriteBytes(plumbing.TreeObject, nil)
	}
	return edited, err
}

// applyEdits is Apply, but returns the zero hash for an empty tree.
func (s *Store) applyEdits(tree plumbing.Hash, edits []index.Entry) (plumbing.Hash, error) {
	entries, err := s.Tree(tree)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	byName := map[string]Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	for name, group := range groupByFolder(edits) {
		e, err := s.editEntry(byName[name], name, group)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		byName[name] = e
	}
	return s.writeTree(byName)
}

// groupByFolder groups edits by the first part of their path, and removes that part. A path of one part
// becomes "".
func groupByFolder(edits []index.Entry) map[string][]index.Entry {
	byName := map[string][]index.Entry{}
	for _, e := range edits {
		name, rest, _ := strings.Cut(e.Path, "/")
		byName[name] = append(byName[name], index.Entry{Path: rest, Mode: e.Mode, ID: e.ID})
	}
	return byName
}

// editEntry returns the entry for name after a group of edits: those below name, and one of name
// itself. A file may replace a folder, or the reverse. A zero Entry means that nothing remains.
func (s *Store) editEntry(e Entry, name string, group []index.Entry) (Entry, error) {
	var below []index.Entry
	var self *index.Entry // the edit of name itself, or nil
	for i, g := range group {
		if g.Path == "" {
			self = &group[i]
			continue
		}
		below = append(below, g)
	}
	if self != nil && self.Mode != 0 {
		return Entry{name, self.Mode, self.ID}, nil
	}
	if self != nil && !e.IsTree() { // a deletion; a folder remains, whose files have edits of their own
		e = Entry{}
	}
	if len(below) == 0 {
		return e, nil
	}
	old := plumbing.ZeroHash
	if e.IsTree() {
		old = e.ID
	}
	id, err := s.applyEdits(old, below)
	if err != nil {
		return Entry{}, err
	}
	if id.IsZero() {
		return Entry{}, nil
	}
	return Entry{name, TreeMode, id}, nil
}

// writeTree writes a tree object of the entries. It skips those with mode 0. Without entries it
// returns the zero hash.
func (s *Store) writeTree(byName map[string]Entry) (plumbing.Hash, error) {
	entries := make([]Entry, 0, len(byName))
	for _, e := range byName {
		if e.Mode != 0 {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	sort.Slice(entries, func(a, b int) bool { return entries[a].Key() < entries[b].Key() })
	return s.WriteBytes(plumbing.TreeObject, encodeTree(entries))
}

// ValidName reports whether a name may be in a tree. It rejects names that some file system treats
// as ".git".
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !pathname.MeansDotGit(name)
}

// ValidPath reports whether all parts of a path are valid names in a tree.
func ValidPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if !ValidName(part) {
			return false
		}
	}
	return true
}
