package gitops

import (
	"fmt"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Problem is something doubtful in a change. Whether it stops a publish is for
// who calls to decide.
type Problem struct {
	Kind   ProblemKind
	Path   string
	Detail string
}

type ProblemKind string

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

// judge names what is doubtful about one changed path.
func (c *Checkout) judge(cs *ChangeSet, d objects.Difference) error {
	if d.New.Mode == 0 {
		return nil
	}
	if !objects.ValidPath(d.Path) {
		cs.Problems = append(cs.Problems, Problem{ProblemName, d.Path, "some systems take the name for .git"})
	}
	switch d.New.Mode {
	case index.Gitlink:
		cs.Problems = append(cs.Problems, Problem{ProblemSubmodule, d.Path, "it points to another commit"})
	case index.Symlink:
		const longest = 1 << 16
		target, err := c.objects.BlobBytes(d.New.ID, longest)
		if err != nil {
			return err
		}
		if leadsOut(d.Path, string(target)) {
			cs.Problems = append(cs.Problems, Problem{ProblemLink, d.Path, fmt.Sprintf("it leads out of the repository, to %q", target)})
		}
	}
	return nil
}

// leadsOut says whether a link's target lies outside of the checkout by its
// text, or within .git. One that goes up behind a name may do so too: what the
// name is may be another link.
func leadsOut(link, target string) bool {
	if strings.HasPrefix(target, "/") {
		return true
	}
	named := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && named {
			return true
		}
		named = named || part != ".." && part != "." && part != ""
	}
	to := path.Join(path.Dir(link), target)
	return to == ".." || strings.HasPrefix(to, "../") || !objects.ValidPath(to) && to != "."
}
