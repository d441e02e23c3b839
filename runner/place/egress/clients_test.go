package egress

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func placedAs(t *testing.T, secret job.Secret, placeholder string, hosts ...string) commandSecret {
	t.Helper()
	p := commandSecret{Secret: secret, placeholder: placeholder}
	for _, text := range hosts {
		scope := must.Get(credential.ParseScope(text))(t)
		p.scopes = append(p.scopes, scope)
	}
	return p
}

// What clients read is compared with files that were tried with them.
func TestWritesClientFiles(t *testing.T) {
	hosts := []string{"Registry.Example.com./team", "registry.example.com:8443", "[2606:2800:220:1::1]:8443/x", "other.example.com:443"}
	user := job.Secret{Name: "TOKEN", User: "a<b", Server: `co"mpany`}
	all := []commandSecret{placedAs(t, user, "agentci0Placeholder1", hosts...), placedAs(t, job.Secret{Name: "SECOND", User: "me", Server: "second"}, "agentci0Placeholder2", "second.example.com")}
	count := func(name string) string { return map[string]string{"GIT_CONFIG_COUNT": "2"}[name] }
	for name, got := range map[string]string{
		"npmrc": string(npmrcContent(all)), "netrc": string(netrcContent(all)), "settings.xml": string(mavenSettings(all)),
		"git": strings.Join(gitConfiguration(all, count), "\n") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, filepath.Join("testdata", "clients", name), got)
		})
	}
	must.None(t, gitConfiguration(nil, count), "without secrets git is configured")
}

// The run directory may be anywhere.
func TestJavaFindsTrustStoreInAnyFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), `of "my" own, it's`)
	must.Do(t, os.Mkdir(folder, 0o700))
	k := ClientConfig{Folder: folder, files: map[string][]byte{}, Overrides: map[string][]byte{}}
	must.Do(t, k.addJavaTrust(nil, "-Dkept=1"))
	options := variable(k.Env, "JAVA_TOOL_OPTIONS")
	if want := `-Dkept=1 "-Djavax.net.ssl.trustStore=` + strings.ReplaceAll(filepath.Join(folder, "authorities.p12"), `"`, `"'"'"`) + `" -D`; !strings.HasPrefix(options, want) {
		t.Errorf("a JVM gets %s, want %s…", options, want)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("java is not on this machine")
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "authorities.p12"), k.files["authorities.p12"], 0o600))
	cmd := exec.CommandContext(t.Context(), java, "-XshowSettings:properties", "-version")
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS="+options)
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "javax.net.ssl.trustStore = "+filepath.Join(folder, "authorities.p12")+"\n") {
		t.Errorf("%v:\n%s", err, said)
	}
}
