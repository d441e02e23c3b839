package tree

import (
	"io"
	"io/fs"
	"os"
)

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
	// Remove removes a file, a link or an empty directory.
	Remove(name string) error
}
