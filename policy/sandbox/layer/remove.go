package layer

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes a folder, including read-only folders left by commands or the kernel.
func Remove(dir string) error {
	if os.RemoveAll(dir) == nil { // the usual case, without read-only folders
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
