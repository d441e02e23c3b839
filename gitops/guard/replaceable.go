package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// requireProtected returns a *CheckoutError if commands could replace .git or anything that it
// leads to. A read-only file can be replaced by renaming its folder. So all git folders must be
// outside folders that commands can write to, except .git itself: that is a mount, or compared
// afterwards.
func requireProtected(root string, l layout, writable []string) error {
	if l == (layout{}) {
		return nil
	}
	for _, path := range pathsToRepository(l.dotGit) {
		places, _ := program.Trail(path)
		for _, place := range places {
			if isReplaceable(place, root, l.dotGit, writable) {
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

// isReplaceable reports whether commands could replace the file or folder place. They cannot rename
// the root of a folder that they may write to.
func isReplaceable(place, root, dotGit string, writable []string) bool {
	for _, folder := range writable {
		held := pathname.IsInAny(root, folder) && (place == root || pathname.IsInAny(place, dotGit))
		if place != folder && pathname.IsInAny(place, folder) && !held {
			return true
		}
	}
	return false
}

// pathsToRepository returns the paths through which git finds a repository. These are .git, the
// folder that it names if it is a file, and the folder shared with other work trees. Borrowed
// objects folders, and links in all of these, are included. Hooks are not, because a project may
// have them in the work tree.
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

// linksIn returns the symbolic links in a folder, except hooks.
func linksIn(folder string) []string {
	var links []string
	entries, _ := os.ReadDir(folder) // an unreadable folder has no entries
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 && entry.Name() != "hooks" {
			links = append(links, filepath.Join(folder, entry.Name()))
		}
	}
	return links
}
