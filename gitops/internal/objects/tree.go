package objects

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// TreeMode is the mode of a folder in a tree. Those of files are index's.
const TreeMode uint32 = 0o040000

// Entry is one line of a tree object; mode 0 stands for none.
type Entry struct {
	Name string
	Mode uint32
	ID   plumbing.Hash
}

func (e Entry) IsTree() bool { return e.Mode == TreeMode }

// isFile says that the content of the entry is a blob: of a file or a link.
func (e Entry) isFile() bool { return e.Mode != 0 && !e.IsTree() && e.Mode != index.Gitlink }

// Key is what entries of a tree are sorted by: a folder as if it ended with a
// slash.
func (e Entry) Key() string {
	if e.IsTree() {
		return e.Name + "/"
	}
	return e.Name
}

const largestTree = 16 << 20 // bytes of one tree object

// Tree reads a tree object. The zero id is the tree of nothing.
func (s *Store) Tree(id plumbing.Hash) ([]Entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	o, err := s.Object(plumbing.TreeObject, id)
	if err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	if o.Size() > largestTree {
		return nil, fmt.Errorf("read tree %s: %d bytes are too many", id, o.Size())
	}
	r, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	defer r.Close()
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

func decodeTree(data []byte) ([]Entry, error) {
	var entries []Entry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte{' '})
		name, tail, named := bytes.Cut(rest, []byte{0})
		if !ok || !named || len(tail) < len(plumbing.ZeroHash) {
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

// canonicalMode is what git takes the modes of old trees (100664) for.
func canonicalMode(mode uint32) uint32 {
	if mode&^0o777 != 0o100000 {
		return mode
	}
	if mode&0o100 != 0 {
		return index.Executable
	}
	return index.Regular
}

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

// Find is what a tree has at a path; its mode is 0 when there is nothing.
func (s *Store) Find(tree plumbing.Hash, path string) (Entry, error) {
	at := Entry{Mode: TreeMode, ID: tree}
	for name := range strings.SplitSeq(path, "/") {
		if !at.IsTree() {
			return Entry{}, nil
		}
		entries, err := s.Tree(at.ID)
		if err != nil {
			return Entry{}, err
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
		if i < 0 {
			return Entry{}, nil
		}
		at = entries[i]
	}
	return at, nil
}
