package layer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// Neither a folder with a file that can't be read, nor what an earlier copy left that was cut off,
// becomes a part of the caches.
func TestSkipsUncopyableCaches(t *testing.T) {
	if !sandboxtest.AsNobody(t) {
		return
	}
	from, to := t.TempDir(), t.TempDir()
	module, left := filepath.Join(from, "cache", "module"), filepath.Join(to, "cache.partial", "module")
	t.Cleanup(func() { _ = errors.Join(layer.Remove(module), layer.Remove(left)) })
	for _, folder := range []string{module, left} {
		must.Do(t, errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "file"), nil, 0), os.Chmod(folder, 0o500)))
	}
	expect := func(want ...string) {
		t.Helper()
		must.Do(t, layer.CopyCaches(t.Context(), from, to, "cache"))
		for folder, want := range map[string][]string{to: {"cache"}, filepath.Join(to, "cache"): want} {
			entries, err := os.ReadDir(folder)
			if err != nil || len(entries) != len(want) || len(want) > 0 && entries[0].Name() != want[0] {
				t.Errorf("%s has %v, %v; want %v", folder, entries, err, want)
			}
		}
	}
	expect()
	must.Do(t, os.Chmod(filepath.Join(module, "file"), 0o400))
	expect("module")
	must.Is(t, nil, layer.Remove(to))
}
