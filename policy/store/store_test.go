package store_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/store"
)

func TestReplaceIsAtomic(t *testing.T) {
	t.Parallel()
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	defer root.Close()
	full := errors.New("the disk is full")
	failing := func(to io.Writer) error {
		_, _ = io.WriteString(to, "a part")
		return full
	}
	must.Do(t, store.Replace(root, "file", "new", store.Text([]byte("old"))))
	must.Is(t, full, store.Replace(root, "file", "new", failing))
	must.Same(t, "old", string(must.Get(root.ReadFile("file"))(t)), "the file")
	must.Do(t, store.Replace(root, "file", "new", store.Text([]byte("now"))))
	must.Same(t, "now", string(must.Get(root.ReadFile("file"))(t)), "the file")
	must.Is(t, os.ErrNotExist, must.Err(root.Stat("file.new")), "a file is left beside")
}
