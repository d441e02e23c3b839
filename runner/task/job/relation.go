package job

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// mistake is one check of a key against others. The message is reported if found is true.
type mistake struct {
	found   bool
	key     string // below the place of the check; empty for the place itself
	message string
}

// reportEach reports all mistakes that were found in keys below place.
func (d *validator) reportEach(place string, all ...mistake) {
	for _, m := range all {
		d.reportFirst(place, m)
	}
}

// reportFirst reports the first mistake that was found.
func (d *validator) reportFirst(place string, all ...mistake) {
	i := slices.IndexFunc(all, func(m mistake) bool { return m.found })
	if i < 0 {
		return
	}
	if all[i].key != "" {
		place = config.JoinPath(place, all[i].key)
	}
	d.Report(place, all[i].message)
}

// keepNewestTaskSource clears the task sources (prompt, prompt_file, issue, from) of lower layers if the
// layer just merged has one. It rejects a second source in the same layer, unless both go together.
func (d *validator) keepNewestTaskSource() {
	newest := ""
	for _, source := range d.job.Task.taskSources() {
		if !d.IsSetByCurrentLayer(source.key) || *source.text == "" {
			continue
		}
		d.ReportIf(newest != "" && !d.goTogether(newest, source.key), source.key, "is a second task beside "+newest+"; give only one of them")
		newest = cmp.Or(newest, source.key)
	}
	for _, source := range d.job.Task.taskSources() {
		if newest != "" && !d.IsSetByCurrentLayer(source.key) && !d.goTogether(newest, source.key) {
			*source.text = ""
		}
	}
}

// goTogether reports whether two task sources may be in one job: a prompt and an issue, if the job publishes
// feedback. Then the prompt says what to do, and the issue says on what.
func (d *validator) goTogether(a, b string) bool {
	isPrompt := func(key string) bool { return strings.HasPrefix(key, "task.prompt") } // or task.prompt_file
	isPromptWithIssue := isPrompt(a) && b == taskIssue || isPrompt(b) && a == taskIssue
	return isPromptWithIssue && d.job.Publish.IsFeedback()
}

const taskIssue = "task.issue"

// taskSource is a key for the task, with its value.
type taskSource struct {
	key  string
	text *string
}

func (t *Task) taskSources() []taskSource {
	return []taskSource{{"task.prompt", &t.Prompt}, {"task.prompt_file", &t.PromptFile}, {taskIssue, &t.Issue}, {"task.from", &t.From}}
}

// checkRelations checks the keys against each other after all layers are merged. It also fills in defaults
// that depend on other keys. A missing task is a mistake if needsTask is set.
func (d *validator) checkRelations(needsTask bool) {
	d.checkPublish()
	d.defaultCommandNames()
	if needsTask {
		hasTask := slices.ContainsFunc(d.job.Task.taskSources(), func(s taskSource) bool { return *s.text != "" })
		mayHaveTask := hasTask || d.HasProblemBelow("task") || d.HasProblemBelow("") // a part with a problem may have one
		if !mayHaveTask {
			d.ReportMissing("task", "is missing; give one of task.prompt, task.prompt_file and task.issue")
		}
	}
	d.checkModel()
	d.checkServices()
	d.checkSecrets()
	for key, n := range d.job.Networks() {
		d.ReportIf(n.UsesMachineProxy() && !n.HasList() && len(d.job.Policy.Secrets) == 0, key, "must have the key allow with a list of hosts: without one, and without policy.secrets, there is nothing to reach by a proxy")
	}
	d.checkMCPServers()
	d.checkHooks()
	d.checkAgents()
	d.checkDynamicTools()
	d.completeProtectedPatterns()
	for i, check := range d.job.Verify {
		before := slices.IndexFunc(d.job.Verify[:i], func(other VerifyCheck) bool { return other.Name == check.Name })
		d.reportFirst(config.JoinPath("verify", i), mistake{before >= 0, "name", fmt.Sprintf("is also the name of verify[%d]", before)})
	}
	for i, name := range d.job.Policy.Env.Pass { // a manipulated model could use credentials on the forge
		d.reportFirst(config.JoinPath("policy.env.pass", i), mistake{d.isCredential(name), "", name + " holds a credential, which commands never see"})
	}
	pr := d.job.PullRequest
	d.reportEach("pull_request",
		mistake{pr.Commit.Sign == "ssh" && pr.Commit.KeyEnv == "", "commit.sign", "is ssh, and pull_request.commit.key_env names no variable with the key"},
		mistake{pr.Branch != "" && pr.Branch == d.job.Repository.Base, "branch", "is the same branch as repository.base"})
}

// defaultCommandNames names setup steps and checks without a name after their command, in up to 80 bytes.
func (d *validator) defaultCommandNames() {
	nameAfter := func(target *string, run string) {
		const longest = 80
		*target = cmp.Or(*target, clip.Line(run, longest))
	}
	for i := range d.job.Setup {
		nameAfter(&d.job.Setup[i].Name, d.job.Setup[i].Run)
	}
	for i := range d.job.Verify {
		nameAfter(&d.job.Verify[i].Name, d.job.Verify[i].Run)
	}
}

// checkModel rejects settings that the model's API does not support.
func (d *validator) checkModel() {
	j, m := d.job, d.job.Model
	isChat, isKeyless, isWriter := m.Wire == "chat", m.Auth == "oidc", m.WritesTextOnly()
	const noChat = "does not go with model.wire: chat; leave it out"
	noTools := "does not go with model.tools: " + m.Tools + ", where the model writes edits and commands as text and can call nothing else; leave one of them out"
	d.reportEach("",
		mistake{!isChat && len(m.Chat) > 0, "model.chat", "needs model.wire: chat; set that, or remove it"},
		mistake{isChat && slices.Contains([]string{"freeform", "builtin", "code"}, m.Tools), "model.tools", noChat},
		mistake{isChat && m.Summary != "", "model.reasoning_summary", noChat},
		mistake{isChat && !isWriter && len(j.Tools.Hosted) > 0, "tools.hosted", noChat},
		mistake{isWriter && len(j.Tools.Hosted) > 0, "tools.hosted", noTools},
		mistake{isWriter && len(j.Tools.Dynamic) > 0, "tools.dynamic", noTools},
		mistake{isWriter && j.Tools.JSRepl, "tools.js_repl", noTools},
		mistake{isWriter && len(j.MCPServers) > 0, "mcp_servers", noTools},
		mistake{isWriter && j.Agents.Enabled, "agents.enabled", noTools},
		mistake{isWriter && j.Task.Questions == "ask", "task.questions", noTools},
		mistake{isWriter && j.Memory.Proposes(), "memory.propose", noTools},
		// Another host than OpenAI's would receive the minted key.
		mistake{isKeyless && !IsOpenAI(m.BaseURL), "model.base_url", "is not https://api.openai.com/v1, and keys by model.auth: oidc are for OpenAI's own API alone; leave it out, or use model.auth: key"},
		mistake{isKeyless && isChat, "model.wire", "is chat, and model.auth: oidc needs the Responses API; remove one of the two"},
		mistake{isKeyless && hasAuthorization(m.Headers), "model.headers", "has " + headerAuthorization + ", which model.auth: oidc sets itself; remove it"})
	for i, name := range m.Fallbacks {
		d.reportFirst(config.JoinPath("model.fallbacks", i), mistake{name == m.Name || slices.Contains(m.Fallbacks[:i], name), "", "repeats a model that comes before it"})
	}
}

// IsOpenAI reports whether address is OpenAI's own API. An empty address is.
func IsOpenAI(address string) bool {
	if address == "" {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil && slices.Contains([]string{"api.openai.com", "api.openai.com:443"}, u.Host)
}

// envKey returns the correct key for a variable directly in env: set.NAME. It is "" for an invalid name.
func envKey(name string) string {
	if form.Variable.Check(name) != nil {
		return ""
	}
	return "set." + name
}

// isCredential reports whether a variable holds a credential of agent-ci or of GitHub Actions, by its name.
func (d *validator) isCredential(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "ACTIONS_") ||
		name == strings.ToUpper(d.job.Model.APIKeyEnv) ||
		slices.Contains([]string{"OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"}, name)
}
