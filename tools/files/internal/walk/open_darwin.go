package walk

import "cmp"

// open opens a path below the folder.
func (t *Tree) open(path string, extra int) (*Content, error) {
	return t.openInRoot(cmp.Or(path, "."), extra)
}
