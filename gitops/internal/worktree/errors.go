package worktree

import (
	"fmt"
	"strings"
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
