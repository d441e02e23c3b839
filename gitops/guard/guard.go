// Package guard protects a repository's git files from commands. It finds which files a checkout
// depends on, which of them commands must not write or must see without credentials, and whether
// one has changed. It runs no git. It does not know how commands are confined.
package guard

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Checkout describes a work tree, its user, and what commands may write.
type Checkout struct {
	Root          string   // of the work tree
	Writable      []string // folders that commands may write to, links resolved
	OwnRepository bool     // commands own the repository and may change anything in it
	Home          string   // the user's home folder
	Homes         []string // the user's home folders by all their names, possibly including Home
	Environ       []string // environment of the user's git
}

// Restrictions lists what a sandbox must do to the git files of a checkout. Paths are absolute.
type Restrictions struct {
	ReadOnly    []string          // git's folders, and .git if it is a file
	Cleaned     map[string][]byte // by configuration file of the repository with credentials: the content without them
	UserCleaned map[string][]byte // the same for other configuration files
	Remedy      string            // start of a sentence that tells the user what to do if the sandbox cannot replace the Cleaned files
	Secret      []string          // files that commands may not read
	Variables   map[string]string // environment variables that point git to other files in place of secret and cleaned ones
}

// CheckoutError reports a git folder that cannot be protected from commands.
type CheckoutError struct {
	What   string
	Remedy string // what to do
}

func (e *CheckoutError) Error() string { return e.What + "; " + e.Remedy }

// Restrictions inspects the current files. It returns a *CheckoutError if commands could replace
// the repository.
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

// readSmall reads a configuration file, or a file with a path.
func readSmall(path string) ([]byte, error) { return regularfile.Read(path, regularfile.Small) }

// skip continues a walk after an entry. entry is nil if the first folder could not be read.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
