// Package worktree owns the files of a checkout: what of them is not as an index
// has it or is not tracked, what git would store of a file, and how the files of a
// tree are written. It reads ignore rules, has git read attributes and convert line
// endings and encodings, has filters run, confined by who calls, and goes through no link.
//
// It knows no base, no change set and no commit: it is told the index and the
// trees, and neither moves a reference nor writes the repository's index.
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
	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/internal/pathname"
)

type Worktree struct {
	repo    *repository.Repository
	objects *objects.Store
	dir     *os.Root
	upper   *os.Root        // of a layer that dir shows; nil: dir is the checkout itself, or a copy
	git     string          // of a layer, the folder that commands see as .git; empty for the one in dir
	apart   bool            // dir is not the checkout itself
	whole   bool            // scans look at all of a layer
	state   string          // a folder of ours, which may lie in the work tree
	ignores []rules.Ignore  // rules from outside of the work tree, the weakest first
	hidden  map[string]bool // by Hide
	filters Filters
	from    *os.Root // where a change that lands was made; nil: not known
}

// Open opens the work tree of a repository, whose objects are in store.
// The worktree must be closed.
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

// Hide leaves paths, and all that is below them, out of scans and copies. No tree
// that is checked out may have them.
func (w *Worktree) Hide(paths []string) {
	w.hidden = map[string]bool{}
	for _, name := range paths {
		w.hidden[w.repo.Settings.SameName(path.Clean(name))] = true
	}
}

// Hides says whether a path is hidden or lies in something that is.
func (w *Worktree) Hides(name string) bool { return w.repo.Settings.Covers(w.hidden, name) }

// leftOut are what is hidden and folders of ours that lie in the work tree.
func (w *Worktree) leftOut() map[string]bool {
	rel, is := pathname.Below(w.repo.Root, w.state)
	if !is || rel == "." {
		return w.hidden
	}
	all := map[string]bool{w.repo.Settings.SameName(filepath.ToSlash(rel)): true}
	maps.Copy(all, w.hidden)
	return all
}

// ObstructedError names untracked files that stand where files of another
// commit have to go.
type ObstructedError struct {
	Paths []string
}

func (e *ObstructedError) Error() string {
	return fmt.Sprintf("untracked files are in the way (%s): move or remove them", quoteList(e.Paths))
}

// ChangedError names files that are not what a change goes from: somebody else has
// written them.
type ChangedError struct {
	Paths []string
	Begun bool // others of the change may have been written
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
