package boundedfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// folder has a file of five bytes and a pipe that nobody writes.
func folder(t *testing.T) *os.Root {
	t.Helper()
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	t.Cleanup(func() { root.Close() })
	must.Do(t, errors.Join(root.WriteFile("file", []byte("12345"), 0o600), syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600)))
	return root
}

func TestReadReturnsOneByteBeyondLimit(t *testing.T) {
	name := filepath.Join(folder(t).Name(), "file")
	for most, want := range map[int64]string{3: "1234", 5: "12345"} {
		if raw, err := Read(t.Context(), name, most); err != nil || string(raw) != want {
			t.Errorf("of at most %d bytes: %q, %v", most, raw, err)
		}
	}
}

func TestReadInTakesRegularFilesInBounds(t *testing.T) {
	root := folder(t)
	if raw, err := ReadIn(root, "file", 5); err != nil || string(raw) != "12345" {
		t.Errorf("got %q, %v", raw, err)
	}
	for name, want := range map[string]string{"file": "it has 5 bytes, more than 4", "pipe": "not a regular file", ".": "not a regular file", "none": "no such file"} {
		if _, err := ReadIn(root, name, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := WithContext(ctx, strings.NewReader("12345"))
	must.Get(io.ReadFull(r, make([]byte, 2)))(t)
	cancel(ended)
	if _, err := r.Read(make([]byte, 2)); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
}
