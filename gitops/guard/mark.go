package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Mark records the state of a workspace's git files that commands can write and a later program
// would obey. Changed compares it with the current state.
type Mark struct {
	workspace string
	folders   []string          // git folders that are compared: every .git, and other folders that a .git names
	entries   map[string]string // state by absolute path
	all       bool              // a new .git outside folders counts as a change
	objects   map[string]object // files of the workspace's objects folder, by absolute path; nil without one
}

// NewMark records the git files that commands can write. If the whole workspace is writable (all),
// those are every .git and the workspace's own objects. Otherwise those are the .git of submodules,
// because git of the repository above runs in them. submodules lists submodule paths in addition to
// .gitmodules. NewMark returns nil if there is nothing to record.
func NewMark(ctx context.Context, workspace string, all bool, submodules []string) (*Mark, error) {
	workspace, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, fmt.Errorf("find the workspace: %w", err)
	}
	m := &Mark{workspace: workspace, entries: make(map[string]string), all: all}
	if err := m.findFolders(ctx, submodules); err != nil {
		return nil, err
	}
	if len(m.folders) == 0 && !m.all {
		return nil, nil
	}
	if m.all {
		if err := m.markObjects(ctx); err != nil {
			return nil, fmt.Errorf("look at git's objects: %w", err)
		}
	}
	return m, m.recordState(ctx)
}

// findFolders finds the git folders to record: all of them in a writable workspace, otherwise those
// of submodules.
func (m *Mark) findFolders(ctx context.Context, submodules []string) error {
	var below []string
	if m.all {
		l, err := layoutOf(m.workspace)
		if err != nil {
			return err
		}
		m.folders = l.folders()
		if below, err = m.repositories(ctx); err != nil {
			return err
		}
	} else {
		below = m.submodules(submodules)
	}
	m.folders = append(m.folders, below...)
	for _, dotGit := range below {
		m.addNamedFolders(dotGit)
	}
	return nil
}

// addNamedFolders adds the git folder that a .git file names, and the shared folder that the git folder's
// commondir names, existing or not.
func (m *Mark) addNamedFolders(dotGit string) {
	gitDir, err := nameIn(dotGit, "gitdir: ")
	if err != nil {
		return
	}
	gitDir = filepath.Clean(gitDir)
	m.addFolder(gitDir)
	if commonDir, err := nameIn(filepath.Join(gitDir, "commondir"), ""); err == nil {
		m.addFolder(filepath.Clean(commonDir))
	}
}

// addFolder adds a folder as it is named, and with its links resolved. It skips a place that is outside the
// workspace, in the workspace's own .git, or in a folder that was added before.
func (m *Mark) addFolder(named string) {
	forms := []string{named}
	if real, err := filepath.EvalSymlinks(named); err == nil && real != named {
		forms = append(forms, real)
	}
	for _, folder := range forms {
		own := pathname.IsInAny(folder, filepath.Join(m.workspace, ".git")) // protected by the sandbox, or already in folders
		if !own && pathname.IsInAny(folder, m.workspace) && !pathname.IsInAny(folder, m.folders...) {
			m.folders = append(m.folders, folder)
		}
	}
}

// recordState records the current state of folders. It does not look for folders again, because
// commands could change the files that name them.
func (m *Mark) recordState(ctx context.Context) error {
	for _, folder := range m.folders {
		if err := m.recordFolder(ctx, folder); err != nil {
			return fmt.Errorf("look at git's folder: %w", err)
		}
	}
	return nil
}

// repositories returns every .git in the workspace except its own.
func (m *Mark) repositories(ctx context.Context) ([]string, error) {
	var found []string
	err := filepath.WalkDir(m.workspace, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return nil // git cannot use a folder that cannot be listed
		case path == filepath.Join(m.workspace, ".git"):
			return skip(entry)
		case strings.EqualFold(entry.Name(), ".git") && path != m.workspace:
			found = append(found, path)
			return skip(entry)
		}
		return nil
	})
	return found, err
}

// submodules returns the .git paths of submodules, existing or not, recursively.
func (m *Mark) submodules(paths []string) []string {
	found := submodulesOf(m.workspace)
	for _, path := range paths {
		below := filepath.Join(m.workspace, filepath.FromSlash(path))
		dotGit := filepath.Join(below, ".git")
		if filepath.IsLocal(path) && !slices.Contains(found, dotGit) {
			found = append(append(found, dotGit), submodulesOf(below)...)
		}
	}
	return found
}

// recordFolder records the content of a git folder, except for files that git changes in normal
// work.
func (m *Mark) recordFolder(ctx context.Context, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			m.entries[path] = "unreadable" // this counts as a change if a command made it unreadable
			return skip(entry)
		}
		below, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if ignored, err := ignoreEntry(filepath.ToSlash(below), entry); ignored {
			return err
		}
		m.entries[path], err = contentOf(ctx, path, entry)
		return err
	})
}

// ignoreEntry reports whether to ignore an entry that git changes in normal work. err is fs.SkipDir for a
// folder to ignore with its content. ignoreEntry does not ignore a link or FIFO in place of a file, because
// git would write through it.
func ignoreEntry(below string, entry fs.DirEntry) (ignored bool, err error) {
	isLock := strings.HasSuffix(below, ".lock") || strings.HasPrefix(below, "agent-ci.lock.") // the latter become locks
	switch {
	case isLock && !entry.IsDir():
		return true, nil
	case !changesByItself(below):
		return false, nil
	case entry.IsDir() && !isOfLogs(below):
		return true, fs.SkipDir
	}
	return entry.IsDir() || entry.Type().IsRegular(), nil
}

// isOfLogs reports whether a path is the folder logs or is in it.
func isOfLogs(below string) bool {
	parts := strings.Split(below, "/")
	if parts[0] == "modules" || parts[0] == "worktrees" {
		return slices.Contains(parts, "logs")
	}
	return parts[0] == "logs"
}

// changesByItself reports whether git writes to a path in normal work. below is the path in the git
// folder.
func changesByItself(below string) bool {
	first, _, _ := strings.Cut(below, "/")
	if first == "modules" || first == "worktrees" {
		return moduleChangesByItself(below)
	}
	if first == "objects" {
		return below != "objects" && !strings.HasPrefix(below, "objects/info")
	}
	return isOfLogs(below) || below == "index" || strings.HasPrefix(below, "sharedindex.") ||
		slices.Contains([]string{"COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "gc.log", "gc.pid"}, below)
}

// moduleChangesByItself is changesByItself for the git folder of a submodule or linked work tree,
// whose name may contain slashes.
func moduleChangesByItself(below string) bool {
	return isOfLogs(below) || slices.Contains([]string{"index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG"}, filepath.Base(below)) ||
		strings.Contains(below, "/objects/") && !strings.Contains(below, "/objects/info")
}

// maxComparedBytes is the largest part of a file that is compared. git's own files are smaller, but
// commands can make files of any size.
const maxComparedBytes = 256 << 20

// contentOf returns a text that identifies a file's type, mode and content.
func contentOf(ctx context.Context, path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "folder", nil // its entries are recorded separately
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return "link to " + target, err
	case !mode.IsRegular():
		return mode.Type().String(), nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) {
		return info.Mode().String() + " unreadable", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	digest, err := digestOf(regularfile.Until(ctx, f))
	return fmt.Sprintf("%s %d %s", info.Mode(), info.Size(), digest), err
}

func digestOf(r io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, io.LimitReader(r, maxComparedBytes))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// ChangedFiles lists the paths that differ from the record, relative to the workspace, with the kind of
// difference. It does not run git.
func (m *Mark) ChangedFiles(ctx context.Context) ([]string, error) {
	now := &Mark{workspace: m.workspace, folders: m.folders, entries: make(map[string]string)}
	if err := now.recordState(ctx); err != nil {
		return nil, err
	}
	var changed []string
	for _, path := range slices.Sorted(maps.Keys(m.entries)) {
		is, there := now.entries[path]
		switch {
		case !there:
			changed = append(changed, m.formatPath(path)+" is gone")
		case is != m.entries[path]:
			changed = append(changed, m.formatPath(path)+" was changed")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now.entries)) {
		if _, was := m.entries[path]; !was {
			changed = append(changed, m.formatPath(path)+" is new")
		}
	}
	if m.all {
		found, err := now.repositories(ctx)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if !slices.Contains(m.folders, path) {
				changed = append(changed, m.formatPath(path)+" is a new repository")
			}
		}
	}
	return changed, nil
}

// formatPath formats a path for messages. It quotes a path with invisible characters.
func (m *Mark) formatPath(path string) string {
	if below, is := pathname.Below(m.workspace, path); is {
		path = filepath.ToSlash(below)
	}
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
