package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Job is a job after merging all layers and filling in defaults. Its JSON is deterministic, and
// none of its lists and maps is nil. The JSON name of a field is also its key in the job file.
type Job struct {
	Version        int                  `json:"version"`
	Name           string               `json:"name"`
	Task           Task                 `json:"task"`
	Repository     Repository           `json:"repository"`
	AppliesIf      string               `json:"applies_if"`
	Setup          []SetupStep          `json:"setup"`
	Recipe         Recipe               `json:"recipe"`
	Services       map[string]Service   `json:"services"`
	Model          Model                `json:"model"`
	Tools          Tools                `json:"tools"`
	Skills         Skills               `json:"skills"`
	Git            Git                  `json:"git"`
	Policy         Policy               `json:"policy"`
	Limits         Limits               `json:"limits"`
	Verify         []VerifyCheck        `json:"verify"`
	VerifyAttempts int                  `json:"verify_attempts"`
	VerifyTests    []string             `json:"verify_tests"`     // patterns of paths
	OnVerifyFailed string               `json:"on_verify_failed"` // draft, none
	Trigger        Trigger              `json:"trigger"`
	Trust          Trust                `json:"trust"`
	Publish        Publish              `json:"publish"`
	Repair         Repair               `json:"repair"`
	PullRequest    PullRequest          `json:"pull_request"`
	MCPServers     map[string]MCPServer `json:"mcp_servers"`
	Hooks          map[string]Hook      `json:"hooks"`
	Memory         Memory               `json:"memory"`
	Agents         Agents               `json:"agents"`
}

// Recipe is a step without a model, run before the agent.
type Recipe struct {
	Run     string   `json:"run"`
	Agent   string   `json:"agent"` // when_red, always
	Timeout Duration `json:"timeout"`
}

// Task describes the work. Its source is one of Prompt, PromptFile, Issue and From.
type Task struct {
	Title        string   `json:"title"`
	Prompt       string   `json:"prompt"`
	PromptFile   string   `json:"prompt_file"` // relative to the job file
	Issue        string   `json:"issue"`       // OWNER/REPO#N, #N, N or an address; see form.ParseIssue
	From         string   `json:"from"`
	Images       []string `json:"images"`        // files relative to the job file, or addresses
	Attachments  string   `json:"attachments"`   // images, none
	Expects      string   `json:"expects"`       // change, answer
	Questions    string   `json:"questions"`     // assume
	OutputSchema string   `json:"output_schema"` // file, relative to the job file
}

type Repository struct {
	Name   string `json:"name"`   // OWNER/REPO
	Base   string `json:"base"`   // branch
	Commit string `json:"commit"` // of Base
	Path   string `json:"path"`   // sub-folder of a monorepo, slash-separated, "." for the root
}

// SetupStep is a command run before the baseline and the first turn.
type SetupStep struct {
	Name    string   `json:"name"` // the command itself when the job gives none
	Run     string   `json:"run"`
	Network Network  `json:"network"` // zero for the one of Policy
	Timeout Duration `json:"timeout"`
}

type Model struct {
	Name            string            `json:"name"`
	Fallbacks       []string          `json:"fallbacks"`   // names of models
	APIKeyEnv       string            `json:"api_key_env"` // name of the variable, never the key
	Auth            string            `json:"auth"`        // key, oidc
	Identity        Identity          `json:"identity"`
	BaseURL         string            `json:"base_url"`
	Headers         map[string]string `json:"headers"`
	Wire            string            `json:"wire"` // responses, chat
	Chat            []string          `json:"chat"` // quirks of the endpoint, with wire: chat
	Stream          bool              `json:"stream"`
	ReasoningEffort string            `json:"reasoning_effort"`  // "" sends none, for models that don't reason
	Summary         string            `json:"reasoning_summary"` // "" for none
	ServiceTier     string            `json:"service_tier"`      // "" for the project's own
	MaxOutputTokens int64             `json:"max_output_tokens"` // 0 for the model's own
	ContextWindow   int64             `json:"context_window"`    // 0 for the one of the model's profile
	Tools           string            `json:"tools"`             // auto, freeform, function, builtin, code, ToolsAiderDiff and so on, dialect.Families
	Outage          Duration          `json:"outage"`
	Price           Price             `json:"price"`
}

// These values of model.tools give the model no tools: it writes edits in the formats of Aider. The
// values for tools of other agents are dialect.Families.
const (
	ToolsAiderDiff  = "aider-diff"
	ToolsAiderUdiff = "aider-udiff"
	ToolsAiderWhole = "aider-whole"
)

// Writes reports whether the model has no tools and writes its edits and commands as text.
func (m Model) Writes() bool {
	return slices.Contains([]string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole}, m.Tools)
}

// Identity identifies a run in its request for an API key, with auth: oidc.
type Identity struct {
	Provider       string `json:"provider_id"`
	ServiceAccount string `json:"service_account_id"`
	TokenFile      string `json:"token_file"` // absolute
}

// Price is the price of a model, in US dollars per million tokens. If Input and Output are 0, the
// price of the model's profile applies.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"` // of Input; 0 for the same
	Output float64 `json:"output"`
}

// Known reports whether the job sets a price.
func (p Price) Known() bool { return p.Input > 0 || p.Output > 0 }

type Tools struct {
	Allow   []string         `json:"allow"` // empty for all
	Deny    []string         `json:"deny"`
	Hosted  []map[string]any `json:"hosted"` // in the form of an API request
	Dynamic []DynamicTool    `json:"dynamic"`
	JSRepl  bool             `json:"js_repl"`
}

// Git configures git in the checkout.
type Git struct {
	Filters []GitFilter `json:"filters"`
}

// GitFilter is a filter of .git/config with permission to run.
type GitFilter struct {
	Name  string   `json:"name"`
	Reads []string `json:"reads"` // paths
}

// Listed maps each filter's name to the paths it may read.
func (g Git) Listed() map[string][]string {
	listed := make(map[string][]string, len(g.Filters))
	for _, f := range g.Filters {
		listed[f.Name] = append(listed[f.Name], f.Reads...)
	}
	return listed
}

// Skills configures the skills available to the model.
type Skills struct {
	Folders []string `json:"folders"` // of the base commit, slash-separated; empty for no skills
}

type Policy struct {
	Sandbox      string   `json:"sandbox"` // read-only, workspace-write, danger-full-access
	Require      string   `json:"require"` // landlock, namespaces, full, or "" for any confinement
	Network      Network  `json:"network"`
	Writable     []string `json:"writable"`
	DenyRead     []string `json:"deny_read"`
	Protect      []string `json:"protect"`
	Change       Change   `json:"change"`
	Silenced     string   `json:"silenced"`      // show, draft, refuse
	WorkflowRisk string   `json:"workflow_risk"` // show, draft, refuse
	Rules        []string `json:"rules"`         // absolute, or below the root of the repository
	Env          Env      `json:"env"`
	Secrets      []Secret `json:"secrets"`
}

// Change sets the treatment of a change for each concern: fail, warn or allow.
type Change struct {
	Protected   string `json:"protected"`
	Submodules  string `json:"submodules"`
	NestedGit   string `json:"nested_git"`
	SymlinksOut string `json:"symlinks_out"`
	Symlinks    string `json:"symlinks"`
	Executables string `json:"executables"`
	Lockfiles   string `json:"lockfiles"`
}

type Env struct {
	Pass []string          `json:"pass"` // names of variables of agent-ci's own environment
	Set  map[string]string `json:"set"`
}

// DefaultCostUSD is the default of limits.cost_usd.
const DefaultCostUSD = 5.0

type Limits struct {
	Turns     int      `json:"turns"`
	ToolCalls int      `json:"tool_calls"`
	Tokens    int64    `json:"tokens"`
	CostUSD   float64  `json:"cost_usd"` // 0 for none
	Time      Duration `json:"time"`
	DiffLines int      `json:"diff_lines"`
	DiffFiles int      `json:"diff_files"`
	FileSize  int64    `json:"file_size"` // bytes of each file of the change
	OnBudget  string   `json:"on_budget"` // keep, draft
}

type VerifyCheck struct {
	Name    string   `json:"name"` // unique; the command itself when the job gives none
	Run     string   `json:"run"`
	Timeout Duration `json:"timeout"`
	Must    string   `json:"must"`   // pass, no_worse
	Rerun   int      `json:"rerun"`  // how often it runs again on the same tree while it is red
	Flaky   string   `json:"flaky"`  // reject, accept
	When    []string `json:"when"`   // patterns of paths of the change; empty for any change
	Proves  string   `json:"proves"` // false, true, required
	JUnit   string   `json:"junit"`  // files written by it; empty if its output names the failed tests
}

// ProvesRequired is the value of verify[].proves that turns a change with unproven tests into a
// draft.
const ProvesRequired = "required"

// IsProof reports whether the check judges the tests of a change.
func (c VerifyCheck) IsProof() bool { return c.Proves == "true" || c.Proves == ProvesRequired }

// Trigger selects the events that start work, for tasks taken from the event.
type Trigger struct {
	Labels    []string `json:"labels"`
	Assignees []string `json:"assignees"`
	Command   string   `json:"command"`
}

type Trust struct {
	Roles    []string `json:"roles"` // read, triage, write, maintain, admin: these and greater ones
	Bots     []string `json:"bots"`  // logins
	Forks    bool     `json:"forks"`
	Comments string   `json:"comments"` // trusted, all, none
}

// Repair limits the repair of failed checks on a run's own pull request, over all attempts.
type Repair struct {
	Attempts  int     `json:"attempts"`
	CostUSD   float64 `json:"cost_usd"` // 0 for none
	StopLabel string  `json:"stop_label"`
}

type PullRequest struct {
	Branch     string   `json:"branch"` // "" for agent-ci/<task key>
	Title      string   `json:"title"`
	Draft      bool     `json:"draft"`
	Labels     []string `json:"labels"`
	Reviewers  []string `json:"reviewers"`
	Assignees  []string `json:"assignees"`
	Transcript string   `json:"transcript"` // full, digest, none
	Commit     Commit   `json:"commit"`
}

type Commit struct {
	Sign     string `json:"sign"`    // "" for not at all, github, ssh
	KeyEnv   string `json:"key_env"` // name of the variable, never the key
	CoAuthor bool   `json:"co_author"`
}

// The values of memory.propose that publish lessons.
const (
	ProposeInChange = "change"
	ProposeAlone    = "pull_request"
)

// Memory configures lessons proposed by runs.
type Memory struct {
	Propose string `json:"propose"` // off, change, pull_request
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
	sum := sha256.Sum256([]byte(prompt))
	return "prompt-" + hex.EncodeToString(sum[:4])
}

// Duration is a length of time, written as text: "90s", "10m", "1h30m".
type Duration time.Duration

// String is the duration as the time package writes it, "10m0s".
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
