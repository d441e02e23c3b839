package repository

import (
	"errors"
	"fmt"
)

// What Open returns for a folder that is no checkout.
var (
	ErrNotRepository = errors.New("not in a git checkout: run in one, or name one with --repo")
	ErrBare          = errors.New("the repository is bare: give a checkout that has a work tree")
)

// UnsupportedError is a property of the checkout that would make the result
// wrong, found before anything was touched.
type UnsupportedError struct {
	Feature string // what was found
	Remedy  string // what to do about it
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: not supported; %s", e.Feature, e.Remedy)
}

// InUseError says that somebody else works in the checkout at this moment.
type InUseError struct {
	Root   string
	Remedy string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the checkout %s is in use: %s", e.Root, e.Remedy)
}
