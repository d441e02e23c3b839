package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OnRoot returns the tree below a root. Plans and commits open its directories one after the other, and
// recognize one that they open again. So changes of the tree cannot redirect a write. The caller closes root.
func OnRoot(root *os.Root) Dir { return rootDir{Root: root} }

type rootDir struct {
	*os.Root
	ours bool // opened by Sub, so Close closes it
}

func (d rootDir) Mkdir(name string) error { return d.Root.Mkdir(name, 0o777) }

func (d rootDir) Close() error {
	if !d.ours {
		return nil
	}
	return d.Root.Close()
}

// Open opens a regular file. It compares the opened file with the one seen before, because a link
// or FIFO may have replaced it.
func (d rootDir) Open(name string, seen fs.FileInfo) (*os.File, error) {
	f, err := d.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("another file is in its place")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sub opens a directory. It checks that no other one replaced it meanwhile.
func (d rootDir) Sub(name string) (Dir, error) {
	wrong := &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	seen, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, wrong
	}
	sub, err := d.OpenRoot(name + "/") // the final slash makes the open fail, instead of block, on a FIFO
	if err != nil {
		return nil, err
	}
	opened, err := sub.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = wrong
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return rootDir{Root: sub, ours: true}, nil
}

// Create makes a new file with the mode and owner of like.
func (d rootDir) Create(name string, like fs.FileInfo) (io.WriteCloser, error) {
	perm := fs.FileMode(0o666)
	if like != nil {
		perm = 0o600
	}
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	if like == nil {
		return f, nil
	}
	if err := copyOwnerAndMode(f, like); err != nil {
		return nil, errors.Join(err, f.Close(), d.Remove(name))
	}
	return f, nil
}

// keptMode masks the mode bits that new content keeps. setuid and setgid are not kept, because the
// kernel also clears them on a write.
const keptMode = fs.ModePerm | fs.ModeSticky

// copyOwnerAndMode gives a file the owner and mode of another. If changing the owner is not permitted, the
// file belongs to this process, as after a change in an editor.
func copyOwnerAndMode(f *os.File, like fs.FileInfo) error {
	if uid, gid, known := owner(like); known {
		_ = f.Chown(uid, gid)
	}
	mode := like.Mode() & keptMode
	if err := f.Chmod(mode); err != nil {
		return fmt.Errorf("keep mode %v: %w", mode, err)
	}
	return nil
}

// Dir is an open directory of the tree. A name is a single path element. No method follows a
// symbolic link, so that renames and links cannot redirect a walk through directories.
type Dir interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	// Open reads the regular file that Lstat returned as seen. Another file in its place is an error.
	Open(name string, seen fs.FileInfo) (*os.File, error)
	// Sub opens a directory. The caller closes it.
	Sub(name string) (Dir, error)
	Close() error

	Mkdir(name string) error
	// Create makes a new file with the mode of like and, if permitted, its owner. Nil gives the
	// defaults.
	Create(name string, like fs.FileInfo) (io.WriteCloser, error)
	// Link creates newName as a hard link to name. It fails on file systems without hard links.
	Link(name, newName string) error
	// Rename replaces an existing file of the new name.
	Rename(name, to string) error
	// Exchange swaps two names atomically, if the system can.
	Exchange(name, other string) error
	// Remove removes a file, a link or an empty directory.
	Remove(name string) error
}

// owner returns the owner and group of a file. known is false if the system does not report them.
func owner(info fs.FileInfo) (uid, gid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// heldByOwner reports whether the sticky bit of a directory forbids user to rename a file in it.
// That is so if neither the directory nor the file belongs to user. The superuser may always rename
// it.
func heldByOwner(dir, file fs.FileInfo, user int) bool {
	ofDir, _, knownDir := owner(dir)
	ofFile, _, knownFile := owner(file)
	return knownDir && knownFile && dir.Mode()&fs.ModeSticky != 0 && user != 0 && ofDir != user && ofFile != user
}
