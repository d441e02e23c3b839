package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// DefaultBranch is the branch that origin's HEAD was on when it was cloned
// (gitrevisions(7): refs/remotes/origin/HEAD); "" when that is not known.
func (r *Repository) DefaultBranch() string {
	text, err := readSmall(filepath.Join(r.CommonDir, "refs", "remotes", "origin", "HEAD"))
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(text), "ref: refs/remotes/origin/")
	if !ok {
		return ""
	}
	return branch
}

// BranchesAt lists the local branches that point to a commit, sorted.
func (r *Repository) BranchesAt(sha string) ([]string, error) {
	const prefix = "refs/heads/"
	var branches []string
	heads := filepath.Join(r.CommonDir, "refs", "heads")
	err := filepath.WalkDir(heads, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		branch, err := filepath.Rel(heads, path)
		if err != nil {
			return err
		}
		branch = filepath.ToSlash(branch)
		if id, err := r.Refs().Read(prefix + branch); err == nil && id.String() == sha {
			branches = append(branches, branch)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	err = r.Refs().eachPacked(func(name, id string) error {
		branch, isBranch := strings.CutPrefix(name, prefix)
		if !isBranch || id != sha {
			return nil
		}
		// A file beside the packed references has the newer value.
		if now, err := r.Refs().Read(name); err == nil && now.String() == sha && !slices.Contains(branches, branch) {
			branches = append(branches, branch)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	slices.Sort(branches)
	return branches, nil
}

// BranchFits says whether a branch may be called name here: "a" and "a/b"
// cannot both be.
func (r *Repository) BranchFits(name string) error {
	if err := plumbing.NewBranchReferenceName(name).Validate(); err != nil {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	heads := filepath.Join(r.CommonDir, "refs", "heads")
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if info, err := os.Lstat(filepath.Join(heads, filepath.FromSlash(at))); err == nil && !info.IsDir() {
			return fmt.Errorf("there is a branch %s, and %s cannot be beside it: delete it, or give another branch", at, name)
		}
	}
	return r.Refs().fits("refs/heads/" + name)
}

// CheckFree makes sure, before anything is written, that the branch is not checked
// out somewhere else, that its name fits among the others, and that no git is
// at work here.
func (r *Repository) CheckFree(branch string) error {
	heads, err := filepath.Glob(filepath.Join(r.CommonDir, "worktrees", "*", "HEAD"))
	if err != nil {
		return err
	}
	for _, head := range append(heads, filepath.Join(r.CommonDir, "HEAD")) {
		dir := filepath.Dir(head)
		if dir == r.GitDir {
			continue
		}
		if now, err := readHead(dir); err == nil && now == "ref: refs/heads/"+branch && !(dir == r.CommonDir && r.Settings.bare) {
			return fmt.Errorf("it is checked out in another work tree (%s): remove that, or give another branch", dir)
		}
	}
	if err := r.Refs().fits("refs/heads/" + branch); err != nil {
		return err
	}
	return notLocked(filepath.Join(r.GitDir, "index"))
}
