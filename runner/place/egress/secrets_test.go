package egress

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// equipped returns the control of a job with a policy, after SetUpSecrets.
func equipped(t *testing.T, policy string, environ ...string) *Control {
	t.Helper()
	s, _ := recording(t)
	s.Job = must.Get(job.LoadTemplate(config.Layer{Name: "job.yml", Data: []byte("version: 1\npolicy: {" + policy + "}\n")}))(t)
	s.Environ = append(settings.Environment{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	s.Credentials = must.Get(settings.ReadCredentials(t.Context(), s.Environ, s.Job))(t)
	must.Do(t, s.SetUpSecrets())
	return s
}

const twoSecrets = `secrets: [{name: OF_SETUP, from: TOKEN, preset: npm, hosts: [npm.example.com]}, {name: OF_AGENT, from: TOKEN, hosts: [api.example.com/v1], commands: [agent]}]`

func variable(variables []string, name string) string {
	return settings.Environment(variables).Get(name)
}

func TestGivesSecretsByCommandKind(t *testing.T) {
	s := equipped(t, twoSecrets, "TOKEN=v4lue-of-the-token-1")
	full := job.Network{Mode: "full"}
	for name, test := range map[string]struct {
		commands Commands
		own      []string
		proxied  bool
	}{
		"agent":                {agentCommands, []string{"OF_AGENT"}, true},
		"setup":                {Commands{Kind: job.CommandsSetup}, []string{"OF_SETUP"}, true},
		"setup with a network": {Commands{Kind: job.CommandsSetup, Network: full}, nil, false},
		"check":                {Commands{Kind: job.CommandsVerify}, nil, false},
		"service":              {Commands{Name: "service-db-agent"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			variables := s.ClientConfigOf(test.commands).Env
			var own []string
			for _, c := range s.credentialsOf(test.commands) {
				if !c.Denied {
					own = append(own, c.Name)
				}
				if got := variable(variables, c.Name); (got == c.Placeholder) == c.Denied || strings.Contains(got, c.Value) {
					t.Errorf("%s is %q", c.Name, got)
				}
			}
			must.Same(t, test.own, own, "proxied", "the secrets (-")
			must.Same(t, test.proxied, s.Proxied(test.commands), "proxied", "the secrets (-")
			must.Same(t, test.own != nil, variable(variables, "SSL_CERT_FILE") != "", "commands trust the run's authority")
		})
	}
	if got := s.UnusableSecrets(); !slices.Equal(got, []string{"OF_SETUP"}) { // there are no setup commands
		t.Errorf("of no use are %q", got)
	}
	if got := s.DescribeAgentNetworkToModel(sandbox.LevelFull); !strings.Contains(got, "secrets: OF_AGENT for api.example.com/v1 (GET, HEAD, header Authorization)") || strings.Contains(got, "OF_SETUP") {
		t.Errorf("the model is told %q", got)
	}
}

func TestPlaceholdersLastForRun(t *testing.T) {
	s := equipped(t, twoSecrets, "TOKEN=v4lue-of-the-token-1")
	first := s.setup.credentials
	must.Do(t, s.SetUpSecrets())
	for i, c := range s.setup.credentials {
		if c.Placeholder != first[i].Placeholder || len(c.Placeholder) != len(c.Value) || c.Placeholder == c.Value {
			t.Errorf("%s was %q and is %q", c.Name, first[i].Placeholder, c.Placeholder)
		}
	}
	s.Credentials[0].Value += "longer"
	must.Do(t, s.SetUpSecrets())
	if got := s.setup.credentials; got[0].Placeholder == first[0].Placeholder || got[1].Placeholder != first[1].Placeholder {
		t.Errorf("of another value the placeholder is %q", got[0].Placeholder)
	}
	err := filepath.WalkDir(s.Record.Path(), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			raw := must.Get(os.ReadFile(path))(t)
			must.Same(t, false, strings.Contains(string(raw), "v4lue") || strings.Contains(string(raw), "PRIVATE"), path, raw)
		}
		return err
	})
	must.Do(t, err)
}

// What the machine trusts by a variable commands trust too, but for what is no bundle.
func TestAddsTrustToExistingBundles(t *testing.T) {
	corporate := must.Get(authority.New([]string{"corp.example.com"}))(t)
	file := filepath.Join(t.TempDir(), "corporate.pem")
	must.Do(t, os.WriteFile(file, corporate.Certificate(), 0o600))
	s := equipped(t, twoSecrets+", env: {set: {JAVA_TOOL_OPTIONS: -Dkept=1}}", "TOKEN=v4lue-of-the-token-1", "REQUESTS_CA_BUNDLE="+file, "GIT_SSL_CAINFO=/none", "NODE_EXTRA_CA_CERTS="+file)
	variables := s.ClientConfigOf(agentCommands).Env
	own := string(s.setup.authority.Certificate())
	for _, v := range append(trustVariables, additionalTrustVariables...) {
		raw := must.Get(os.ReadFile(variable(variables, v)))(t)
		must.Same(t, true, strings.Contains(string(raw), own), v, "leads to nothing of the run's authority")
		must.Same(t, slices.Contains([]string{"REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}, v), strings.Contains(string(raw), string(corporate.Certificate())), v)
		if count := strings.Count(string(raw), "BEGIN"); v == "DENO_CERT" && count != 1 {
			t.Errorf("%s leads to %d certificates", v, count)
		}
	}
	if got := variable(variables, "JAVA_TOOL_OPTIONS"); !strings.HasPrefix(got, "-Dkept=1 -Djavax.net.ssl.trustStore=") || !strings.Contains(got, "-Dhttps.proxyPort=3128") {
		t.Errorf("a JVM gets %q", got)
	}
	for path, content := range s.ClientConfigOf(agentCommands).Overrides {
		if path == javaBundle {
			continue
		}
		if block, _ := pem.Decode(content); block == nil || !strings.Contains(string(content), own) {
			t.Errorf("%s is shown without the run's authority", path)
		}
	}
}

func TestAllCommandsSeeMavenSettings(t *testing.T) {
	s := equipped(t, `secrets: [{name: M, from: TOKEN, preset: maven, server: team, hosts: [maven.example.com]}]`, "TOKEN=v4lue-of-the-token-1")
	path := mavenSettingsIn(s.Environ.Home())
	placeholder := s.setup.credentials[0].Placeholder
	for commands, want := range map[string]bool{job.CommandsSetup: true, job.CommandsAgent: false, job.CommandsVerify: false} {
		shown := string(s.ClientConfigOf(Commands{Kind: commands}).Overrides[path])
		must.Contain(t, shown, "<settings")
		must.Same(t, want, strings.Contains(shown, placeholder), commands, shown)
	}
	must.Same(t, noMavenSettings, string(s.ClientConfigOf(Commands{Kind: job.CommandsSetup, Network: job.Network{Mode: "full"}}).Overrides[path]), "setup with a network of its own sees")
}

func TestRecordsUsesAtDoublingAndEnd(t *testing.T) {
	s, _ := recording(t)
	s.EarlierUses = []transcript.Secret{{Name: "B", UseCounts: []transcript.SecretUse{{SecretUsed: transcript.SecretUsed{Sandbox: "agent", Name: "B", Target: "b.example.com:443", Uses: 5}}}}}
	use := func(by, name, host string) {
		t.Helper()
		must.Do(t, s.countUse(by, name, reach.Target{Protocol: reach.HTTPS, Name: host, Port: 443}))
	}
	for range 11 {
		use("agent", "A", "a.example.com")
	}
	use("agent", "B", "b.example.com")
	use("setup", "A", "a.example.com")
	s.recordFinalUses("agent")
	s.recordFinalUses("agent")
	s.recordFinalUses("setup")
	use("agent", "A", "a.example.com")
	s.recordFinalUses("agent")
	var got []string
	must.Get(s.Record.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		got = append(got, string(e.Type)+" "+string(e.Data))
		return nil
	}))(t)
	want := []string{
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":1}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":2}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":4}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":8}`,
		`secret_used {"by":"agent","name":"B","target":"b.example.com:443","uses":6}`,
		`secret_used {"by":"setup","name":"A","target":"a.example.com:443","uses":1}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":11,"ended":true}`,
		`secret_used {"by":"agent","name":"B","target":"b.example.com:443","uses":6,"ended":true}`,
		`secret_used {"by":"setup","name":"A","target":"a.example.com:443","uses":1,"ended":true}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":12}`,
		`secret_used {"by":"agent","name":"A","target":"a.example.com:443","uses":12,"ended":true}`,
	}
	must.Same(t, want, got, "events")
}
