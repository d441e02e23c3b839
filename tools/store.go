package tools

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Folder is a Store below a run directory, whose path it is.
type Folder string

// Create makes the file and the folder that it is in.
func (f Folder) Create(name string) (io.WriteCloser, string, error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, "", fmt.Errorf("make the folder of %s: %w", name, err)
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(0o600))
	if err != nil {
		return nil, "", err
	}
	return file, filepath.Join(string(f), filepath.FromSlash(name)), nil
}
