package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// findProgram returns the path of the program that a job names by a path. It looks up a relative name in base, the
// folder with the base commit's tree. It refuses an absolute name for which changeable is true: the agent's commands
// could change that program. If the program cannot be used, problem says why.
func findProgram(name, base string, changeable func(path string) bool) (path, problem string) {
	if filepath.IsAbs(name) {
		if changeable(name) {
			return "", fmt.Sprintf("%s is in the checkout or in a folder of policy.writable, where the agent could change it, or is a link to one; name it by its path in the repository (./…), so that it comes from the base commit, or move it elsewhere", name)
		}
		return name, "" // not checked to exist: setup may have installed it only inside the sandbox
	}
	if strings.HasPrefix(name, "~/") { // ExpandHome replaces it unless HOME is missing
		return "", "HOME is not set, below which " + name + " is"
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
