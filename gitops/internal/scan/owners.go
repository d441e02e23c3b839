package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Owned is a file with its owner.
type Owned struct {
	Path     string
	UID, GID uint32
}

// ForeignFile returns a file or folder that belongs to another user or group, or nil. It checks
// folders with tracked files, and untracked files. In a folder without tracked files it checks only
// the folder and its direct entries, because such a folder, like an installation, usually has one
// owner.
func ForeignFile(ctx context.Context, t Tree, ix *index.File, uid, gid uint32) (*Owned, error) {
	s := ownerCheck{ctx, ix, t, uid, gid}
	err := s.checkFolder(t.Dir, "", 0, ix.Len())
	if found := (*ownedError)(nil); errors.As(err, &found) {
		return &found.Owned, nil
	}
	return nil, err
}

type ownerCheck struct {
	ctx      context.Context
	ix       *index.File
	tree     Tree
	uid, gid uint32
}

// ownedError stops the search with its result.
type ownedError struct{ Owned }

func (e *ownedError) Error() string { return e.Path }

// checkFolder checks a folder whose index entries are lo to hi. path is "" or ends with a slash.
func (s ownerCheck) checkFolder(dir *os.Root, path string, lo, hi int) error {
	if err := s.requireOwner(dir, ".", strings.TrimSuffix(path, "/")); err != nil {
		return err
	}
	return s.eachName(dir, func(name string) error {
		at, end := s.ix.Named(path+name, lo, hi)
		first, last := s.ix.Folder(path+name+"/", lo, hi)
		switch {
		case at < end && s.ix.Mode(at) != index.Gitlink: // a tracked file: the caller compares the owner in the index
			return nil
		case path == "" && name == ".git" || s.tree.Repo.Settings.Covers(s.tree.Skip, path+name):
			return nil
		case first < last:
			return s.withFolder(dir, name, func(sub *os.Root) error { return s.checkFolder(sub, path+name+"/", first, last) })
		}
		return s.checkUntracked(dir, name, path+name)
	})
}

// checkUntracked checks an untracked path and its direct content.
func (s ownerCheck) checkUntracked(dir *os.Root, name, path string) error {
	if err := s.requireOwner(dir, name, path); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	return s.withFolder(dir, name, func(sub *os.Root) error {
		return s.eachName(sub, func(name string) error { return s.requireOwner(sub, name, path+"/"+name) })
	})
}

// withFolder calls do with an open folder. It skips a missing or unreadable one.
func (s ownerCheck) withFolder(dir *os.Root, name string, do func(*os.Root) error) error {
	sub, err := regularfile.OpenFolder(dir, name)
	if err != nil {
		return nil
	}
	defer sub.Close()
	return do(sub)
}

// eachName calls do for each name in a folder. It skips an unreadable folder.
func (s ownerCheck) eachName(dir *os.Root, do func(name string) error) error {
	f, err := dir.Open(".")
	if err != nil {
		return nil // this process may not see its content
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(listedAtOnce) // Readdirnames does not stat the files, unlike ReadDir on some systems
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("look for whom files belong to: %w", err)
		case s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		}
	}
}

// requireOwner returns an ownedError if the file belongs to another user or group.
func (s ownerCheck) requireOwner(dir *os.Root, name, path string) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil // it was deleted
	}
	if stat := index.StatOf(info); stat.UID != s.uid || stat.GID != s.gid {
		return &ownedError{Owned{path, stat.UID, stat.GID}}
	}
	return nil
}
