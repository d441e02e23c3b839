package regularfile_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/must"
)

// places is a folder with one of each kind of thing.
func places(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, errors.Join(
		os.WriteFile(at("file"), []byte("12345"), 0o666), os.Mkdir(at("folder"), 0o777),
		os.Symlink("file", at("link")), os.Symlink(at("file"), at("out")), syscall.Mkfifo(at("pipe"), 0o666),
	))
	root = must.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func TestReadsRegularFilesWithinBound(t *testing.T) {
	dir, root := places(t)
	for name, want := range map[string]struct{ path, in bool }{
		"file": {true, true}, "out": {true, false}, "folder": {}, "pipe": {}, "none": {},
	} {
		data, err := regularfile.Read(filepath.Join(dir, name), 5)
		if (err == nil) != want.path || want.path && string(data) != "12345" {
			t.Errorf("Read(%s) = %q, %v", name, data, err)
		}
		data, err = regularfile.ReadIn(root, name)
		if (err == nil) != want.in || want.in && string(data) != "12345" {
			t.Errorf("ReadIn(%s) = %q, %v", name, data, err)
		}
	}
	must.None(t, must.Get(regularfile.Read(os.DevNull, 5))(t), "the null device")
	must.Fail(t, "", must.Err(regularfile.Read("/dev/zero", 5)), "another device was read")
	must.Fail(t, "", must.Err(regularfile.Read(filepath.Join(dir, "file"), 4)), "over the bound")
	must.Fail(t, "", must.Err(regularfile.Read("/proc/self/status", 5)), "the beginning of a file that claims to be empty")
	must.Fail(t, "", must.Err(regularfile.ReadIn(root, "../"+filepath.Base(dir)+"/file")), "a file outside of the folder was read")
}

func TestAppendsOnlyToRegularFiles(t *testing.T) {
	dir, _ := places(t)
	for name, takes := range map[string]bool{"file": true, "new": true, "link": false, "folder": false, "pipe": false} {
		f, err := regularfile.Append(filepath.Join(dir, name))
		must.Same(t, takes, err == nil, "Append", name, err)
		if err == nil {
			_, err = f.WriteString("6")
			must.Do(t, errors.Join(err, f.Close()))
		}
	}
	must.Same(t, "123456", string(must.Get(os.ReadFile(filepath.Join(dir, "file")))(t)), "the file")
}

func TestOpenFolderRefusesNonFolders(t *testing.T) {
	_, root := places(t)
	for name, opens := range map[string]bool{"folder": true, "file": false, "pipe": false, "none": false} {
		folder, err := regularfile.OpenFolder(root, name)
		must.Same(t, opens, err == nil, "OpenFolder", name, err)
		if err == nil {
			folder.Close()
		}
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := regularfile.Until(ctx, strings.NewReader("12345"))
	must.Get(io.ReadFull(r, make([]byte, 2)))(t)
	why := errors.New("it ended")
	cancel(why)
	if n, err := r.Read(make([]byte, 2)); n > 0 || !errors.Is(err, why) {
		t.Errorf("read %d, %v", n, err)
	}
}
