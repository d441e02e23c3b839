package walk

import "cmp"

// open opens a path relative to the tree. extraFlags is 0, or O_DIRECTORY for a folder.
func (t *Tree) open(path string, extraFlags int) (*Content, error) {
	return t.openInRoot(cmp.Or(path, "."), extraFlags)
}
