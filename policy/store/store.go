// Package store replaces whole files, and locks files. A reader finds either the old content or the new one.
package store

import (
	"errors"
	"io"
	"os"
	"path"
)

// Replace replaces the file name below root by what content writes. It first writes a temporary file
// name.mark and then renames it. Concurrent writers must use different marks. After Replace has returned,
// the new content survives a crash of the machine.
func Replace(root *os.Root, name, mark string, content func(io.Writer) error) error {
	err := replace(root, name, mark, func(f *os.File) error {
		if err := content(f); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// ReplaceCached is Replace without waiting for the disk. A crash of the machine may leave an incomplete file, which
// the reader must recognize.
func ReplaceCached(root *os.Root, name, mark string, content func(io.Writer) error) error {
	return replace(root, name, mark, func(f *os.File) error { return content(f) })
}

func replace(root *os.Root, name, mark string, write func(*os.File) error) error {
	temporary := name + "." + mark
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
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
