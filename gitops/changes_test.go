package gitops_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

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

// Reading updates the access time on no file system that tests run on for
// sure, so an unchanged file is given other content of the same size behind
// unchanged stat data: who does not read does not see it.
func TestReadsNoUnchangedFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	r.Git("config", "core.trustctime", "false")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(r.Path("README"), past, past); err != nil {
		t.Fatal(err)
	}
	r.Git("update-index", "--refresh")
	f, err := os.OpenFile(r.Path("README"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("ONE\nTWO\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(r.Path("README"), past, past); err != nil {
		t.Fatal(err)
	}
	c := r.open()
	snap := snapshot(t, c)
	r.Write("src/main.go", "package other\n")
	gittest.Same(t, "change", []string{"M src/main.go"}, nameStatus(changes(t, c, snap)))
}

// A disk that is full must be told from a git that failed, also where git is
// ended by its broken pipe.
func TestExplainsUnwritablePatch(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	c := r.open()
	snap := snapshot(t, c)
	r.Write("README", strings.Repeat("a line of a patch that fits in no pipe\n", 10000))
	err := c.WritePatch(t.Context(), changes(t, c, snap), fullDisk{})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

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
