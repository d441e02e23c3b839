package extensions

import (
	"fmt"
	"os"
	"path/filepath"
)

// findProgram finds a program that is named by a path: a relative one in the tree of the base
// commit, an absolute one anywhere but in the workspace. why says why it can't be used.
func findProgram(name, base string, inWorkspace func(path string) bool) (path, why string) {
	if filepath.IsAbs(name) {
		if inWorkspace(name) {
			return "", fmt.Sprintf("%s lies in the checkout or a folder of policy.writable, where the agent could change it; name it by its path in the repository, ./%s, which is taken of the base commit", name, filepath.Base(name))
		}
		return name, ""
	}
	clean := filepath.Clean(name)
	if !filepath.IsLocal(clean) {
		return "", name + " leads out of the repository"
	}
	if base == "" {
		return "", "there is no base commit to take " + name + " of"
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return "", "the tree of the base commit can't be opened: " + err.Error()
	}
	defer root.Close()
	info, err := root.Stat(clean)
	switch {
	case err != nil:
		return "", fmt.Sprintf("there is no %s in the base commit", name)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Sprintf("%s of the base commit is no program: give it the executable bit (git update-index --chmod=+x)", name)
	}
	return filepath.Join(base, clean), ""
}
