package walk

import "cmp"

// open opens a path below the folder.
func (o opener) open(path string, extra int) (*Content, error) {
	path = cmp.Or(path, ".")
	return o.openInRoot(path, extra)
}
