package job

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"

	"github.com/agent-ci/agent-ci/runner/task/form"
)

// chooseTask replaces the task sources of lower layers by that of the layer just merged. It rejects
// a second source in the same layer.
func (d *checks) chooseTask() {
	sources := d.job.Task.sources()
	isHere := func(s taskSource) bool {
		return d.Newest(s.path) && *s.value != ""
	}
	here := slices.DeleteFunc(slices.Clone(sources), func(s taskSource) bool { return !isHere(s) })
	if len(here) == 0 {
		return
	}
	for _, source := range here[1:] {
		d.Wrong(source.path, "is a second task beside "+here[0].path+"; give only one of them")
	}
	for _, source := range sources {
		if !isHere(source) {
			*source.value = ""
		}
	}
}

// taskSource is one key for the task.
type taskSource struct {
	path  string
	value *string
}

func (t *Task) sources() []taskSource {
	return []taskSource{
		{"task.prompt", &t.Prompt},
		{"task.prompt_file", &t.PromptFile},
		{"task.issue", &t.Issue},
		{"task.from", &t.From},
	}
}

// relations checks the keys against each other after all layers are merged.
func (d *checks) relations(needsTask bool) {
	d.fitPublish()
	d.nameCommands()
	if needsTask {
		d.requireTask()
	}
	d.distinctChecks()
	d.harmlessPass()
	d.chatHasLess()
	d.fitWritten()
	d.fitIdentity()
	d.fitFallbacks()
	d.fitServices()
	d.fitSecrets()
	d.fitProxies()
	d.fitMCPServers()
	d.fitHooks()
	d.fitAgents()
	d.fitDynamicTools()
	d.protectByDefault()
	pr := d.job.PullRequest
	d.WrongIf(pr.Commit.Sign == "ssh" && pr.Commit.KeyEnv == "", "pull_request.commit.sign", "is ssh, and pull_request.commit.key_env names no variable with the key")
	d.WrongIf(pr.Branch != "" && pr.Branch == d.job.Repository.Base, "pull_request.branch", "is the same branch as repository.base")
}

// nameCommands names commands without a name after themselves.
func (d *checks) nameCommands() {
	name := func(of *string, run string) {
		const longest = 80
		*of = cmp.Or(*of, clip.Bytes(strings.Join(strings.Fields(run), " "), longest))
	}
	for i := range d.job.Setup {
		name(&d.job.Setup[i].Name, d.job.Setup[i].Run)
	}
	for i := range d.job.Verify {
		name(&d.job.Verify[i].Name, d.job.Verify[i].Run)
	}
}

func (d *checks) requireTask() {
	given := func(s taskSource) bool { return *s.value != "" }
	if slices.ContainsFunc(d.job.Task.sources(), given) || d.Mentions("task") || d.Mentions("") {
		return
	}
	d.Missing("task", "is missing; give one of task.prompt, task.prompt_file and task.issue")
}

func (d *checks) distinctChecks() {
	first := make(map[string]int)
	for i, check := range d.job.Verify {
		path := fmt.Sprintf("verify[%d]", i)
		before, twice := first[check.Name]
		if !twice {
			first[check.Name] = i
			continue
		}
		d.Wrong(path+".name", fmt.Sprintf("is also the name of verify[%d]", before))
	}
}

// chatHasLess rejects settings that Chat Completions does not support.
func (d *checks) chatHasLess() {
	m := d.job.Model
	isChat := m.Wire == "chat"
	const leaveOut = "does not go with model.wire: chat; leave it out"
	d.WrongIf(!isChat && len(m.Chat) > 0, "model.chat", "needs model.wire: chat; set that, or remove it")
	d.WrongIf(isChat && (m.Tools == "freeform" || m.Tools == "builtin" || m.Tools == "code"), "model.tools", leaveOut)
	d.WrongIf(isChat && m.Summary != "", "model.reasoning_summary", leaveOut)
}

// fitIdentity rejects auth: oidc with another host than OpenAI's, which would receive the minted
// key.
func (d *checks) fitIdentity() {
	m := d.job.Model
	if m.Auth != "oidc" {
		return
	}
	d.WrongIf(!OpenAIs(m.BaseURL), "model.base_url", "is not https://api.openai.com/v1, and keys by model.auth: oidc are for OpenAI's own API alone; leave it out, or use model.auth: key")
	d.WrongIf(m.Wire == "chat", "model.wire", "is chat, and model.auth: oidc needs the Responses API; remove one of the two")
	d.WrongIf(hasHeader(m.Headers, headerAuthorization), "model.headers", "has "+headerAuthorization+", which model.auth: oidc sets itself; remove it")
}

// fitFallbacks rejects models listed twice.
func (d *checks) fitFallbacks() {
	seen := []string{d.job.Model.Name}
	for i, name := range d.job.Model.Fallbacks {
		if slices.Contains(seen, name) {
			path := fmt.Sprintf("model.fallbacks[%d]", i)
			d.Wrong(path, "repeats a model that comes before it")
		}
		seen = append(seen, name)
	}
}

// OpenAIs reports whether address is OpenAI's own API. An empty address is.
func OpenAIs(address string) bool {
	u, err := url.Parse(address)
	return address == "" || err == nil && u.Scheme == "https" && (u.Host == "api.openai.com" || u.Host == "api.openai.com:443") && u.User == nil
}

// fitWritten rejects callable tools for a model that only writes text.
func (d *checks) fitWritten() {
	j := d.job
	if !j.Model.Writes() {
		return
	}
	why := "does not go with model.tools: " + j.Model.Tools + ", where the model writes edits and commands as text and can call nothing else; leave one of them out"
	d.WrongIf(len(j.Tools.Hosted) > 0, "tools.hosted", why)
	d.WrongIf(len(j.Tools.Dynamic) > 0, "tools.dynamic", why)
	d.WrongIf(j.Tools.JSRepl, "tools.js_repl", why)
	d.WrongIf(len(j.MCPServers) > 0, "mcp_servers", why)
	d.WrongIf(j.Agents.Enabled, "agents.enabled", why)
	d.WrongIf(j.Task.Questions == "ask", "task.questions", why)
	d.WrongIf(j.Memory.Proposes(), "memory.propose", why)
}

// harmlessPass keeps credentials out of the environment of commands. Otherwise a manipulated model
// could use them on the forge.
func (d *checks) harmlessPass() {
	for i, name := range d.job.Policy.Env.Pass {
		if d.isCredential(name) {
			path := fmt.Sprintf("policy.env.pass[%d]", i)
			d.Wrong(path, name+" holds a credential, which commands never see")
		}
	}
}

// envKey returns the correct key for a variable written directly in env: set.NAME. It is empty for
// an invalid name.
func envKey(name string) string {
	if form.Variable.Check(name) != nil {
		return ""
	}
	return "set." + name
}

func (d *checks) isCredential(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "ACTIONS_") ||
		name == strings.ToUpper(d.job.Model.APIKeyEnv) ||
		slices.Contains([]string{"OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"}, name)
}
