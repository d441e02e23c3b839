// Package guard protects a repository's git files from commands: which files a checkout depends on,
// which of them commands must not write or must see cleaned, and whether one has changed. It runs
// no git and follows no configuration. It does not know how commands are confined.
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

// Checkout describes a work tree, its user, and what commands may write.
type Checkout struct {
	Root          string   // of the work tree
	Writable      []string // folders that commands may write to, links resolved
	OwnRepository bool     // commands own the repository and may change anything in it
	Home          string   // of the user
	Homes         []string // the user's folders by all their names, possibly with Home
	Environ       []string // of the user's git
}

// Restrictions lists the restrictions on the git files of a checkout. Paths are absolute.
type Restrictions struct {
	ReadOnly    []string          // git's folders, and a file .git
	Cleaned     map[string][]byte // the repository's configuration files with credentials, and their content without them
	UserCleaned map[string][]byte // the same for other configuration files
	Remedy      string            // the beginning of a sentence, for a sandbox that cannot replace the files of Cleaned
	Secret      []string          // files that commands may not read
	Variables   map[string]string // lead git to other files in place of secret and cleaned ones
}

// CheckoutError reports a git folder that cannot be protected from commands.
type CheckoutError struct {
	What   string
	Remedy string // what to do
}

func (e *CheckoutError) Error() string { return e.What + "; " + e.Remedy }

// Restrictions inspects the current files. It returns a CheckoutError if commands could replace the
// repository.
func (c Checkout) Restrictions() (Restrictions, error) {
	root, err := filepath.EvalSymlinks(c.Root)
	if err != nil {
		return Restrictions{}, fmt.Errorf("find the workspace: %w", err)
	}
	l := layout{}
	if !c.OwnRepository {
		if l, err = layoutOf(root); err != nil {
			return Restrictions{}, err
		}
	}
	own := &configurations{cleaned: make(map[string][]byte)}
	if err := own.read(l.configurations()...); err != nil {
		return Restrictions{}, err
	}
	if err := c.requireProtected(root, l); err != nil {
		return Restrictions{}, err
	}
	user := &configurations{cleaned: make(map[string][]byte)}
	if err := user.readOrHide(c.userConfigurations()...); err != nil {
		return Restrictions{}, err
	}
	return Restrictions{
		ReadOnly: l.folders(), Cleaned: own.cleaned, UserCleaned: user.cleaned,
		Remedy: "Check out without credentials (actions/checkout: persist-credentials: false)",
		Secret: append(own.secret, user.secret...), Variables: c.variables(user),
	}, nil
}

// smallLimit bounds the size of a configuration or path file, in bytes.
const smallLimit = 1 << 20

// openPlain opens a regular file. It never blocks on a pipe, which commands can put in place of any
// file they may write.
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

// readSmall reads slightly more than the limit of a small file, because a file can claim terabytes.
func readSmall(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallLimit+1))
}

// skip continues after an entry, nil for an unreadable start.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
