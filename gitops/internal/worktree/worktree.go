// Package worktree owns a checkout's files: differences from an index, untracked files, git's form
// of a file, and writing a tree's files. It reads ignore rules, lets git read attributes and
// convert line endings and encodings, runs filters in the caller's confinement, and follows no
// link.
//
// It knows no base, change set or commit: callers provide index and trees. It moves no reference and never writes the repository's index.
package worktree

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

type Worktree struct {
	repo         *repository.Repository
	objects      *objects.Store
	dir          *os.Root
	upper        *os.Root        // of a layer that dir shows; nil: dir is the checkout itself, or a copy
	git          string          // of a layer, the folder that commands see as .git; empty for the one in dir
	inLayer      bool            // dir is not the checkout itself
	scansAll     bool            // scans look at all of a layer
	state        string          // a folder of ours, which may lie in the work tree
	ignores      []rules.Ignore  // rules from outside of the work tree, the weakest first
	hidden       map[string]bool // by Hide
	filters      Filters
	originalTree *os.Root // the work tree of a change to write; nil if unknown
}

// Open opens a repository's work tree with its objects in store. Close it.
func Open(repo *repository.Repository, store *objects.Store) (*Worktree, error) {
	state, err := filepath.EvalSymlinks(filepath.Dir(repo.Private))
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	dir, err := os.OpenRoot(repo.Root)
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	return &Worktree{repo: repo, objects: store, dir: dir, state: state, ignores: repo.OuterIgnores()}, nil
}

func (w *Worktree) Close() error { return w.dir.Close() }

// Hide excludes paths with everything below from scans and copies. No tree to check out may contain
// them.
func (w *Worktree) Hide(paths []string) {
	w.hidden = map[string]bool{}
	for _, name := range paths {
		w.hidden[w.repo.Settings.SameName(path.Clean(name))] = true
	}
}

// Hides reports whether a path or a folder above it is hidden.
func (w *Worktree) Hides(name string) bool { return w.repo.Settings.Covers(w.hidden, name) }

// skippedPaths returns hidden paths and own folders in the work tree.
func (w *Worktree) skippedPaths() map[string]bool {
	rel, is := pathname.Below(w.repo.Root, w.state)
	if !is || rel == "." {
		return w.hidden
	}
	all := map[string]bool{w.repo.Settings.SameName(filepath.ToSlash(rel)): true}
	maps.Copy(all, w.hidden)
	return all
}

// ObstructedError lists untracked files in place of another commit's files.
type ObstructedError struct {
	Paths []string
}

func (e *ObstructedError) Error() string {
	return fmt.Sprintf("untracked files are in the way (%s): move or remove them", quoteList(e.Paths))
}

// ChangedError lists files modified by somebody else.
type ChangedError struct {
	Paths         []string
	PartlyWritten bool // others of the change may have been written
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("files changed meanwhile (%s): look at them and try again", quoteList(e.Paths))
}

func quoteList(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = strconv.Quote(p)
	}
	return strings.Join(clip.List(quoted, 5), ", ")
}
