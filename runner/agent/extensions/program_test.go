package extensions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRunsProgramsOfBaseCommit(t *testing.T) {
	base := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool.sh": 0o755, "plain.txt": 0o644, "sub/tool.sh": 0o755} {
		path := filepath.Join(base, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, nil, mode))
	}
	must.Do(t, os.Symlink("/bin/sh", filepath.Join(base, "out.sh")))
	must.Do(t, os.Symlink("sub/tool.sh", filepath.Join(base, "in.sh")))
	for name, want := range map[string]string{
		"./tool.sh":        filepath.Join(base, "tool.sh"),
		"sub/tool.sh":      filepath.Join(base, "sub/tool.sh"),
		"./sub/../tool.sh": filepath.Join(base, "tool.sh"),
		"./in.sh":          filepath.Join(base, "in.sh"),
		"/bin/sh":          "/bin/sh",
		"./missing.sh":     "there is no ./missing.sh in the base commit",
		"./plain.txt":      "is no program",
		"./sub":            "is no program",
		"./out.sh":         "there is no ./out.sh",
		"~/tool.sh":        "HOME is not set",
		"../tool.sh":       "leads out of the repository",
		"/checkout/x.sh":   "is in the checkout",
	} {
		path, why := findProgram(name, base, func(path string) bool { return strings.HasPrefix(path, "/checkout/") })
		if path != want && !(why != "" && strings.Contains(why, want)) {
			t.Errorf("%s: got %q, %q, want %q", name, path, why, want)
		}
	}
	if _, why := findProgram("./tool.sh", "", func(string) bool { return false }); !strings.Contains(why, "no base commit") {
		t.Errorf("without a base it says %q", why)
	}
}
