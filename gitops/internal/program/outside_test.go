package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestSearchPathOutside(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"work/bin", "work2", "tools"} {
		must.Do(t, os.MkdirAll(at(folder), 0o755))
	}
	for link, to := range map[string]string{
		"in": at("work/bin"), "later": "work/not/yet", "out": at("tools"), "root": at("work"), "round": at("round"), "through": at("work/leads"), "work/leads": at("tools"),
	} {
		must.Do(t, os.Symlink(to, at(link)))
	}
	for path, want := range map[string]bool{
		at("tools"): true, at("work2"): true, at("out"): true, at("nowhere"): true, "/": true,
		at("work"): false, at("work/leads"): false, at("round"): false, at("through"): false, at("work/bin"): false, at("work/not/yet"): false, at("in"): false, at("in/deeper"): false, at("later"): false, at("tools/../work"): false, at("in") + "/../../tools": false,
		"": false, ".": false, "bin": false,
	} {
		for _, root := range []string{at("work"), at("root")} {
			if got := program.SearchPathOutside("/usr/bin:"+path, root); (got == "/usr/bin:"+path) != want || !strings.HasPrefix(got, "/usr/bin") {
				t.Errorf("SearchPathOutside(%q, %q) = %q", path, root, got)
			}
			if filepath.IsAbs(path) && program.LeadsThrough(path, root) == want {
				t.Errorf("LeadsThrough(%q, %q) = %v", path, root, want)
			}
		}
	}
	must.Same(t, at("work")+":/usr/bin", program.SearchPathOutside(at("work")+"::/usr/bin", ""), "without a work tree")
}
