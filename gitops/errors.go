package gitops

import (
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// What Open returns for a folder that cannot be worked in at all.
var (
	ErrNotRepository = repository.ErrNotRepository
	ErrBare          = repository.ErrBare
	ErrNoCommit      = errors.New("the repository has no commit yet: make a first one, it may be empty")
)

type UnknownBaseError struct {
	Name string // branch or commit
}

func (e *UnknownBaseError) Error() string {
	return fmt.Sprintf("the base %q is not in this checkout: fetch it", e.Name)
}

// ForeignCommitError is a commit on the task's branch that no run of ours made.
type ForeignCommitError struct {
	Branch, SHA string
	Author      string // "name <address>"
}

func (e *ForeignCommitError) Error() string {
	return fmt.Sprintf("branch %s holds commit %.12s by %s, which no run made: merge or move it, or delete the branch",
		e.Branch, e.SHA, e.Author)
}

// What is refused below this package, where each is described.
type (
	UnsupportedError = repository.UnsupportedError
	InUseError       = repository.InUseError
	DirtyError       = worktree.DirtyError
	ObstructedError  = worktree.ObstructedError
	ObjectError      = objects.DamagedError
	TooLargeError    = objects.TooLargeError
	PackError        = objects.PackError
)
