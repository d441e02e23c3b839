package settings_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestLooksUpVariablesAndPaths(t *testing.T) {
	env := settings.Environment{"A=first", "B=", "A=last", "HOME=/home/octocat", "NAME_MORE=x", "GH_TOKEN=gh"}
	for name, want := range map[string]string{"A": "last", "B": "", "C": "", "NAME": "", "": ""} {
		must.Same(t, want, env.Get(name), name)
	}
	if env.InActions() || env.Token() != "gh" || append(env, "GITHUB_TOKEN=github").Token() != "github" {
		t.Error("the token, or where it is, is another")
	}
	must.Same(t, "pasted", settings.Environment{"GITHUB_TOKEN= pasted\n"}.Token())
	must.Same(t, "gh", append(env, "GITHUB_TOKEN= ").Token())
	for _, broken := range []string{"a\nb", `"a"`, "a\x00"} {
		for variable, env := range map[string]settings.Environment{"GITHUB_TOKEN": {"GITHUB_TOKEN=" + broken, "GH_TOKEN=gh"}, "GH_TOKEN": {"GH_TOKEN=" + broken}} {
			must.Fail(t, "the value of "+variable+" holds a line break, a quote or another character", env.CheckToken(env.Token()))
		}
	}
	must.Fail(t, "the value of GH_TOKEN holds a blank", settings.Environment{"GH_TOKEN=gh"}.CheckToken("Bearer gh"))
	for home, want := range map[string]string{"/home/octocat": "/home/octocat", "home": "", "": ""} {
		must.Same(t, want, (settings.Environment{"HOME=" + home}).Home(), home)
	}
	paths := []string{"~/cache", "/var/cache", "below/cache", "~", "../beside"}
	want := []string{"/home/octocat/cache", "/var/cache", "/work/below/cache", "/work/~", "/beside"}
	must.Same(t, want, env.Absolute("/work", paths))
}

func TestForgeOfEnvironment(t *testing.T) {
	for _, c := range []struct{ apiURL, serverURL, api, server string }{
		{"", "", "https://api.github.com", "https://github.com"},
		{"https://ghe.example.com/api/v3", "", "https://ghe.example.com/api/v3", "https://ghe.example.com"},
		{"https://api.octo.ghe.com", "", "https://api.octo.ghe.com", "https://octo.ghe.com"},
		{"https://api.github.com", "https://pages.example.com/", "https://api.github.com", "https://pages.example.com"},
		{"https://[::1", "", "https://[::1", ""}, // which the client refuses
	} {
		env := settings.Environment{"GITHUB_API_URL=" + c.apiURL, "GITHUB_SERVER_URL=" + c.serverURL}
		if api, server := env.Forge(); api != c.api || server != c.server {
			t.Errorf("%v: %s and %s", env, api, server)
		}
	}
}

func TestRunLinkNeedsAllParts(t *testing.T) {
	env := settings.Environment{"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=o/r", "GITHUB_RUN_ID=7"}
	must.Same(t, "https://github.com/o/r/actions/runs/7", env.RunLink(), "the link")
	must.Same(t, "https://github.com/o/r/actions/runs/7/attempts/2", append(env, "GITHUB_RUN_ATTEMPT=2").RunLink(), "the link of a second attempt")
	uploading := append(env, "AGENT_CI_UPLOAD=true")
	if got := uploading.Artifacts(); got != "https://github.com/o/r/actions/runs/7#artifacts" || env.Artifacts() != "" || uploading[1:].Artifacts() != "" {
		t.Errorf("the artifacts are at %q, %q where none are uploaded, %q outside of Actions", got, env.Artifacts(), uploading[1:].Artifacts())
	}
	for i := range env {
		must.Same(t, "", slices.Delete(slices.Clone(env), i, i+1).RunLink(), env[i])
	}
}

// names are the names of secrets, sorted.
func names(values []secrets.Value) []string {
	var all []string
	for _, v := range values {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	return all
}

func TestRecognisesSecretVariables(t *testing.T) {
	env := settings.Environment{
		"GITHUB_TOKEN=short", "OPENAI_API_KEY=/path-of-a-key", // known names, whatever they look like
		"GH_TOKEN=", "PATH=/bin", "KEYBOARD=us-international-layout",
		"NPM_TOKEN=npm-of-the-octocat", "DB_PASSWORD=tiny", "MY_KEY_FILE=/etc/key.pem", "URL_SECRET=https://example.com/page",
		"HOOK_SECRET=https://name:password@example.com",
	}
	must.Same(t, []string{"GITHUB_TOKEN", "HOOK_SECRET", "NPM_TOKEN", "OPENAI_API_KEY"}, names(env.Secrets()))
	must.Same(t, []string{"GITHUB_TOKEN", "HOOK_SECRET", "KEYBOARD", "NPM_TOKEN", "OPENAI_API_KEY"}, names(env.Secrets("KEYBOARD", "UNSET", "NPM_TOKEN")), "with more names")
}

func TestTreatsProxyLoginsAsSecret(t *testing.T) {
	for variable, want := range map[string][]string{
		"HTTPS_PROXY=http://me:p%40ss%3Aword@proxy.example.com:3128": {"me:p%40ss%3Aword", "me:p@ss:word"},
		"http_proxy=me:pass@word:more@proxy:3128":                    {"me:pass@word:more"},
		"ALL_PROXY=socks5://me:a%zzpassword@proxy":                   {"me:a%zzpassword"},
		"HTTPS_PROXY=http://octo:s3cr3t-pw@proxy:3128/?x=@y":         {"octo:s3cr3t-pw"},
		"HTTPS_PROXY=http://octo:s3cr3t-pw@proxy:3128/a@b":           {"octo:s3cr3t-pw"},
		"HTTPS_PROXY=http://octo:s3/cr3t#pw@proxy:3128":              {"octo:s3/cr3t#pw"},
		"HTTPS_PROXY=http://a-token-of-the-octocat@proxy:3128":       {"a-token-of-the-octocat"},
		"HTTPS_PROXY=http://a-token%2Dof-the-octocat:@proxy:3128":    {"a-token%2Dof-the-octocat", "a-token-of-the-octocat"},
		"HTTPS_PROXY=http://me@proxy.example.com:3128":               nil,
		"HTTPS_PROXY=http://fifteen-letters@proxy.example.com:3128":  nil,
		"HTTPS_PROXY=http://proxy.example.com:3128":                  nil,
		"HTTPS_PROXY=http://proxy.example.com:3128/?x=@y":            {"proxy.example.com:3128/?x="}, // which a password with a slash looks like
		"HTTPS_PROXY=http://me:brief@proxy.example.com:3128":         {"me:brief"},
		"HTTPS_PROXY=http://me:pw@proxy.example.com:3128":            nil,
		"GOPROXY=https://proxy.example.com":                          nil,
		"NO_PROXY=a.example.com,b.example.com":                       nil,
	} {
		var got []string
		for _, v := range (settings.Environment{variable}).Secrets() {
			got = append(got, v.Secret)
		}
		must.Same(t, want, got, variable)
	}
}

func TestFindsSecretsOfJob(t *testing.T) {
	var j job.Job
	j.Model.APIKeyEnv, j.PullRequest.Commit.KeyEnv = "MODEL", "SIGNING"
	j.Model.Headers = map[string]string{"X-Api-Key": "key-of-a-header", "X-Team": "octocats"}
	j.Policy.Env.Set = map[string]string{"NPM_TOKEN": "npm-of-the-octocat", "CI": "true"}
	j.Policy.Secrets = []job.Secret{{Name: "PYPI", From: "LOGIN"}, {Name: "UNSET", From: "UNSET"}}
	j.MCPServers = map[string]job.MCPServer{"a": {Headers: map[string]string{"X-Token": "token-of-a-server"}}, "b": {Env: job.ServerEnv{Set: map[string]string{"B_KEY": "key-of-a-server"}}}}
	j.Tools.Hosted = []map[string]any{
		{"type": "web_search"},
		{"type": "mcp", "authorization": "oauth-of-a-server", "headers": map[string]any{"X-Secret": "secret-of-a-header", "X-Number": 7, "Accept": "text/html"}},
		{"type": "mcp", "authorization": 7, "headers": "none"},
	}
	env := settings.Environment{"MODEL=key-of-the-model", "SIGNING=key-of-commits", "OTHER=of-nobody", "LOGIN=of-pypi"}
	want := []string{
		"MODEL", "PYPI", "SIGNING", "mcp_servers.a.headers.X-Token", "mcp_servers.b.env.set.B_KEY", "model.headers.X-Api-Key", "policy.env.set.NPM_TOKEN",
		"tools.hosted.authorization", "tools.hosted.headers.X-Secret",
	}
	must.Same(t, want, names(settings.Secrets(env, &j)))
	must.None(t, settings.Secrets(env, nil), "before there is a job")
}

// Of names with one value, the first is shown in its place: always the same.
func TestSecretsOfJobHaveOneOrder(t *testing.T) {
	var j job.Job
	j.Model.Headers = map[string]string{"X-Api-Key": "key-of-a-header", "Api-Key": "key-of-a-header", "X-Secret": "key-of-a-header", "X-Token": "key-of-a-header"}
	for range 20 {
		var got []string
		for _, secret := range settings.Secrets(nil, &j) {
			got = append(got, secret.Name)
		}
		must.Same(t, []string{"model.headers.Api-Key", "model.headers.X-Api-Key", "model.headers.X-Secret", "model.headers.X-Token"}, got)
	}
}

// A limit that is added to the job must be one that a run can be given when it goes
// on.
func TestSetLimitsChangesEachLimitAlone(t *testing.T) {
	values := map[string]string{"time": "90m", "cost_usd": "1.5", "on_budget": "draft"}
	limits := reflect.TypeFor[job.Limits]()
	for i := range limits.NumField() {
		name, _, _ := strings.Cut(limits.Field(i).Tag.Get("json"), ",")
		value := values[name]
		if value == "" {
			value = "77"
		}
		was := job.Limits{Turns: 1, ToolCalls: 2, Tokens: 3, CostUSD: 4, Time: job.Duration(time.Hour), DiffLines: 5, DiffFiles: 6, OnBudget: "keep"}
		is, err := settings.SetLimits(was, []string{"limits." + name + "=" + value})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, after := asMap(t, was), asMap(t, is)
		if before[name] == after[name] {
			t.Errorf("%s stays %v", name, before[name])
		}
		if name != "on_budget" && settings.LimitValue(is, "limits."+name) == settings.LimitValue(was, "limits."+name) {
			t.Errorf("%s is not looked up", name)
		}
		delete(before, name)
		delete(after, name)
		must.Same(t, before, after, name, "changes others")
	}
	must.Same(t, 0, settings.LimitValue(job.Limits{}, "limits.of_nothing"), "a limit that there is not is")
}

func asMap(t *testing.T, l job.Limits) map[string]any {
	t.Helper()
	raw := must.Get(json.Marshal(l))(t)
	var m map[string]any
	must.Do(t, json.Unmarshal(raw, &m))
	return m
}

func TestSetLimitsRefusesOtherSettings(t *testing.T) {
	was := job.Limits{Turns: 1, Tokens: 3}
	for reason, assignments := range map[string][]string{
		"not_resumable": {"limits.turns=9", "model.name=another"},
		"job":           {"limits.turns=0"},
		"":              nil,
	} {
		got, err := settings.SetLimits(was, assignments)
		if reason != "" {
			outcometest.Want(t, err, "invalid_input/"+reason)
		} else if err != nil {
			t.Error(err)
		}
		must.Same(t, was, got, assignments, "makes them")
	}
	outcometest.Want(t, must.Err(settings.SetLimits(was, []string{"limits.turns"})), "invalid_input/job")
}

func TestMapsBudgetReasonsToLimits(t *testing.T) {
	all := job.Limits{Turns: 1, ToolCalls: 1, Tokens: 1, CostUSD: 1, Time: 1}
	for _, reason := range settings.AgentLimitReasons {
		must.Same(t, 1, settings.LimitValue(all, settings.LimitKey(reason)), reason, "is limited by")
	}
}
