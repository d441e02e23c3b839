// Package store replaces whole files. Even after a crash, a reader finds either the old content or the
// new one. After Replace has returned, it finds the new one.
package store

import (
	"errors"
	"io"
	"os"
	"path"
)

// Replace replaces the file name below root by what content writes. It first writes a temporary file
// name.mark and then renames it. Concurrent writers must use different marks.
func Replace(root *os.Root, name, mark string, content func(io.Writer) error) error {
	temporary := name + "." + mark
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// syncFolder writes the entries of a folder to the disk, so that a rename survives a crash.
func syncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Text returns a content function for Replace that writes raw.
func Text(raw []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(raw)
		return err
	}
}
