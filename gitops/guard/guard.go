// Package guard owns what commands could change of a repository: which files of
// git's a checkout depends on, which of them commands must not write or see as
// they are, and whether commands changed one all the same. It runs no git and
// obeys nothing that it reads; it refuses to know how commands are confined.
package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Checkout is a work tree, and who works in it.
type Checkout struct {
	Root     string   // of the work tree
	Writable []string // folders that commands may write to, links resolved
	Own      bool     // its repository is the commands' own: they may do with it what they like
	Home     string   // of the user
	Homes    []string // the user's folders, by whatever name; Home may be among them
	Environ  []string // that the user's git has
}

// Held is what commands may not do with the files of git that a checkout depends
// on. Paths are absolute.
type Held struct {
	ReadOnly             []string          // git's folders, and a file .git
	Cleaned, UserCleaned map[string][]byte // configurations with credentials, the repository's and others, and what is left without
	Remedy               string            // where nothing can be shown in place of a file of Cleaned: the beginning of a sentence
	Secret               []string          // files that commands may not read
	Variables            map[string]string // that lead git around these: to a file, or to what is left of it in UserCleaned
}

// CheckoutError is a work tree whose git folder can't be kept from commands.
type CheckoutError struct {
	What   string
	Remedy string // what to do
}

func (e *CheckoutError) Error() string { return e.What + "; " + e.Remedy }

// Held looks at the files as they are now. The error is a CheckoutError where
// commands could put another repository in the place of the checkout's.
func (c Checkout) Held() (Held, error) {
	root, err := filepath.EvalSymlinks(c.Root)
	if err != nil {
		return Held{}, fmt.Errorf("find the workspace: %w", err)
	}
	l := layout{}
	if !c.Own {
		if l, err = layoutOf(root); err != nil {
			return Held{}, err
		}
	}
	own := &configurations{cleaned: make(map[string][]byte)}
	if err := own.read(l.configurations()...); err != nil {
		return Held{}, err
	}
	if err := c.mustHold(root, l); err != nil {
		return Held{}, err
	}
	user := &configurations{cleaned: make(map[string][]byte)}
	if err := user.readOrHide(c.userConfigurations()...); err != nil {
		return Held{}, err
	}
	return Held{
		ReadOnly: l.folders(), Cleaned: own.cleaned, UserCleaned: user.cleaned,
		Remedy: "Check out without credentials (actions/checkout: persist-credentials: false)",
		Secret: append(own.secret, user.secret...), Variables: c.variables(user),
	}, nil
}

// smallLimit is the size of a configuration, or of a file that names a folder,
// that is read.
const smallLimit = 1 << 20

// openPlain opens a regular file. It waits for nobody who would write a pipe,
// which commands can put in the place of any file that they may write.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", path), f.Close())
	}
	return f, nil
}

// readSmall reads a little more of a file than a small one has: a file can say that
// it has terabytes.
func readSmall(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallLimit+1))
}

// skip goes on behind an entry, which is nil for a folder that the walk could not
// even begin with.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
