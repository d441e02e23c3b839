package layer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// overlay makes the changes of an overlay: "dir/", "dir/ hides", "file=content" and "gone-".
func overlay(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { _ = layer.Remove(filepath.Join(dir, "upper")) })
	for _, change := range append([]string{"/"}, changes...) {
		name, content, isFile := strings.Cut(change, "=")
		folder, hides := strings.CutSuffix(name, " hides")
		at := filepath.Join(dir, "upper", folder)
		var err error
		switch {
		case isFile:
			err = os.WriteFile(at, []byte(content), 0o644)
		case strings.HasSuffix(name, "-"):
			err = unix.Mknod(strings.TrimSuffix(at, "-"), unix.S_IFCHR, 0)
		case hides:
			err = errors.Join(os.Mkdir(at, 0o755), unix.Setxattr(at, "user.overlay.opaque", []byte{'y'}, 0))
		default:
			err = os.Mkdir(at, 0o755)
		}
		must.Do(t, err)
	}
	return dir
}

// changesOf are those of an overlay as overlay takes them.
func changesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	upper := filepath.Join(dir, "upper")
	err := filepath.WalkDir(upper, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == upper {
			return err
		}
		name, _ := filepath.Rel(upper, path)
		switch {
		case entry.IsDir():
			value := make([]byte, 1)
			name += "/"
			if n, err := unix.Lgetxattr(path, "user.overlay.opaque", value); err == nil && n == 1 {
				name += " hides"
			}
		case entry.Type()&fs.ModeCharDevice != 0:
			name += "-"
		default:
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name += "=" + string(raw)
		}
		all = append(all, name)
		return nil
	})
	must.Do(t, err)
	slices.Sort(all)
	return all
}

func TestMergeCombinesLayers(t *testing.T) {
	if !sandboxtest.AsNobody(t) {
		return
	}
	earlier := overlay(t, "old=old", "both=old", "removed=old", "hidden-", "back-", "file=old", "dir/", "dir/old=old", "dir/both=old", "fresh/", "fresh/old=old", "tree/", "tree/deep/", "tree/deep/old=old", "above/ hides", "above/old=old", "closed/", "closed/old=old")
	later := overlay(t, "both=new", "removed-", "back=new", "file/ hides", "dir/", "dir/both=new", "dir/new=new", "fresh/ hides", "fresh/new=new", "above/", "above/new=new", "closed/")
	closed := filepath.Join(later, "upper", "closed")
	must.Do(t, os.Chmod(closed, 0o555))
	before := changesOf(t, earlier)
	must.Do(t, layer.Merge(t.Context(), earlier, later))
	want := []string{
		"above/ hides", "above/new=new", "above/old=old", "back=new", "both=new", "closed/", "closed/old=old", "dir/", "dir/both=new", "dir/new=new", "dir/old=old", "file/ hides",
		"fresh/ hides", "fresh/new=new", "hidden-", "old=old", "removed-", "tree/", "tree/deep/", "tree/deep/old=old",
	}
	slices.Sort(want)
	must.Same(t, want, changesOf(t, later))
	must.Same(t, before, changesOf(t, earlier), "the earlier layer changed")
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the closed folder has mode %v, %v", info.Mode(), err)
	}
	must.Is(t, nil, layer.Merge(t.Context(), t.TempDir(), later), "nothing to merge")
}
