package gitops

import "github.com/agent-ci/agent-ci/gitops/internal/program"

// FindGit returns the path of the git program in pathEnv, a list as in PATH,
// or "" when there is none. What PathOutside leaves out for root is passed over.
func FindGit(pathEnv, root string) string { return program.Find(pathEnv, root) }

// PathOutside is a list as in PATH without the folders in which commands that work
// at root, a work tree, may have put programs. root may be "" for none.
func PathOutside(pathEnv, root string) string { return program.PathOutside(pathEnv, root) }

// LeadsThrough says whether a path lies in a folder or is reached through it,
// whether it is there yet or not.
func LeadsThrough(path, folder string) bool { return program.LeadsThrough(path, folder) }
