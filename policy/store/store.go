// Package store replaces files as a whole: a reader, and a machine that stops, find the old content or
// the new one, and after Replace the new one.
package store

import (
	"errors"
	"io"
	"os"
	"path"
)

// Replace writes what content writes to a file below root. Until that is on the disk it is in a file
// beside, whose name ends in mark: writers that run at the same time have different marks.
func Replace(root *os.Root, name, mark string, content func(io.Writer) error) error {
	beside := name + "." + mark
	f, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		_ = root.Remove(beside)
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// syncFolder keeps a rename in a folder, should the machine stop.
func syncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Text gives the content of a file to Replace.
func Text(raw []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(raw)
		return err
	}
}
