package gitops_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

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
