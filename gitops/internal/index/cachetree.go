package index

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// CachedTree is a folder's tree object as cached in the index.
type CachedTree struct {
	Name    string // of the folder in its parent; "" for the root
	Valid   bool   // ID is the tree object of the entries in this folder
	ID      plumbing.Hash
	Folders []CachedTree

	entries int // number of index entries below this folder; negative if not Valid
}

// Folder returns the cached tree of a folder in t. Without one the result is invalid.
func (t CachedTree) Folder(name string) CachedTree {
	for _, f := range t.Folders {
		if f.Name == name {
			return f
		}
	}
	return CachedTree{Name: name}
}

// CachedTree decodes the TREE extension. A missing or malformed tree gives an invalid result.
// The extension only saves work, so an error does not matter.
func (f *File) CachedTree() CachedTree {
	t, _, ok := parseCachedTree(f.cache, 0)
	if !ok {
		return CachedTree{}
	}
	return t
}

const deepest = 4096 // a path of 4096 bytes cannot have more folders

// parseCachedTree decodes a folder of the TREE extension with its subfolders. It returns the
// remaining bytes, and false for malformed ones. depth is the number of folders above. A number of entries
// below 0 marks an invalid folder, which has no id.
func parseCachedTree(b []byte, depth int) (CachedTree, []byte, bool) {
	name, rest, ok := bytes.Cut(b, []byte{0})
	if !ok || depth > deepest {
		return CachedTree{}, nil, false
	}
	entries, rest, ok := cutNumber(rest, ' ')
	if !ok {
		return CachedTree{}, nil, false
	}
	folders, rest, ok := cutNumber(rest, '\n')
	if !ok || folders < 0 {
		return CachedTree{}, nil, false
	}
	t := CachedTree{Name: string(name), Valid: entries >= 0, entries: entries}
	if t.Valid {
		if len(rest) < len(t.ID) {
			return CachedTree{}, nil, false
		}
		rest = rest[copy(t.ID[:], rest):]
	}
	for range folders {
		var folder CachedTree
		if folder, rest, ok = parseCachedTree(rest, depth+1); !ok {
			return CachedTree{}, nil, false
		}
		t.Folders = append(t.Folders, folder)
	}
	return t, rest, true
}

// cutNumber parses the decimal number before the byte end. It returns the bytes after end.
func cutNumber(b []byte, end byte) (int, []byte, bool) {
	digits, rest, ok := bytes.Cut(b, []byte{end})
	if !ok {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(digits))
	return n, rest, err == nil
}

// invalidatePath invalidates t and its folders along a changed path.
func (t *CachedTree) invalidatePath(path string) {
	t.Valid, t.entries = false, -1
	name, rest, deeper := strings.Cut(path, "/")
	i := slices.IndexFunc(t.Folders, func(f CachedTree) bool { return f.Name == name })
	switch {
	case i < 0: // no such folder is cached
	case deeper:
		t.Folders[i].invalidatePath(rest)
	default:
		t.Folders = slices.Delete(t.Folders, i, i+1) // path may be a file now, so drop a folder of that name
	}
}

// appendTo appends the folder in the form of the TREE extension.
func (t *CachedTree) appendTo(b []byte) []byte {
	b = append(b, t.Name...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(t.entries), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(t.Folders)), 10)
	b = append(b, '\n')
	if t.Valid {
		b = append(b, t.ID[:]...)
	}
	for i := range t.Folders {
		b = t.Folders[i].appendTo(b)
	}
	return b
}

// cacheAfter returns the TREE extension after updates, or nil if f has none that is valid.
func (f *File) cacheAfter(updates []Entry) []byte {
	t, rest, ok := parseCachedTree(f.cache, 0)
	if !ok || len(rest) > 0 {
		return nil
	}
	for _, u := range updates {
		if !f.keepsContent(u) {
			t.invalidatePath(u.Path)
		}
	}
	return t.appendTo(nil)
}

// keepsContent reports whether an update changes at most stat data.
func (f *File) keepsContent(u Entry) bool {
	i, there := f.Search(u.Path)
	if !there {
		return u.Mode == 0
	}
	old := f.Metadata(i)
	return old.Mode == u.Mode && old.ID == u.ID && old.Stage == u.Stage && old.IntentToAdd == u.IntentToAdd
}
