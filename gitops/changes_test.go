package gitops_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

func TestChangesCountsLines(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("blob", "\x00\x01")
	r.Link("README", "link")
	r.Seed()
	c := r.open()
	snap := snapshot(t, c)
	r.Write("README", "one\nzwei\nthree")
	r.Write("blob", "\x00\x02")
	r.Write("empty", "")
	r.Remove("gone", "link")
	r.Link("gone", "link")
	cs := changes(t, c, snap)
	got := map[string][2]int{}
	binary := map[string]bool{}
	for _, f := range cs.Files {
		got[f.Path], binary[f.Path] = [2]int{f.Insertions, f.Deletions}, f.Binary
	}
	gittest.Same(t, "lines", map[string][2]int{"README": {2, 1}, "blob": {}, "empty": {}, "gone": {0, 1}, "link": {1, 1}}, got)
	gittest.Same(t, "binary", map[string]bool{"README": false, "blob": true, "empty": false, "gone": false, "link": false}, binary)
	gittest.Same(t, "insertions and deletions", [2]int{3, 3}, [2]int{cs.Insertions, cs.Deletions})
}

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
