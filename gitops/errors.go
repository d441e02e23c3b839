package gitops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// What Open returns for a folder that cannot be worked in at all.
var (
	ErrNotRepository = repository.ErrNotRepository
	ErrBare          = repository.ErrBare
	ErrNoCommit      = errors.New("the repository has no commit yet: make a first one, it may be empty")
)

// DirtyError names tracked files that are modified or staged where a clean
// checkout is needed.
type DirtyError struct {
	Paths []string // a few of them
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf("the checkout has uncommitted changes (%s): commit or stash them", quoteList(e.Paths))
}

// ObstructedError names untracked files that stand where files of another
// commit have to go.
type ObstructedError struct {
	Paths []string
}

func (e *ObstructedError) Error() string {
	return fmt.Sprintf("untracked files are in the way (%s): move or remove them", quoteList(e.Paths))
}

// UnknownBaseError is a base that this checkout does not hold.
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

// What is refused below this package.
type (
	// UnsupportedError is a property of the checkout that would make the result
	// wrong, found before anything was touched.
	UnsupportedError = repository.UnsupportedError
	// InUseError says that somebody else works in the checkout at this moment.
	InUseError    = repository.InUseError
	ObjectError   = objects.DamagedError
	TooLargeError = objects.TooLargeError
	PackError     = objects.PackError
)

func quoteList(paths []string) string {
	const shown = 5
	quoted := make([]string, 0, shown)
	for _, p := range paths[:min(shown, len(paths))] {
		quoted = append(quoted, fmt.Sprintf("%q", p))
	}
	if len(paths) > shown {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}
