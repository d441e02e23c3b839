// Package guard protects a repository's git files from commands. It finds which files a checkout
// depends on, which of them commands must not write or must see without credentials, and whether
// one has changed. It runs no git. It does not know how commands are confined.
package guard

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// Checkout describes a work tree and its user.
type Checkout struct {
	Root          string   // of the work tree
	OwnRepository bool     // commands own the repository and may change anything in it
	Home          string   // the user's home folder
	Environ       []string // environment of the user's git
}

// CheckoutError reports a git folder that cannot be protected from commands.
type CheckoutError struct {
	What   string
	Remedy string // what to do
}

func (e *CheckoutError) Error() string { return e.What + "; " + e.Remedy }

// Restrictions inspects the current files. It returns a *CheckoutError if commands could replace
// the repository. writable lists the folders that commands may write to, links resolved, and homes the
// user's home folders by all their names, possibly including Home.
func (c Checkout) Restrictions(writable, homes []string) (outside.Restrictions, error) {
	root, err := filepath.EvalSymlinks(c.Root)
	if err != nil {
		return outside.Restrictions{}, fmt.Errorf("find the workspace: %w", err)
	}
	l := layout{}
	if !c.OwnRepository {
		if l, err = layoutOf(root); err != nil {
			return outside.Restrictions{}, err
		}
	}
	own := &configurations{cleaned: make(map[string][]byte)}
	if err := own.read(l.configurations()...); err != nil {
		return outside.Restrictions{}, err
	}
	if err := requireProtected(root, l, writable); err != nil {
		return outside.Restrictions{}, err
	}
	user := &configurations{cleaned: make(map[string][]byte)}
	if err := user.readOrHide(c.userConfigurations(homes)...); err != nil {
		return outside.Restrictions{}, err
	}
	return outside.Restrictions{
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
