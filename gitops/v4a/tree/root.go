package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OnRoot is the tree below a root. Directories are held open while a plan is
// made or committed, so that nothing that happens in the tree meanwhile leads a
// write to another place. The root stays the caller's to close.
func OnRoot(root *os.Root) Dir { return rootDir{Root: root} }

type rootDir struct {
	*os.Root
	ours bool // opened by Sub
}

func (d rootDir) Mkdir(name string) error { return d.Root.Mkdir(name, 0o777) }

func (d rootDir) Close() error {
	if !d.ours {
		return nil
	}
	return d.Root.Close()
}

// Open compares what it opened with what it saw before, since the file may be
// replaced by a link or a FIFO in between.
func (d rootDir) Open(name string) (*os.File, error) {
	wrong := &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	seen, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, wrong
	}
	f, err := d.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = wrong
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d rootDir) Sub(name string) (Dir, error) {
	wrong := &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	seen, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, wrong
	}
	sub, err := d.OpenRoot(name + "/") // which waits for no pipe that has come in its place
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
	if err := resemble(f, like); err != nil {
		return nil, errors.Join(err, f.Close(), d.Remove(name))
	}
	return f, nil
}

// keptMode is what of a file's mode its new content keeps: not the rights of
// another user, which the kernel takes from what is written, too.
const keptMode = fs.ModePerm | fs.ModeSticky

// resemble gives a file the owner and mode of another. An owner that may not be
// given is no error: the file is then its writer's, as after any editor.
func resemble(f *os.File, like fs.FileInfo) error {
	if uid, gid, known := owner(like); known {
		_ = f.Chown(uid, gid)
	}
	mode := like.Mode() & keptMode
	if err := f.Chmod(mode); err != nil {
		return fmt.Errorf("keep mode %v: %w", mode, err)
	}
	return nil
}

// Dir is an open directory of the tree that a patch applies to. A name is one
// element of a path, and no method follows a symbolic link: who walks from the
// root of a tree through Dirs knows where they are, whatever is renamed or
// linked behind their back.
type Dir interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	// Open reads a regular file; anything else is an error.
	Open(name string) (*os.File, error)
	// Sub opens a directory, which the caller closes.
	Sub(name string) (Dir, error)
	Close() error

	Mkdir(name string) error
	// Create makes a file that is not there yet. It gets the mode and, as far
	// as that is allowed, the owner of like, or the usual ones when like is nil.
	Create(name string, like fs.FileInfo) (io.WriteCloser, error)
	// Link gives a file a second name, which is not there yet. It fails where
	// files have one name only.
	Link(name, second string) error
	// Rename replaces a file that already has the new name.
	Rename(name, to string) error
	// Exchange gives two files each other's names at once, where the system can.
	Exchange(name, other string) error
	// Remove removes a file, a link or an empty directory.
	Remove(name string) error
}

// owner returns who owns a file, where the system says so.
func owner(info fs.FileInfo) (uid, gid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// heldByOwner reports whether a directory is sticky and so keeps a user from
// renaming a file in it: neither is the user's. The superuser may.
func heldByOwner(dir, file fs.FileInfo, user int) bool {
	ofDir, _, knownDir := owner(dir)
	ofFile, _, knownFile := owner(file)
	return knownDir && knownFile && dir.Mode()&fs.ModeSticky != 0 && user != 0 && ofDir != user && ofFile != user
}
