package tools

import "path/filepath"

// Below gives an absolute path as relative to a folder that it is in, however the
// folder is spelt: where one above it is a link (macOS's /tmp), there are two ways.
func Below(dir, path string) (inside string, ok bool) {
	if inside, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(inside) {
		return inside, true
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	inside, err = filepath.Rel(real, path)
	return inside, err == nil && filepath.IsLocal(inside)
}
