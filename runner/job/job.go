package job

import (
	"time"
)

// Job is a job after all layers were merged and defaults filled in. The YAML
// key of a field is its name in snake_case unless its tag says otherwise.
type Job struct {
	Version        int            `yaml:"version" json:"version"`
	Name           string         `yaml:"name" json:"name"` // the task key; else issue-N, else prompt-<8 hex>
	Task           Task           `yaml:"task" json:"task"`
	Repository     Repository     `yaml:"repository" json:"repository"`
	Setup          []SetupStep    `yaml:"setup" json:"setup"`
	Model          Model          `yaml:"model" json:"model"`
	Tools          Tools          `yaml:"tools" json:"tools"`
	Policy         Policy         `yaml:"policy" json:"policy"`
	Limits         Limits         `yaml:"limits" json:"limits"`
	Verify         []VerifyCheck  `yaml:"verify" json:"verify"`
	VerifyAttempts int            `yaml:"verify_attempts" json:"verify_attempts"`
	VerifyIn       string         `yaml:"verify_in" json:"verify_in"`               // clean, workspace
	OnVerifyFailed string         `yaml:"on_verify_failed" json:"on_verify_failed"` // draft, none
	Trust          Trust          `yaml:"trust" json:"trust"`
	PullRequest    PullRequest    `yaml:"pull_request" json:"pull_request"`
	MCPServers     map[string]any `yaml:"mcp_servers" json:"mcp_servers"`
	Hooks          map[string]any `yaml:"hooks" json:"hooks"`
}

// Task says what to do. One of Prompt, PromptFile, Issue and From is the source.
type Task struct {
	Title        string   `yaml:"title" json:"title"`
	Prompt       string   `yaml:"prompt" json:"prompt"`
	PromptFile   string   `yaml:"prompt_file" json:"prompt_file"` // relative to the job file
	Issue        string   `yaml:"issue" json:"issue"`             // OWNER/REPO#N, or N in repository.name
	From         string   `yaml:"from" json:"from"`               // event
	Images       []string `yaml:"images" json:"images"`
	Expects      string   `yaml:"expects" json:"expects"`     // change, answer
	Questions    string   `yaml:"questions" json:"questions"` // assume, ask
	OutputSchema string   `yaml:"output_schema" json:"output_schema"`
}

// Repository says where to work.
type Repository struct {
	Name string `yaml:"name" json:"name"` // OWNER/REPO
	Base string `yaml:"base" json:"base"` // branch
	Path string `yaml:"path" json:"path"` // sub-folder of a monorepo, slash-separated, "." for the root
}

// SetupStep is a command that runs before the baseline and the first turn.
type SetupStep struct {
	Name    string        `yaml:"name" json:"name"`
	Run     string        `yaml:"run" json:"run"`
	Network string        `yaml:"network" json:"network"`
	Timeout time.Duration `yaml:"timeout" json:"timeout"`
}

// Model says which model answers and how it is reached.
type Model struct {
	Name            string            `yaml:"name" json:"name"`
	APIKeyEnv       string            `yaml:"api_key_env" json:"api_key_env"` // name of the variable, never the key
	BaseURL         string            `yaml:"base_url" json:"base_url"`
	Headers         map[string]string `yaml:"headers" json:"headers"`
	Query           map[string]string `yaml:"query" json:"query"`
	Wire            string            `yaml:"wire" json:"wire"` // responses, chat
	Stream          bool              `yaml:"stream" json:"stream"`
	State           string            `yaml:"state" json:"state"` // client, server
	ReasoningEffort string            `yaml:"reasoning_effort" json:"reasoning_effort"`
	Tools           string            `yaml:"tools" json:"tools"` // auto, freeform, function: the form of apply_patch
	Price           map[string]any    `yaml:"price" json:"price"`
}

// Tools narrows what the model may call.
type Tools struct {
	Allow  []string `yaml:"allow" json:"allow"`
	Deny   []string `yaml:"deny" json:"deny"`
	Hosted []string `yaml:"hosted" json:"hosted"`
}

// Policy says what commands and changes may do.
type Policy struct {
	Approval    string         `yaml:"approval" json:"approval"` // never
	Sandbox     string         `yaml:"sandbox" json:"sandbox"`   // read-only, workspace-write, danger-full-access
	Require     string         `yaml:"require" json:"require"`
	Network     any            `yaml:"network" json:"network"` // none, loopback, full, {allow: [...]}
	Writable    []string       `yaml:"writable" json:"writable"`
	DenyRead    []string       `yaml:"deny_read" json:"deny_read"`
	Protect     []string       `yaml:"protect" json:"protect"`
	OnProtected string         `yaml:"on_protected" json:"on_protected"` // fail, drop
	Change      map[string]any `yaml:"change" json:"change"`
	Rules       []string       `yaml:"rules" json:"rules"`
	Env         Env            `yaml:"env" json:"env"`
}

// Env widens the environment that commands see.
type Env struct {
	Pass []string          `yaml:"pass" json:"pass"` // names of variables of agent-ci's own environment
	Set  map[string]string `yaml:"set" json:"set"`
}

// Limits end a run that goes on too long.
type Limits struct {
	Turns     int           `yaml:"turns" json:"turns"`
	ToolCalls int           `yaml:"tool_calls" json:"tool_calls"`
	Tokens    int64         `yaml:"tokens" json:"tokens"`
	CostUSD   float64       `yaml:"cost_usd" json:"cost_usd"`
	Time      time.Duration `yaml:"time" json:"time"`
	DiffLines int           `yaml:"diff_lines" json:"diff_lines"`
	DiffFiles int           `yaml:"diff_files" json:"diff_files"`
	OnBudget  string        `yaml:"on_budget" json:"on_budget"` // keep, draft
}

// VerifyCheck is one command that judges the change set.
type VerifyCheck struct {
	Name    string        `yaml:"name" json:"name"`
	Run     string        `yaml:"run" json:"run"`
	Timeout time.Duration `yaml:"timeout" json:"timeout"`
	Must    string        `yaml:"must" json:"must"` // pass, no_worse
}

// Trust says to whom the run listens.
type Trust struct {
	Roles    []string `yaml:"roles" json:"roles"`
	Bots     []string `yaml:"bots" json:"bots"`
	Forks    bool     `yaml:"forks" json:"forks"`
	Comments string   `yaml:"comments" json:"comments"` // trusted, all, none
}

// PullRequest says how a change is presented.
type PullRequest struct {
	Branch     string   `yaml:"branch" json:"branch"`
	Title      string   `yaml:"title" json:"title"`
	Draft      bool     `yaml:"draft" json:"draft"`
	Labels     []string `yaml:"labels" json:"labels"`
	Reviewers  []string `yaml:"reviewers" json:"reviewers"`
	Teams      []string `yaml:"teams" json:"teams"`
	Assignees  []string `yaml:"assignees" json:"assignees"`
	Milestone  string   `yaml:"milestone" json:"milestone"`
	Transcript string   `yaml:"transcript" json:"transcript"` // full, digest, none
	Commit     Commit   `yaml:"commit" json:"commit"`
}

// Commit says how the commit is made.
type Commit struct {
	Sign     string `yaml:"sign" json:"sign"`
	CoAuthor bool   `yaml:"co_author" json:"co_author"`
}
