package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// oldestMajor and oldestMinor are the first version of git that can merge trees without a work tree
// (merge-tree --write-tree).
const oldestMajor, oldestMinor = 2, 38

// UnusableError reports a missing or too old git.
type UnusableError struct {
	Path    string // "" if there is no git
	Version string // the version it reports; "" if it did not start
	Err     error  // why it did not start; may be nil
}

func (e *UnusableError) Error() string {
	found := fmt.Sprintf("%s is git %s", e.Path, e.Version)
	switch {
	case e.Path == "":
		found = "there is no git program on PATH"
	case e.Version == "":
		reason := e.Err
		if start, is := errors.AsType[*fs.PathError](e.Err); is && start.Path == e.Path {
			reason = start.Err
		}
		found = fmt.Sprintf("%s does not tell its version (%v)", e.Path, reason)
	}
	return fmt.Sprintf("%s: install git %d.%d or newer, and put it first on PATH", found, oldestMajor, oldestMinor)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// Check returns the version of the git at path. It returns an *UnusableError if there is no git, or
// if it is too old.
func Check(ctx context.Context, path string) (version string, err error) {
	if path == "" {
		return "", &UnusableError{}
	}
	starting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := outside.GitVersion.Command(starting, path, outside.Root, nil, "--version").Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // the machine has no free file descriptors; git may be fine
		return "", fmt.Errorf("ask git for its version: %w", err)
	case err != nil:
		return "", &UnusableError{Path: path, Err: err}
	}
	version = strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	if !isUsable(version) {
		return version, &UnusableError{Path: path, Version: version}
	}
	return version, nil
}

func isUsable(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > oldestMajor || major == oldestMajor && minor >= oldestMinor)
}

// CheckedConfig runs `git config` like Config, after a check of git's version like Check. It starts git once if
// that works: git can report its version while it runs (api-trace2).
func (p Program) CheckedConfig(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, configTime, ErrBlockedConfig)
	defer cancel()
	report := clip.Head{Limit: 100} // begins with the version; the rest is of no use
	cmd := p.With("GIT_TRACE2=2", "GIT_TRACE2_BRIEF=1").Command(ctx, dir, syscall.SIGKILL, append([]string{"config"}, args...)...)
	cmd.Stderr = &report
	out, err := cmd.Output()
	version, isReported := strings.CutPrefix(report.Line(), "version ")
	if err == nil && isReported && isUsable(version) {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git config: %w", context.Cause(ctx))
	}
	if _, err := Check(ctx, p.Path); err != nil {
		return nil, err
	}
	return p.Config(ctx, dir, args...)
}
