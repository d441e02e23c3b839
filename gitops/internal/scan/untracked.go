package scan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// reportUntrackedNames reports the names in a folder that are not in the index. seen marks those in the index. It
// skips the checkout's own .git, and repositories in ignored folders.
func (s *Scan) reportUntrackedNames(ctx context.Context, dir *os.Root, names []listedName, seen []bool, at folderRange) error {
	for i, n := range names {
		isSkippedGit := n.inGit == ".git" && (at.path == "" || at.ignored)
		if seen[i] || isSkippedGit {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.reportUntracked(ctx, dir, n, at); err != nil {
			return err
		}
	}
	return nil
}

// reportUntracked reports an untracked name as a repository, ignored, a file, or a name that git
// refuses. It scans an untracked folder. It reports no empty folders, devices or pipes.
func (s *Scan) reportUntracked(ctx context.Context, dir *os.Root, n listedName, at folderRange) error {
	path := at.path + n.inGit
	isDir := n.mode.IsDir()
	switch {
	case n.inGit == ".git":
		s.reportFound(Found{Kind: Repository, Path: path, Dir: true})
	case at.ignored || s.ignores(at.ignores, path, isDir):
		s.reportFound(Found{Kind: Ignored, Path: path, Dir: isDir, stat: n.stat})
	case !objects.ValidName(n.inGit):
		s.reportFound(Found{Kind: InvalidName, Path: path, Dir: isDir})
	case isTooLong(path):
		s.reportFound(Found{Kind: TooDeep, Path: path, Dir: isDir})
	case isDir:
		return s.scanUntrackedFolder(ctx, dir, n, at)
	case n.mode.Type()&^fs.ModeSymlink == 0: // a regular file or a link
		info, err := dir.Lstat(n.onDisk)
		if regularfile.Absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at %q: %w", path, err)
		}
		if info.Mode().Type()&^fs.ModeSymlink != 0 { // replaced meanwhile by something that is no file
			return nil
		}
		s.reportFound(Found{Kind: Untracked, Path: path, info: info, stat: index.StatOf(info)})
	}
	return nil
}

// isTooLong reports whether a path is too long to check out, or too deep.
func isTooLong(path string) bool { return len(path) > pathname.Longest || pathname.IsTooDeep(path) }

// scanUntrackedFolder scans a folder without tracked files. Like git, it skips an unreadable one.
func (s *Scan) scanUntrackedFolder(ctx context.Context, dir *os.Root, n listedName, at folderRange) error {
	path := at.path + n.inGit
	s.recordFolder(path+"/", n)
	sub, err := regularfile.OpenFolder(dir, n.onDisk)
	if errors.Is(err, fs.ErrPermission) || regularfile.Absent(err) { // the latter was removed meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer sub.Close()
	if holdsRepository(sub) {
		s.reportFound(Found{Kind: Repository, Path: path, Dir: true})
		return nil
	}
	upper := openUpperSubfolder(at.upper, n.onDisk)
	defer closeUpper(upper)
	err = s.scanFolder(ctx, sub, folderRange{path: path + "/", lo: at.hi, hi: at.hi, ignores: at.ignores, upper: upper})
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// holdsRepository reports whether git would treat the folder as a repository: it has a .git file,
// or a .git folder with a repository's parts.
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
