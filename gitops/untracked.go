package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// untrackedIn reports what the index does not account for in a folder.
func (s *scan) untrackedIn(ctx context.Context, dir *os.Root, names []name, seen []bool, at place) error {
	for i, n := range names {
		if seen[i] || n.git == ".git" && (at.path == "" || at.ignored) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.untracked(ctx, dir, n, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) untracked(ctx context.Context, dir *os.Root, n name, at place) error {
	path := at.path + n.git
	isDir := n.kind.IsDir()
	if n.git == ".git" {
		return s.tell(found{what: foundRepository, path: path, entry: -1, dir: true})
	}
	if at.ignored || ignores(at.ignores, path, isDir, s.settings.IgnoreCase) {
		if !s.ignored {
			return nil
		}
		return s.tell(found{what: foundIgnored, path: path, entry: -1, dir: isDir})
	}
	if !objects.ValidName(n.git) {
		return s.tell(found{what: foundInvalid, path: path, entry: -1, dir: isDir})
	}
	if beyondGit(path) {
		return s.tell(found{what: foundTooDeep, path: path, entry: -1, dir: isDir})
	}
	if isDir {
		return s.untrackedFolder(ctx, dir, n, at)
	}
	if n.kind&fs.ModeType&^fs.ModeSymlink != 0 {
		return nil
	}
	info, err := n.look()
	if err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	return s.tell(found{what: foundUntracked, path: path, entry: -1, info: info})
}

// longestPath is how many bytes git takes a path to have at most (PATH_MAX, with
// the zero byte at its end).
const longestPath = 1<<12 - 1

// beyondGit says that no checkout can have a path, or that comparing trees would
// not go that deep.
func beyondGit(path string) bool {
	return len(path) > longestPath || len(path) > objects.DeepestPath && strings.Count(path, "/") >= objects.DeepestPath
}

// untrackedFolder goes into a folder without tracked files. One that may not be
// read is passed over, as git does.
func (s *scan) untrackedFolder(ctx context.Context, dir *os.Root, n name, at place) error {
	path := at.path + n.git
	sub, err := regularfile.OpenFolder(dir, n.disk)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer sub.Close()
	if holdsRepository(sub) {
		return s.tell(found{what: foundRepository, path: path, entry: -1, dir: true})
	}
	err = s.folder(ctx, sub, place{path: path + "/", lo: at.hi, hi: at.hi, ignores: at.ignores})
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// holdsRepository says whether git would take the folder for a repository of
// its own: a .git file, or a .git folder with the parts of one.
func holdsRepository(dir *os.Root) bool {
	info, err := dir.Lstat(".git")
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return true
	}
	for _, part := range [...]string{".git/HEAD", ".git/objects", ".git/refs"} {
		if _, err := dir.Lstat(part); err != nil {
			return false
		}
	}
	return true
}
