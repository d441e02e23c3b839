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
		must.Same(t, want, string(must.Get(Read(t.Context(), name, most))(t)), "of at most", most)
	}
}

func TestReadInTakesRegularFilesInBounds(t *testing.T) {
	root := folder(t)
	must.Same(t, "12345", string(must.Get(ReadIn(root, "file", 5))(t)))
	for name, want := range map[string]string{"file": "it has 5 bytes, more than 4", "pipe": "not a regular file", ".": "not a regular file", "none": "no such file"} {
		must.Fail(t, want, must.Err(ReadIn(root, name, 4)), name)
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := WithContext(ctx, strings.NewReader("12345"))
	must.Get(io.ReadFull(r, make([]byte, 2)))(t)
	cancel(ended)
	must.Is(t, ended, must.Err(r.Read(make([]byte, 2))))
}
