package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const value = "v4lue-0f-the-secret"

func jobWith(t *testing.T, policy string) *job.Job {
	t.Helper()
	return must.Get(job.LoadTemplate(config.Layer{Name: "job.yml", Data: []byte("version: 1\npolicy: {" + policy + "}\n")}))(t)
}

func TestReadCredentials(t *testing.T) {
	home := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(home, "token"), []byte("fr0m-a-file\r\n"), 0o600))
	j := jobWith(t, `secrets: [
		{name: NPM, preset: npm, hosts: [npm.example.com/team]}, {name: KEY, from: ~/token, hosts: [a.example.com], parameter: key, methods: [POST]},
		{name: MODULES, from: `+home+`/token, preset: git, hosts: [git.example.com]}]`)
	got := must.Get(ReadCredentials(t.Context(), Environment{"HOME=" + home, "NPM=" + value}, j))(t)
	scope := func(text string) []credential.Scope {
		s := must.Get(credential.ParseScope(text))(t)
		return []credential.Scope{s}
	}
	want := credential.Set{
		{Name: "NPM", Value: value, Scopes: scope("npm.example.com/team"), Header: "Authorization", Methods: []string{"GET", "HEAD"}},
		{Name: "KEY", Value: "fr0m-a-file", Scopes: scope("a.example.com"), Parameter: "key", Methods: []string{"POST"}},
		{Name: "MODULES", Value: "fr0m-a-file", Scopes: scope("git.example.com"), Header: "Authorization", Methods: []string{}, Fetch: true},
	}
	must.Same(t, want, got)
}

func TestRefusesUnfitSecretValues(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ policy, value, want string }{
		"missing":           {"secrets: [{name: X, hosts: [a.example.com]}]", "", "X (policy.secrets) has no value: the variable X is not set"},
		"of another name":   {"secrets: [{name: X, from: Y, hosts: [a.example.com]}]", value, "the variable Y is not set"},
		"no file":           {"secrets: [{name: X, from: " + dir + "/none, hosts: [a.example.com]}]", "", "there is no file"},
		"a folder":          {"secrets: [{name: X, from: " + dir + ", hosts: [a.example.com]}]", "", "can't be read"},
		"short":             {"secrets: [{name: X, hosts: [a.example.com]}]", "short", "fewer than 8 characters"},
		"long":              {"secrets: [{name: X, hosts: [a.example.com]}]", strings.Repeat("a", 4097), "more than 4096 characters"},
		"of two lines":      {"secrets: [{name: X, hosts: [a.example.com]}]", value + "\nb", "several lines"},
		"with a space":      {"secrets: [{name: X, hosts: [a.example.com]}]", value + " b", "with a space"},
		"not in ASCII":      {"secrets: [{name: X, hosts: [a.example.com]}]", value + "ä", "printable ASCII"},
		"seen by commands":  {"secrets: [{name: X, hosts: [a.example.com]}], env: {set: {URL: 'https://" + value + "@b'}}", value, "would see in the variable URL"},
		"passed to them":    {"secrets: [{name: X, hosts: [a.example.com]}], env: {pass: [ALSO]}", value, "would see in the variable ALSO"},
		"two of them wrong": {"secrets: [{name: X, from: Y, hosts: [a.example.com]}, {name: Z, hosts: [a.example.com]}]", value, "The secret X (policy.secrets) has no value: the variable Y is not set; set it where agent-ci is started; the secret Z (policy.secrets) has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			env := Environment{"HOME=" + dir, "X=" + test.value, "ALSO=" + test.value}
			_, err := ReadCredentials(t.Context(), env, jobWith(t, test.policy))
			outcometest.Want(t, err, "invalid_input/secret", test.want)
			if test.value != "" && strings.Contains(err.Error(), test.value) {
				t.Errorf("the error tells the value: %v", err)
			}
		})
	}
}
