package gitops

import "fmt"

// Problem is something doubtful in a change. Whether it stops a publish is for
// who calls to decide.
type Problem struct {
	Kind   ProblemKind
	Path   string
	Detail string
}

// ProblemKind is a kind of Problem.
type ProblemKind string

// The kinds of problems.
const (
	ProblemRepository ProblemKind = "nested_repository" // a new .git: what is below is not part of the change
	ProblemName       ProblemKind = "dangerous_name"    // taken for .git by some file system
	ProblemSubmodule  ProblemKind = "submodule"         // the commit of a submodule
	ProblemLink       ProblemKind = "link_leads_out"    // a symbolic link out of the repository
	ProblemUnreadable ProblemKind = "unreadable"        // a file that may not be read, or needs a filter that cannot be run: left out
	ProblemLarge      ProblemKind = "large"             // more than a change may have: left out, unread
	ProblemTooDeep    ProblemKind = "too_deep"          // a path that git could not check out: left out, with all below it
)

func (p Problem) String() string {
	return fmt.Sprintf("%q: %s", p.Path, p.Detail)
}
