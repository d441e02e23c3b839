package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// layout holds the paths of a work tree's git folders. The zero layout means no repository.
type layout struct {
	dotGit    string // the .git in the work tree
	gitDir    string // dotGit, or the folder that it names if it is a file
	commonDir string // the folder that gitDir shares with other work trees, or gitDir
}

// layoutOf returns the git folders of a work tree, or the zero layout if there is no repository. It
// returns a *CheckoutError for a .git that is a symbolic link.
func layoutOf(root string) (layout, error) {
	dotGit := filepath.Join(root, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return layout{}, nil
	case err != nil:
		return layout{}, fmt.Errorf("look at .git: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return layout{}, &CheckoutError{dotGit + " is a symbolic link, which commands could replace", "make it a folder, or a file that names one"}
	}
	l := layout{dotGit: dotGit, gitDir: dotGit}
	if !info.IsDir() {
		if l.gitDir, err = namedFolder(dotGit, "gitdir: "); err != nil {
			return layout{}, err
		}
	}
	if l.commonDir, err = namedFolder(filepath.Join(l.gitDir, "commondir"), ""); err != nil {
		l.commonDir = l.gitDir // no folder is shared
	}
	return l, nil
}

func (l layout) folders() []string {
	if l == (layout{}) {
		return nil
	}
	return slices.Compact([]string{l.dotGit, l.gitDir, l.commonDir})
}

// configurations returns the configuration files of the repository and its submodules.
func (l layout) configurations() []string {
	if l == (layout{}) {
		return nil
	}
	files := []string{filepath.Join(l.commonDir, "config"), filepath.Join(l.gitDir, "config.worktree"), filepath.Join(l.commonDir, "config.worktree")}
	_ = filepath.WalkDir(filepath.Join(l.commonDir, "modules"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && (entry.Name() == "objects" || entry.Name() == "refs" || entry.Name() == "logs"):
			return fs.SkipDir
		case entry.Type().IsRegular() && (entry.Name() == "config" || entry.Name() == "config.worktree"):
			files = append(files, path)
		}
		return nil
	})
	return files
}

// submodulesOf returns the .git paths of the submodules in .gitmodules, recursively. It reads each
// folder once, because commands can write paths there that lead back to a folder above.
func submodulesOf(workspace string) []string {
	return submodulesBelow(workspace, make(map[string]bool))
}

// submodulesBelow returns the .git paths of the submodules in .gitmodules, recursively. read
// contains the folders read so far, with links resolved.
func submodulesBelow(workspace string, read map[string]bool) []string {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil || read[real] {
		return nil
	}
	read[real] = true
	raw, err := readSmall(filepath.Join(workspace, ".gitmodules"))
	if err != nil {
		return nil
	}
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(raw)).Decode(c); err != nil {
		return nil
	}
	var found []string
	for _, s := range c.Section("submodule").Subsections {
		path := filepath.FromSlash(s.Option("path"))
		if path != "" && filepath.Clean(path) != "." && filepath.IsLocal(path) {
			below := filepath.Join(workspace, path)
			found = append(append(found, filepath.Join(below, ".git")), submodulesBelow(below, read)...)
		}
	}
	return found
}

// Alternates is the file, below an objects folder, that lists borrowed objects folders
// (gitrepository-layout(5)).
const Alternates = "info/alternates"

// BorrowedObjectFolders returns the objects folders that a checkout borrows from.
func BorrowedObjectFolders(root string) []string {
	l, err := layoutOf(root)
	if err != nil || l == (layout{}) {
		return nil
	}
	return alternatesOf(filepath.Join(l.commonDir, "objects"), 0)
}

// alternatesOf returns the objects folders that an objects folder borrows from, recursively. It returns each
// as it is written, and cleaned. depth is 0 for the objects folder of the repository.
func alternatesOf(objects string, depth int) []string {
	const deepest = 5 // as in git
	raw, err := readSmall(filepath.Join(objects, Alternates))
	if err != nil || depth > deepest {
		return nil
	}
	var found []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = objects + "/" + line
		}
		found = append(append(found, line, filepath.Clean(line)), alternatesOf(line, depth+1)...)
	}
	return found
}

// namedFolder returns the folder that a file names after prefix, with links resolved.
func namedFolder(file, prefix string) (string, error) {
	name, err := nameIn(file, prefix)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// nameIn returns the path that a file names after prefix. It does not clean the path, because ".."
// after a link leads elsewhere than it seems.
func nameIn(file, prefix string) (string, error) {
	raw, err := readSmall(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", filepath.Base(file), err)
	}
	name, ok := strings.CutPrefix(strings.TrimRight(string(raw), "\r\n"), prefix)
	if !ok || name == "" {
		return "", fmt.Errorf("%s does not name a git folder", file)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Dir(file) + "/" + name
	}
	return name, nil
}
