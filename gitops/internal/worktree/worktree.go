// Package worktree owns a checkout's files. It computes git's form of a file that a scan found, and
// writes a tree's files. It lets git read attributes and convert line endings and encodings. It runs
// filters in the caller's sandbox, and follows no links.
//
// It knows no base, change set or commit: callers provide index and trees. It moves no reference
// and never writes the repository's index.
package worktree

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Worktree is the work tree of a repository: the checkout itself, a layer above it, or a copy.
type Worktree struct {
	repo         *repository.Repository
	objects      *objects.Store
	dir          *os.Root
	layer        *Layer          // the layer that dir shows; nil for the checkout itself
	state        string          // the folder with agent-ci's private files, which may be in the work tree
	ignores      []rules.Ignore  // rules from outside the work tree; later ones have priority
	hidden       map[string]bool // paths set by Hide
	Filters      Filters         // also those of layers that are made from it later
	originalTree *os.Root        // the work tree that the change was made in; nil if unknown
}

// Open opens a repository's work tree. store has its objects. The caller closes the Worktree.
func Open(repo *repository.Repository, store *objects.Store) (*Worktree, error) {
	state, err := filepath.EvalSymlinks(filepath.Dir(repo.PrivateDir))
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

// Hide excludes paths, with everything below them, from scans and copies. The trees that are
// checked out must not contain them.
func (w *Worktree) Hide(paths []string) {
	w.hidden = map[string]bool{}
	for _, name := range paths {
		w.hidden[w.repo.Settings.SameName(path.Clean(name))] = true
	}
}

// Hides reports whether a path or a folder above it is hidden.
func (w *Worktree) Hides(name string) bool { return w.repo.Settings.Covers(w.hidden, name) }

// ScanTree returns the work tree for package scan.
func (w *Worktree) ScanTree() scan.Tree {
	t := scan.Tree{Repo: w.repo, Dir: w.dir, Ignores: w.ignores, Skip: w.skippedPaths()}
	if w.InLayer() {
		t.Upper, t.GitDir = w.layer.Upper, w.layer.GitDir
	}
	return t
}

// skippedPaths returns the hidden paths, and agent-ci's own folder if it is in the work tree.
func (w *Worktree) skippedPaths() map[string]bool {
	rel, is := pathname.Below(w.repo.Root, w.state)
	if !is || rel == "." {
		return w.hidden
	}
	all := map[string]bool{w.repo.Settings.SameName(filepath.ToSlash(rel)): true}
	maps.Copy(all, w.hidden)
	return all
}

// ObstructedError lists untracked files in the place of files to write.
type ObstructedError struct {
	Paths []string
}

func (e *ObstructedError) Error() string {
	return fmt.Sprintf("untracked files are in the way (%s): move or remove them", quoteList(e.Paths))
}

// ChangedError lists files that somebody else modified.
type ChangedError struct {
	Paths         []string
	PartlyWritten bool // other files of the change may have been written
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("files changed meanwhile (%s): look at them and try again", quoteList(e.Paths))
}

func quoteList(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = strconv.Quote(p)
	}
	return clip.List(quoted, 5)
}
