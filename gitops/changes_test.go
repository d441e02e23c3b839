package gitops_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

func TestFailingFilterExcludesOnlyItsFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write(".gitattributes", "*.bin filter=large\n")
	r.Seed()
	r.Git("config", "filter.large.clean", "false")
	r.Git("config", "filter.large.required", "true")
	c := r.open()
	snap := snapshot(t, c)
	edit(r)
	r.Write("new.bin", "content")
	cs := changes(t, c, snap)
	gittest.Same(t, "change", []string{"M README"}, nameStatus(cs))
	gittest.Same(t, "problems", []gitops.ProblemKind{gitops.ProblemUnreadable}, kinds(cs))
}
