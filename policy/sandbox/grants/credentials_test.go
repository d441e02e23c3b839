package grants

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestListsCredentialPaths(t *testing.T) {
	base, f := folders(t, map[string]string{
		"runner/.credentials_rsa": "x", "runner/.runner": "x", "runner/.env": "x", "runner/run.sh": "x", "runner/_work/_temp/file": "x",
	})
	in := func(name string) string { return filepath.Join(base, name) }
	f.DenyRead = []string{in("denied")}
	f.Environ = []string{
		"HOME=" + in("other"), "KUBECONFIG=" + in("kube/one") + ":relative:" + in("kube/two"), "NETRC=" + in("first"), "NETRC=" + in("netrc"), "PIP_CONFIG_FILE=relative",
		"CARGO_HOME=" + in("cargo"), "XDG_DATA_HOME=relative", "RUNNER_TEMP=" + in("runner/_work/_temp"),
	}
	by := make(map[string]string)
	for _, c := range f.credentials() {
		by[c.path] = c.by
	}
	for path, want := range map[string]string{
		in("denied"): DeniedBy, in("kube/one"): "KUBECONFIG", in("kube/two"): "KUBECONFIG", in("netrc"): "NETRC",
		in("home/.ssh"): "", in("other/.ssh"): "", in("cargo/credentials.toml"): "", "/etc/shadow": "",
		in("runner/_work/_temp"): "", in("runner/.credentials_rsa"): "", in("runner/.runner"): "", in("runner/.env"): "",
	} {
		if got, listed := by[path]; !listed || got != want {
			t.Errorf("%s is listed: %t, by %q, not %q", path, listed, got, want)
		}
	}
	for _, path := range []string{"relative", in("first"), in("runner/run.sh"), in("cargo/config.toml"), "relative/keyrings"} {
		if _, listed := by[path]; listed {
			t.Errorf("%s is listed", path)
		}
	}
}

func TestHomesIncludeHomeVariable(t *testing.T) {
	f := Folders{Home: "/first", Environ: []string{"HOME=/second"}}
	if homes := f.homes(); !slices.Contains(homes, "/first") || !slices.Contains(homes, "/second") {
		t.Errorf("got %q", homes)
	}
	f.Environ = []string{"HOME=relative"}
	if homes := f.homes(); slices.Contains(homes, "relative") {
		t.Errorf("got %q", homes)
	}
}

func TestAddMergesSecretsByPath(t *testing.T) {
	s := &Secrets{Found: []Secret{{Path: "/a", Named: "/a"}}}
	s.Add(&Secrets{Found: []Secret{{Path: "/a", Named: "/link", Existed: true}, {Path: "/b", Named: "/b"}}})
	must.Same(t, []Secret{{Path: "/a", Named: "/a", Existed: true}, {Path: "/b", Named: "/b"}}, s.Found)
	must.Same(t, []string{"/a", "/b"}, s.Paths())
	must.None(t, (*Secrets)(nil).Paths(), "of none")
}
