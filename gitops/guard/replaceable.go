package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// requireProtected refuses a checkout if commands could replace its .git or anything it leads to. Read-only
// files can be in folders that can be renamed, so all of git must be outside writable folders,
// except .git itself: it is a mount or compared afterwards.
func (c Checkout) requireProtected(root string, l layout) error {
	if l == (layout{}) {
		return nil
	}
	for _, path := range pathsToRepository(l.dotGit) {
		places, _ := program.Trail(path)
		for _, place := range places {
			if c.replaceable(place, root, l.dotGit) {
				remedy := "move it out of the checkout and of policy.writable (`git init --separate-git-dir=…`), or make it the folder .git"
				if place != root && pathname.IsInAny(root, place) {
					remedy = "name narrower folders in policy.writable, or move the checkout out of them"
				}
				return &CheckoutError{fmt.Sprintf("git's folder %s is reached through %s, where commands write and could put another in its place", path, place), remedy}
			}
		}
	}
	return nil
}

// replaceable reports whether commands could replace the file or folder at a path. They cannot rename the
// root of a folder that they may write to.
func (c Checkout) replaceable(place, root, dotGit string) bool {
	for _, folder := range c.Writable {
		held := pathname.IsInAny(root, folder) && (place == root || pathname.IsInAny(place, dotGit))
		if place != folder && pathname.IsInAny(place, folder) && !held {
			return true
		}
	}
	return false
}

// pathsToRepository returns the paths from which git finds a repository: .git, its target as a file, the
// folder shared with other worktrees, borrowed objects folders, and links inside. Hooks may
// deliberately be in the work tree.
func pathsToRepository(dotGit string) []string {
	ways, gitDir := []string{dotGit}, dotGit
	if named, err := nameIn(dotGit, "gitdir: "); err == nil {
		ways, gitDir = append(ways, named, filepath.Clean(named)), named
	}
	commonDir := gitDir
	if named, err := nameIn(filepath.Join(gitDir, "commondir"), ""); err == nil {
		ways, commonDir = append(ways, named, filepath.Clean(named)), named
	}
	objects := filepath.Join(commonDir, "objects")
	for _, folder := range []string{gitDir, commonDir, objects} {
		ways = append(ways, linksIn(folder)...)
	}
	return append(ways, alternatesOf(objects, 0)...)
}

func linksIn(folder string) []string {
	var links []string
	entries, _ := os.ReadDir(folder) // what can't be listed is none
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 && entry.Name() != "hooks" {
			links = append(links, filepath.Join(folder, entry.Name()))
		}
	}
	return links
}
