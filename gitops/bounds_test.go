package gitops_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

// hugeSize is that of a file which takes no room and no end to read.
const hugeSize = 15 << 40

func problemKinds(cs *gitops.ChangeSet) map[string]int {
	kinds := map[string]int{}
	for _, p := range cs.Problems {
		kinds[string(p.Kind)]++
	}
	return kinds
}

func TestExcludesLargeFileUnread(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	c := r.open()
	snap := snapshot(t, c)
	r.Sparse("new", hugeSize)
	r.Sparse("README", hugeSize)
	r.Write("small", "s\n")
	cs := changes(t, c, snap)
	gittest.Same(t, "change", []string{"A small"}, nameStatus(cs))
	gittest.Same(t, "problems", map[string]int{"large": 2}, problemKinds(cs))
	dirty, err := c.Dirty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "modified", []string{"README"}, dirty)
}

func TestExcludesTooDeepFolders(t *testing.T) {
	t.Parallel()
	for name, depth := range map[string]int{"d": 1500, strings.Repeat("long", 60): 30} {
		t.Run(name[:1], func(t *testing.T) {
			r := newRepo(t)
			r.Seed()
			c := r.open()
			snap := snapshot(t, c)
			r.Nest(name, depth)
			r.Write("beside", "b\n")
			cs := changes(t, c, snap)
			gittest.Same(t, "change", []string{"A beside"}, nameStatus(cs))
			gittest.Same(t, "problems", map[string]int{"too_deep": 1}, problemKinds(cs))
			if later := snapshot(t, c); !changes(t, c, later).Empty() || len(changes(t, c, later).Problems) > 0 {
				t.Error("what lay there before the first turn counts")
			}
		})
	}
}

// What git keeps may be a pipe that nobody writes to.
func TestOpenDoesNotBlockOnPipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git/info/exclude", ".git/info/attributes", ".git/index", ".git/HEAD", ".git/shallow", ".git/objects/info/alternates"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			r := newRepo(t)
			r.Seed()
			r.Remove(name)
			if err := syscall.Mkfifo(r.Path(name), 0o666); err != nil {
				t.Fatal(err)
			}
			state := t.TempDir()
			c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.Dir, Git: gittest.Program(t), State: state})
			if err == nil {
				c.Close()
				t.Error("it was opened")
			}
		})
	}
}
