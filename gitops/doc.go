// Package gitops owns a checkout: the commit that a run starts from, what
// changed in the work tree since then, the commit of that change, and fresh
// trees to verify it in. It is what the rest of the program sees of the rooms
// below internal: repository (what a .git says of a work tree), objects, index,
// and worktree (the files). go-git reads objects; the index, the references, the
// ignore and attribute rules and line endings are read here by git's own rules,
// because go-git gets them wrong where a checkout is not plain.
//
// The git program is used for what only it can do (clean and smudge filters,
// binary patches) and for reading the configuration, always in a private git
// folder whose configuration was read before the agent ran: hooks, configuration
// and filters that appear later are never executed.
//
// The package knows no network (see remote), no forge (see github), no task
// and no policy: what is doubtful in a change it names as a Problem, and who
// calls decides.
package gitops
