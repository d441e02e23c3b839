package job

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Job is a job after merging all layers and filling in defaults. Its JSON is deterministic, and
// none of its lists and maps is nil. The JSON name of a field is also its key in the job file.
type Job struct {
	Version        int                  `json:"version" config:"required" span:"1..1" default:"1" about:"Version of the format. Every file needs it."`
	Name           string               "json:\"name\" form:\"task_key\" about:\"Task key. It names the branch and tells the runs of one task apart from others. Empty: `issue-N`, or `prompt-` and a digest.\""
	Task           Task                 `json:"task" example:"{prompt: Fix the flaky test of the cache.}" about:"What to do. Give exactly one of prompt, prompt_file, issue and from; for publish.as: review, labels or comment also a prompt with an issue."`
	Repository     Repository           `json:"repository" about:"Where to work."`
	AppliesIf      string               `json:"applies_if" form:"not_blank" about:"Shell command that decides whether the job applies: exit status 0 for yes, 1 for no (the run ends as skipped). Limit: 5 minutes."`
	Setup          []SetupStep          `json:"setup" example:"[{name: modules, run: make deps, timeout: 5m}]" about:"Commands that run in order before the baseline and the agent, without tokens."`
	Recipe         Recipe               `json:"recipe" about:"A command that makes the change, or a part of it, without a model. It may run again when a run is resumed."`
	Services       map[string]Service   `json:"services" names:"service_name" most:"max_services" example:"{db: {run: redis-server --port 6379, port: 6379}}" about:"Databases and other servers that commands reach at 127.0.0.1, by name."`
	Model          Model                `json:"model" example:"{name: gpt-5.4}" about:"Which model answers, and how agent-ci reaches it."`
	Tools          Tools                `json:"tools" about:"Which tools the model may call."`
	Skills         Skills               `json:"skills" about:"Skills of the repository: folders with a SKILL.md that the model may load."`
	Git            Git                  `json:"git" about:"What git may do in the checkout."`
	Policy         Policy               `json:"policy" about:"What commands and changes may do."`
	Limits         Limits               `json:"limits" about:"Limits of the run. One that is reached ends it as budget_exceeded."`
	Verify         []VerifyCheck        `json:"verify" example:"[{name: tests, run: go test ./..., timeout: 10m, must: pass}]" about:"Checks: commands that judge the change, outside the model."`
	VerifyAttempts int                  `json:"verify_attempts" span:"0..10" default:"2" about:"How often a failed check goes back to the agent."`
	VerifyTests    []string             `json:"verify_tests" form:"path_pattern" default:"$test_patterns" about:"Patterns of paths: the files of a change that count as tests or test data. Your list replaces the default."`
	OnVerifyFailed string               `json:"on_verify_failed" values:"draft|none" default:"draft" about:"What is published if a check still fails: a draft pull request or nothing."`
	Trigger        Trigger              `json:"trigger" about:"Which events ask for work."`
	Trust          Trust                `json:"trust" about:"Whom the run listens to."`
	Publish        Publish              `json:"publish" about:"How the work is published."`
	Repair         Repair               `json:"repair" about:"What happens when checks fail later on a pull request of agent-ci."`
	PullRequest    PullRequest          `json:"pull_request" about:"How a change is presented."`
	MCPServers     map[string]MCPServer `json:"mcp_servers" names:"server_name" most:"max_mcp_servers" example:"{docs: {command: docs-server, tools: [search]}}" about:"MCP servers whose tools the model may call, by name. All start before the first request to the model."`
	Hooks          map[string]Hook      `json:"hooks" names:"server_name" most:"max_hooks" suggest:"hook_key" example:"{guard: {on: PreToolUse, run: [.github/guard.py]}}" about:"Programs of yours that can refuse a call, a patch or the pull request, by name. A hook that fails refuses too."`
	Memory         Memory               `json:"memory" about:"Lessons of earlier runs, in .agent-ci/lessons.yml of the base commit. The model learns of those that fit the task."`
	Agents         Agents               `json:"agents" about:"Other agents that the agent may start."`
}

// Recipe is a step without a model, run before the agent.
type Recipe struct {
	Run     string   `json:"run" form:"not_blank" about:"Shell command that changes the checkout, such as a formatter or codemod."`
	Agent   string   `json:"agent" values:"when_red|always" default:"when_red" about:"when_red: the agent works only if a check fails after the recipe. Without checks it always works."`
	Timeout Duration `json:"timeout" default:"10m" about:"Time limit of the command."`
}

// Task describes the work. Its source is one of Prompt, PromptFile, Issue and From.
type Task struct {
	Title        string   `json:"title" form:"one_line" about:"Title of the task."`
	Prompt       string   `json:"prompt" form:"not_blank" about:"The task as text."`
	PromptFile   string   `json:"prompt_file" form:"relative_file" about:"File with the task as text, relative to the job file."`
	Issue        string   `json:"issue" config:"scalars" form:"issue" about:"Issue to work on: its number, OWNER/REPO#N or its address. Quote \"#7\": without quotes it is a YAML comment."`
	From         string   `json:"from" values:"|event" about:"event: take the task from the event that started the workflow. A job without a task does so in GitHub Actions."`
	Images       []string `json:"images" form:"image" example:"[docs/mockup.png]" about:"Images for the model: PNG, JPEG or GIF files relative to the job file, or https addresses of images on GitHub."`
	Attachments  string   `json:"attachments" values:"images|none" default:"images" about:"images: send images attached to the issue and to trusted comments. none: for models without images."`
	Expects      string   `json:"expects" values:"change|answer" default:"change" about:"Whether the run ends with a change or with an answer in words."`
	Questions    string   `json:"questions" values:"assume|ask" default:"assume" about:"assume: the model assumes the likely answer and says so. ask: it asks on the issue; the run ends as needs_input."`
	OutputSchema string   `json:"output_schema" form:"relative_file" about:"File with a JSON Schema, relative to the job file. The run then writes output.json with an object that fits it."`
}

type Repository struct {
	Name   string `json:"name" form:"repository" about:"Repository on GitHub. Empty: from the checkout or from GitHub Actions."`
	Base   string `json:"base" form:"branch" about:"Branch to start from and to merge into. Empty: the branch that is checked out."`
	Commit string `json:"commit" form:"commit" about:"Commit of the base branch to start from, with all its digits. Empty: the newest. The change is still merged onto the newest."`
	Path   string `json:"path" config:"nonempty" form:"folder" default:"." about:"Subfolder of a monorepo to work in."`
}

// SetupStep is a command run before the baseline and the first turn.
type SetupStep struct {
	Name    string   `json:"name" form:"one_line" about:"Name of the command in reports. Empty: the command itself."`
	Run     string   `json:"run" config:"required,nonempty" form:"not_blank" about:"Shell command."`
	Network Network  `json:"network" suggest:"allow" values:"|none|loopback|full" default:"" example:"{allow: [api.example.com]}" about:"Network of this command, as in policy.network. Empty: that of policy.network."`
	Timeout Duration `json:"timeout" default:"5m" about:"Time limit of the command."`
}

type Model struct {
	Name            string            `json:"name" config:"nonempty" form:"one_line" default:"gpt-5.4" about:"Name of the model, as the API knows it."`
	Fallbacks       []string          `json:"fallbacks" form:"filled_line" example:"[gpt-5.2, gpt-5]" about:"Models at the same API that continue, in this order, if the one before is unavailable or out of quota. All take the same tools."`
	APIKeyEnv       string            `json:"api_key_env" form:"variable" default:"OPENAI_API_KEY" about:"Name of the variable with the API key, never the key itself. Empty: no key is sent."`
	Auth            string            `json:"auth" values:"key|oidc" default:"key" about:"key: the API key in api_key_env. oidc: an hourly key for the CI job's identity (OpenAI only)."`
	Identity        Identity          `json:"identity" about:"The identity for auth: oidc. None of it is secret."`
	BaseURL         string            `json:"base_url" form:"web_address" about:"Address of the API. Empty: OPENAI_BASE_URL, or OpenAI. http works for this machine and its network only."`
	Headers         map[string]string `json:"headers" form:"header_value" names:"header_name" example:"{X-Team: build}" about:"More headers for every request. They appear in the transcript, so put no key here."`
	Wire            string            `json:"wire" values:"responses|chat" default:"responses" about:"responses: the Responses API. chat: Chat Completions, for endpoints that have nothing else."`
	Chat            []string          `json:"chat" values:"$chat_quirks" example:"[no_system, alternate]" about:"Quirks of a chat endpoint, from agent-ci doctor --online."`
	Stream          bool              `json:"stream" default:"true" about:"false: ask for answers in one piece, for endpoints that cannot stream. An answer may take 15 minutes."`
	ReasoningEffort string            `json:"reasoning_effort" values:"$efforts" default:"medium" about:"How much the model thinks. Empty: send nothing, for models that do not reason."`
	Summary         string            `json:"reasoning_summary" values:"|auto|concise|detailed" about:"Summary of the model's thoughts, for the transcript. Empty: none."`
	ServiceTier     string            `json:"service_tier" values:"|auto|default|flex|scale|priority|fast|ultrafast" about:"Processing tier. Empty: your project's. flex falls back to the default if it has no room."`
	MaxOutputTokens int64             `json:"max_output_tokens" span:"0.." about:"Most tokens in one answer, including reasoning. 0: the model's own limit."`
	ContextWindow   int64             `json:"context_window" span:"0.." about:"Tokens that fit into one request and its answer. 0: from the model's profile, or 128000. agent-ci shortens conversations at 85 %."`
	Tools           string            `json:"tools" values:"$model_tools" default:"auto" about:"Form of the model's tools. auto: freeform, function or code, by model."`
	Outage          Duration          `json:"outage" default:"10m" about:"Most time that the run spends on retries and pauses, for each model."`
	Price           Price             `json:"price" about:"What the model costs. Empty: the price in its profile, if known."`
}

// These values of model.tools give the model no tools: it writes edits in the formats of Aider. The
// values for tools of other agents are dialect.Families.
const (
	ToolsAiderDiff  = "aider-diff"
	ToolsAiderUdiff = "aider-udiff"
	ToolsAiderWhole = "aider-whole"
)

// WritesTextOnly reports whether the model has no tools and writes its edits and commands as text.
func (m Model) WritesTextOnly() bool {
	return slices.Contains([]string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole}, m.Tools)
}

// Identity identifies a run in its request for an API key, with auth: oidc.
type Identity struct {
	Provider       string `json:"provider_id" form:"one_line" about:"Id of the identity provider at OpenAI. Empty: OPENAI_IDENTITY_PROVIDER_ID."`
	ServiceAccount string `json:"service_account_id" form:"one_line" about:"Service account that the keys belong to. Empty: OPENAI_SERVICE_ACCOUNT_ID."`
	TokenFile      string `json:"token_file" form:"absolute_file" about:"Absolute path of the token file. Commands cannot read it. Empty: OPENAI_IDENTITY_TOKEN_FILE, or a token from GitHub Actions."`
}

// Price is the price of a model, in US dollars per million tokens. If Input and Output are 0, the
// price of the model's profile applies.
type Price struct {
	Input  float64 `json:"input" about:"US dollars for a million input tokens."`
	Cached float64 `json:"cached" about:"US dollars for a million input tokens from the provider's cache. 0: as input."`
	Output float64 `json:"output" about:"US dollars for a million output tokens."`
}

// Known reports whether the job sets a price.
func (p Price) Known() bool { return p.Input > 0 || p.Output > 0 }

type Tools struct {
	Allow   []string         `json:"allow" form:"tool_name" about:"The only tools that the model gets. Empty: all that suit it."`
	Deny    []string         `json:"deny" form:"tool_name" about:"Tools that the model does not get and cannot call, even if allow lists them."`
	Hosted  []map[string]any `json:"hosted" foreign:"hosted_tool" example:"[web_search, {type: file_search, vector_store_ids: [vs_1]}]" about:"Tools that the API runs itself: web_search, file_search, code_interpreter, mcp, image_generation. A type, or a mapping as the API describes it."`
	Dynamic []DynamicTool    `json:"dynamic" most:"max_dynamic_tools" example:"[{name: lookup, description: Looks a word up., input_schema: {type: object}, run: [./lookup.sh]}]" about:"Tools of your own: programs that run in the agent's sandbox."`
	JSRepl  bool             `json:"js_repl" about:"true: the model may run JavaScript in a Node process that keeps its variables. Needs Node 18 or newer."`
}

// Git configures git in the checkout.
type Git struct {
	Filters []GitFilter `json:"filters" example:"[{name: nbstripout}]" about:"Filters in .git/config that may run, in a sandbox. Any other filter there ends the run. Git LFS needs no entry."`
}

// GitFilter is a filter of .git/config with permission to run.
type GitFilter struct {
	Name  string   `json:"name" config:"required,nonempty" form:"one_line" about:"NAME of filter.NAME in git's configuration."`
	Reads []string `json:"reads" form:"one_line" example:"[.git/git-crypt]" about:"Paths that the filter may read besides its standard input, such as a key. Written as in policy.writable."`
}

// FilterReads maps each filter's name to the paths it may read.
func (g Git) FilterReads() map[string][]string {
	listed := make(map[string][]string, len(g.Filters))
	for _, f := range g.Filters {
		listed[f.Name] = append(listed[f.Name], f.Reads...)
	}
	return listed
}

// Skills configures the skills available to the model.
type Skills struct {
	Folders []string `json:"folders" form:"skill_folder" default:"[.agents/skills, .claude/skills]" about:"Folders of the base commit with skills. The first skill of a name counts. An empty list switches skills off."`
}

type Policy struct {
	Sandbox      string   `json:"sandbox" values:"read-only|workspace-write|danger-full-access" default:"workspace-write" about:"What commands may write: only temporary files, also the work tree, or anything. danger-full-access confines nothing, and each run warns."`
	Require      string   `json:"require" values:"|landlock|namespaces|full" about:"The least confinement that you accept: landlock, namespaces, or full for both. Empty: any."`
	Network      Network  `json:"network" suggest:"allow" values:"none|loopback|full" default:"loopback" example:"{allow: [api.example.com]}" about:"What commands reach: nothing, their own loopback, everything, or that loopback and a list of hosts."`
	Writable     []string `json:"writable" form:"one_line" example:"[~/.gradle]" about:"More folders that commands may write: relative to the repository, below ~/, or absolute."`
	DenyRead     []string `json:"deny_read" form:"one_line" example:"[secrets, /opt/licences]" about:"Paths that commands and tools may not read, besides credentials. Written as in writable. git must not track them."`
	Protect      []string `json:"protect" form:"protect_pattern" example:"[deploy/**, '!AGENTS.md']" about:"More patterns of paths that the change may not touch, besides those protected by default. !PATTERN opens one of the defaults."`
	Change       Change   `json:"change" about:"How doubtful parts of a change are treated. fail: nothing is published. warn: published with a warning. allow: published."`
	Silenced     string   `json:"silenced" values:"$found_treatments" default:"draft" about:"A change with signs that a check passes without testing. show: the pull request lists them. draft: it is also a draft. refuse: nothing is published."`
	WorkflowRisk string   `json:"workflow_risk" values:"$found_treatments" default:"draft" about:"A change of files that workflows with secrets or write permissions run on the pushed branch. show: the pull request lists them. draft: it is also a draft. refuse: nothing is published."`
	Rules        []string `json:"rules" form:"rules_file" example:"[.github/strict.rules]" about:"More rules files besides .github/agent-ci.rules: paths in the base commit, or absolute paths of the operator's files."`
	Env          Env      `json:"env" suggest:"env_key" about:"The environment of commands. Only what you list here is added."`
	Secrets      []Secret `json:"secrets" most:"max_secrets" example:"[{name: NPM_TOKEN, preset: npm, hosts: [npm.example.com]}]" about:"Credentials that commands use and never see: the proxy replaces a placeholder by the value. Needs network namespaces."`
}

// Change sets the treatment of a change for each concern: fail, warn or allow.
type Change struct {
	Protected   string `json:"protected" values:"fail|warn|allow|drop" default:"fail" about:"Files protected by default or by policy.protect. drop: leave them out with a warning and publish the rest."`
	Submodules  string `json:"submodules" values:"$treatments" default:"fail" about:"New, deleted or moved submodules. A commit that exists only in this run is never part of the change."`
	NestedGit   string `json:"nested_git" values:"$treatments" default:"fail" about:"Repositories inside the repository. Their content is never part of the change."`
	SymlinksOut string `json:"symlinks_out" values:"$treatments" default:"fail" about:"Symbolic links that lead out of the repository."`
	Symlinks    string `json:"symlinks" values:"$treatments" default:"warn" about:"Other new or changed symbolic links."`
	Executables string `json:"executables" values:"$treatments" default:"warn" about:"Files that are new and executable, or become executable."`
	Lockfiles   string `json:"lockfiles" values:"$treatments" default:"allow" about:"Files that pin dependencies, such as go.sum and package-lock.json."`
}

type Env struct {
	Pass []string          `json:"pass" form:"variable" example:"[DEPLOY_TARGET]" about:"Names of variables that commands get with the values of agent-ci's environment. Its own tokens and keys cannot be passed."`
	Set  map[string]string `json:"set" form:"value" names:"variable" example:"{CGO_ENABLED: 0}" about:"Variables that commands get with these values."`
}

// DefaultCostUSD is the default of limits.cost_usd.
const DefaultCostUSD = 5.0

type Limits struct {
	Turns     int      `json:"turns" span:"1.." default:"200" about:"Requests to the model."`
	ToolCalls int      `json:"tool_calls" span:"1.." default:"500" about:"Tool calls."`
	Tokens    int64    `json:"tokens" span:"1.." default:"4000000" about:"Tokens read and written, in all requests."`
	CostUSD   float64  `json:"cost_usd" default:"$cost_usd" about:"US dollars for the model. 0: no limit. If no price is known, the default has no effect, and your own limit is refused."`
	Time      Duration `json:"time" default:"45m" about:"Time after which the agent stops, counted from the start of the run. Checks keep their own timeouts."`
	DiffLines int      `json:"diff_lines" span:"1.." default:"5000" about:"Lines that the change adds and removes."`
	DiffFiles int      `json:"diff_files" span:"1.." default:"100" about:"Files that the change touches."`
	FileSize  int64    `json:"file_size" span:"1.." default:"5000000" about:"Bytes of a file in the change. Moved files do not count. A Git LFS file counts with its content."`
	OnBudget  string   `json:"on_budget" values:"keep|draft" default:"keep" about:"What happens to the work when a limit ends the run: keep it in the run directory, or publish a draft."`
}

type VerifyCheck struct {
	Name    string   `json:"name" form:"one_line" about:"Name of the check. Empty: the command itself."`
	Run     string   `json:"run" config:"required,nonempty" form:"not_blank" about:"Command for bash with -e and pipefail. Exit status 0 passes."`
	Timeout Duration `json:"timeout" default:"10m" about:"Time limit of the check."`
	Must    string   `json:"must" values:"pass|no_worse" default:"pass" about:"pass: it passes after the change. no_worse: it may fail if it failed before and is not worse now."`
	Rerun   int      `json:"rerun" span:"0..5" default:"1" about:"How often a failed check reruns on the same files. If it then passes, it is flaky. Timeouts don't rerun."`
	Flaky   string   `json:"flaky" values:"reject|accept" default:"reject" about:"reject: flaky counts as failed. accept: flaky counts as passed."`
	When    []string `json:"when" form:"path_pattern" example:"[docs/**, '*.md']" about:"Patterns of paths: the check runs only if the change touches one. Empty: it always runs."`
	Proves  string   `json:"proves" config:"scalars" values:"false|true|required" default:"false" about:"true: the change's tests must fail on the base commit. required: a draft, unless the checks prove every test file."`
	JUnit   string   `json:"junit" form:"path_pattern" about:"JUnit XML files that the command writes. They name the failing tests; the exit status alone decides. Empty: agent-ci reads the output."`
}

// ProvesRequired is the value of verify[].proves that makes a change with unproven tests a draft.
const ProvesRequired = "required"

// ProvesTests reports whether the check judges the tests of a change.
func (c VerifyCheck) ProvesTests() bool { return c.Proves == "true" || c.Proves == ProvesRequired }

// Trigger selects the events that start work, for tasks taken from the event.
type Trigger struct {
	Labels    []string `json:"labels" form:"label" default:"[agent-ci]" about:"Labels that ask for work when somebody adds one to an issue."`
	Assignees []string `json:"assignees" form:"login" about:"Accounts that ask for work when somebody assigns an issue to one of them."`
	Command   string   `json:"command" form:"command_word" default:"/agent-ci" about:"First word of a comment or review that asks for work. Empty: none."`
}

type Trust struct {
	Roles    []string `json:"roles" values:"read|triage|write|maintain|admin" default:"[write]" about:"Roles in the repository that may ask for work and whose comments count. Greater roles count too."`
	Bots     []string `json:"bots" form:"login" about:"Logins of bots that may ask for work and whose comments count, such as renovate[bot]. No other bot counts."`
	Forks    bool     `json:"forks" about:"true: events of pull requests from forks may start a job with a task of its own. It works on the base alone."`
	Comments string   `json:"comments" values:"trusted|all|none" default:"trusted" about:"Whose comments the model sees: of trusted accounts, of all, or of none."`
}

// Repair limits the repair of failed checks on a run's own pull request, over all attempts.
type Repair struct {
	Attempts  int     `json:"attempts" span:"0..10" default:"3" about:"How often agents try, until a person pushes to the branch or asks for more. 0: never."`
	CostUSD   float64 `json:"cost_usd" default:"$repair_cost_usd" about:"US dollars for all attempts together, at most limits.cost_usd each. 0: no limit. Needs a known price."`
	StopLabel string  `json:"stop_label" form:"label" default:"agent-ci-hands-off" about:"Label that keeps agent-ci away from a pull request."`
}

type PullRequest struct {
	Branch     string   `json:"branch" form:"branch" about:"Branch of the change. Empty: agent-ci/ and the task key."`
	Title      string   `json:"title" form:"title" about:"Title. Empty: from the task."`
	Draft      bool     `json:"draft" about:"true: always a draft, even if all checks pass."`
	Labels     []string `json:"labels" form:"label" example:"[dependencies]" about:"Labels to add. GitHub creates missing ones."`
	Reviewers  []string `json:"reviewers" form:"reviewer" example:"[octocat, octo-org/core]" about:"Logins, or teams as ORGANISATION/TEAM, asked for a review when the pull request is opened."`
	Assignees  []string `json:"assignees" form:"login" about:"Logins to assign."`
	Transcript string   `json:"transcript" values:"full|digest|none" default:"full" about:"How much of the transcript is shown: each call with its output (full), one line a call (digest), or nothing."`
	Commit     Commit   `json:"commit" about:"How the commit is made."`
}

type Commit struct {
	Sign     string `json:"sign" values:"|github|ssh" about:"github: GitHub signs (tokens of an app or of Actions). ssh: an SSH key signs. Empty: unsigned."`
	KeyEnv   string `json:"key_env" form:"variable" about:"Name of the variable with the private SSH key or the absolute path of its file. The key has no passphrase."`
	CoAuthor bool   `json:"co_author" default:"true" about:"true: the commit names who asked for the work, or who wrote the issue, as co-author."`
}

// The values of memory.propose that publish lessons.
const (
	ProposeInChange = "change"
	ProposeAlone    = "pull_request"
)

// Memory configures lessons proposed by runs.
type Memory struct {
	Propose string `json:"propose" values:"off|change|pull_request" default:"off" about:"Whether the model may propose lessons: no (off), within the change, or in a pull request of their own."`
}

// Proposes reports whether the model may propose lessons.
func (m Memory) Proposes() bool { return m.Propose == ProposeInChange || m.Propose == ProposeAlone }

// Key returns the task key. It names the branch and distinguishes runs of one task from runs of
// another. It is the job's name, else issue-N, else prompt- and the first 8 hex digits of the
// SHA-256 of prompt, the task's text.
func (j *Job) Key(prompt string) string {
	if j.Name != "" {
		return j.Name
	}
	if issue, err := form.ParseIssue(j.Task.Issue); err == nil {
		return fmt.Sprintf("issue-%d", issue.Number)
	}
	return fmt.Sprintf("prompt-%.4x", sha256.Sum256([]byte(prompt)))
}

// Duration is a length of time, written as text: "90s", "10m", "1h30m".
type Duration time.Duration

// String formats the duration as the time package does: "10m0s".
func (d Duration) String() string { return time.Duration(d).String() }

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("parse duration %q: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
