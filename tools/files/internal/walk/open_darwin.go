package walk

import "cmp"

// open opens a path relative to the tree. For extraFlags see openInRoot.
func (t *Tree) open(path string, extraFlags int) (*Content, error) {
	return t.openInRoot(cmp.Or(path, "."), extraFlags)
}
