package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

type CloneOptions struct {
	Dir    string // must not exist, or be empty
	Branch string // "" means the remote's HEAD
}

// Clone clones a remote. HEAD is at the branch, whose files are not there yet: git would run filters for
// them. The token is not written anywhere, and no hook or template takes part. On an error nothing is left
// in Dir.
func Clone(ctx context.Context, r Remote, o CloneOptions) error {
	made, err := makeEmpty(o.Dir)
	if err != nil {
		return err
	}
	if err := clone(ctx, r, o); err != nil {
		takeBack(o.Dir, made)
		return r.failed(ctx, "clone", err)
	}
	return nil
}

func clone(ctx context.Context, r Remote, o CloneOptions) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	options := []string{"clone", "--quiet", "--template=", "--no-recurse-submodules", "--no-checkout", "--no-hardlinks", "--origin=origin"}
	if o.Branch != "" {
		options = append(options, "--branch="+o.Branch)
	}
	_, said, err := r.git(ctx, Store{}, options, dir)
	if err != nil {
		return err
	}
	warned := said.own.String()
	switch {
	case strings.Contains(warned, "cloned an empty repository"):
		return ErrEmpty
	case strings.Contains(warned, "HEAD refers to nonexistent ref"):
		return fmt.Errorf("%w: the branch of its HEAD; name a branch that is there", ErrNotFound)
	}
	return nil
}

func makeEmpty(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o777)
		made = err == nil
	}
	if err != nil {
		return made, fmt.Errorf("clone: %w", err)
	}
	if len(entries) > 0 {
		return false, fmt.Errorf("clone: %s is not empty; name an empty or a new folder", dir)
	}
	return made, nil
}

// takeBack leaves dir as makeEmpty found it.
func takeBack(dir string, made bool) {
	if made {
		_ = os.RemoveAll(dir)
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
	}
}
