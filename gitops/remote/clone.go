package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/outside"
)

type CloneOptions struct {
	Dir    string // must not exist
	Branch string // "" means the remote's HEAD
}

// Clone clones a remote without checking out files, because git would run filters. HEAD is at the
// branch. It stores no token and uses no hooks or templates. If it fails, Dir does not exist.
func Clone(ctx context.Context, r Remote, o CloneOptions) error {
	if _, err := os.Lstat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clone: there is a %s already, or it cannot be made: %w", o.Dir, cmp.Or(err, fs.ErrExist))
	}
	// A git that outlives this process later removes the folder that it was cloning into. So every
	// clone uses a new name until it is complete.
	unfinished := fmt.Sprintf("%s.%08x", o.Dir, rand.Uint32())
	err := clone(ctx, r, o, unfinished)
	if err == nil {
		err = os.Rename(unfinished, o.Dir)
	}
	if err != nil {
		_ = os.RemoveAll(unfinished)
	}
	return r.describeError(ctx, "clone", err)
}

// clone clones into dir without files. It returns ErrEmpty for a repository without commits.
func clone(ctx context.Context, r Remote, o CloneOptions, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	options := []string{"clone", "--quiet", "--template=", "--no-recurse-submodules", "--no-checkout", "--no-hardlinks", "--origin=origin"}
	if o.Branch != "" {
		options = append(options, "--branch="+o.Branch)
	}
	if _, err := program.Remote(r.Path, os.Environ()).Config(ctx, outside.Root, "--list"); errors.Is(err, program.ErrBlockedConfig) {
		return err
	}
	_, stderr, err := r.git(ctx, Store{}, options, dir)
	if err != nil {
		return err
	}
	warned := stderr.local.String()
	switch {
	case strings.Contains(warned, "cloned an empty repository"):
		return ErrEmpty
	case strings.Contains(warned, "HEAD refers to nonexistent ref"):
		return fmt.Errorf("%w: the branch of its HEAD", errNoBranch)
	}
	return nil
}
