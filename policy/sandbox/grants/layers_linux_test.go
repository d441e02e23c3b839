package grants

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestFollowMatchesStepwiseResolution(t *testing.T) {
	base := t.TempDir()
	workspace, upper := filepath.Join(base, "workspace"), filepath.Join(base, "upper")
	for _, folder := range []string{workspace + "/below/deep", upper + "/below", upper + "/above/deep", base + "/home/.config"} {
		must.Do(t, os.MkdirAll(folder, 0o700))
	}
	for _, file := range []string{workspace + "/below/deep/f", upper + "/above/deep/f", base + "/home/.config/f", upper + "/below/g"} {
		must.Do(t, os.WriteFile(file, nil, 0o600))
	}
	for link, to := range map[string]string{
		upper + "/in": "above/deep", upper + "/out": base + "/home", base + "/home/work": workspace, base + "/home/loop": "loop", base + "/home/gone": "nothing/f",
	} {
		must.Do(t, os.Symlink(to, link))
	}
	plain, layered := Layers{}, Layers{overlays: []overlay{{workspace, []string{upper}}}}
	atOnce := layered.withCache()
	for range 2 {
		for _, name := range []string{
			"workspace/below/deep/f", "workspace/below/g", "workspace/above/deep/f", "workspace/in/f", "workspace/out/.config/f", "workspace/out/work/in/f",
			"home/.config/f", "home/.config/f/x", "home/.config/none", "home/work/below/deep/f", "home/work/above/deep", "home/loop/f", "home/gone", "none/f", "",
		} {
			path := filepath.Join(base, name)
			same(t, path, layered, atOnce.resolve)
			same(t, path, plain, filepath.EvalSymlinks)
		}
	}
	must.Do(t, os.Mkdir(base+"/none", 0o700))
	must.Do(t, os.WriteFile(base+"/none/f", nil, 0o600))
	must.Is(t, fs.ErrNotExist, must.Err(atOnce.resolve(base+"/none/f")), "what was missing is remembered")
}

// same compares what a path leads to with what follow says.
func same(t *testing.T, path string, l Layers, follow func(string) (string, error)) {
	t.Helper()
	got, gotErr := l.resolve(path)
	if want, wantErr := follow(path); got != want || (gotErr == nil) != (wantErr == nil) || os.IsNotExist(gotErr) != os.IsNotExist(wantErr) {
		t.Errorf("%s leads to %q (%v), not to %q (%v)", path, got, gotErr, want, wantErr)
	}
}
