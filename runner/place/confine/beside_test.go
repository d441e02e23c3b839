package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// shared has a folder that commands may write beside the checkout, a folder with a link to it,
// and one of the machine's own. The words ROOT, SHARED, LINKED and OWN stand for them.
func shared(t *testing.T) (s *Sandboxes, named *strings.Replacer) {
	t.Helper()
	s = ready(t)
	folders := make(map[string]string)
	for _, name := range []string{"ROOT", "SHARED", "LINKED", "OWN"} {
		dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		folders[name] = dir
	}
	for from, to := range map[string]string{"LINKED/shared": "SHARED", "LINKED/program": "SHARED/program", "SHARED/out": "OWN"} {
		folder, name, _ := strings.Cut(from, "/")
		top, rest, _ := strings.Cut(to, "/")
		must.Do(t, os.Symlink(filepath.Join(folders[top], rest), filepath.Join(folders[folder], name)))
	}
	s.Root, s.Job.Policy.Writable = folders["ROOT"], []string{folders["SHARED"]}
	var pairs []string
	for name, dir := range folders {
		pairs = append(pairs, name, dir)
	}
	return s, strings.NewReplacer(pairs...)
}

func TestListsWritableFolders(t *testing.T) {
	s, named := shared(t)
	for path, want := range map[string]bool{
		"ROOT": true, "ROOT/x": true, "SHARED/x": true, "LINKED/shared/x": true, "LINKED/program": true,
		"SHARED/out/x": true, // they say where it leads
		"OWN":          false, "OWN/x": false, "LINKED": false, "LINKED/other": false, "/usr/bin/env": false,
	} {
		must.Same(t, want, s.InWorkspace(named.Replace(path)), path)
	}
}

// The variables of the machine lead what runs beside the agent's commands to no code of theirs.
func TestSidecarEnvExcludesAgentCode(t *testing.T) {
	s, named := shared(t)
	s.Environ = nil
	for _, variable := range []string{
		"PATH=ROOT/bin:OWN/bin:.::LINKED/shared:SHARED/bin:/usr/bin", "HOME=OWN", "GITHUB_WORKSPACE=ROOT",
		"PYTHONPATH=/usr/lib/x:SHARED/lib", "NODE_OPTIONS=--max-old-space-size=9 --require=ROOT/x.js", "NODE_PATH=OWN/lib", "RUBYLIB=LINKED/shared",
		"GOFLAGS=-toolexec=ROOT/x", "NODE_EXTRA_CA_CERTS=SHARED/ca.pem", "HTTPS_PROXY=http://127.0.0.1:3128", "PYTHONHOME=ROOT",
	} {
		s.Environ = append(s.Environ, named.Replace(variable))
	}
	got := s.SidecarEnv([]string{"PYTHONHOME"}, map[string]string{"DATA": named.Replace("ROOT/data")})
	want := []string{"DATA=ROOT/data", "GITHUB_WORKSPACE=ROOT", "HOME=OWN", "HTTPS_PROXY=http://127.0.0.1:3128", "NODE_PATH=OWN/lib", "PATH=OWN/bin:/usr/bin", "PYTHONHOME=ROOT"}
	for i := range want {
		want[i] = named.Replace(want[i])
	}
	must.Same(t, want, slices.Sorted(slices.Values(got)))
}
