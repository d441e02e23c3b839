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
	if err := store.Replace(root, "file", "new", failing); !errors.Is(err, full) {
		t.Errorf("err = %v", err)
	}
	if raw, err := root.ReadFile("file"); err != nil || string(raw) != "old" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	must.Do(t, store.Replace(root, "file", "new", store.Text([]byte("now"))))
	if raw, err := root.ReadFile("file"); err != nil || string(raw) != "now" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	if _, err := root.Stat("file.new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left beside: %v", err)
	}
}
