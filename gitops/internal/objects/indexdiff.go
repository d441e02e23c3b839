package objects

import (
	"bytes"
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// CompareIndex calls report for each path at which ix and tree differ, with the tree's entry. The
// entry has mode 0 if the path is not in the tree. It skips folders whose cached tree in the index
// is the same.
func (s *Store) CompareIndex(ctx context.Context, ix *index.File, tree plumbing.Hash, report func(path string, e Entry)) error {
	of := indexFolders{ix, ix.CachedTree()}
	d := differ{s, of.entries, func(found Difference) { report(found.Path, found.New) }, func(plumbing.Hash) {}}
	return d.compareTrees(ctx, idOf(of.cached), tree, "")
}

// indexFolders shows the entries of an index as folders of a tree.
type indexFolders struct {
	index  *index.File
	cached index.CachedTree
}

// unknownTree is the id of a folder whose tree is not cached.
var unknownTree = plumbing.Hash(bytes.Repeat([]byte{0xff}, len(plumbing.ZeroHash)))

func idOf(cached index.CachedTree) plumbing.Hash {
	if cached.Valid {
		return cached.ID
	}
	return unknownTree
}

// inNoTree is a mode bit of entries that no tree can have, like unresolved merges.
const inNoTree = 1 << 31

// entries lists the files and folders directly below prefix, which is "" or ends with a slash. id is zero if
// the index has no such folder.
func (f indexFolders) entries(id plumbing.Hash, prefix string) (list []Entry, err error) {
	if id.IsZero() {
		return nil, nil
	}
	cached := f.cached
	for rest := prefix; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		cached = cached.Folder(name)
	}
	for at, end := f.index.EntriesBelow(prefix, 0, f.index.Len()); at < end; {
		path := string(f.index.Path(at))
		name, _, deeper := strings.Cut(path[len(prefix):], "/")
		if deeper {
			list = append(list, Entry{name, TreeMode, idOf(cached.Folder(name))})
			_, at = f.index.EntriesBelow(prefix+name+"/", at, end)
			continue
		}
		e := f.index.Metadata(at)
		if e.Stage != 0 || e.IntentToAdd {
			e.Mode |= inNoTree
		}
		list = append(list, Entry{name, e.Mode, e.ID})
		_, at = f.index.EntriesOf(path, at, end)
	}
	return list, nil
}
