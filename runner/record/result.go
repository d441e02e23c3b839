package record

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// resultVersion is the version of result.json's format.
const resultVersion = 2

// Result is the result of a run: result.json and the output of the command line.
type Result struct {
	Version          int                    `json:"version"`
	Outcome          outcome.Outcome        `json:"outcome"`
	Reason           string                 `json:"reason"`  // snake_case, an open list
	Message          string                 `json:"message"` // one sentence: what happened, what to do
	ExitCode         int                    `json:"exit_code"`
	RunID            string                 `json:"run_id"`
	BaseSHA          string                 `json:"base_sha,omitempty"`
	HeadSHA          string                 `json:"head_sha,omitempty"` // the change's commit
	Branch           string                 `json:"branch,omitempty"`
	PullRequest      PullRequest            `json:"pull_request"`
	Feedback         *Feedback              `json:"feedback,omitempty"` // the post on an issue or pull request
	Plan             []transcript.PlanStep  `json:"plan"`
	Usage            transcript.Usage       `json:"usage"`
	Models           []transcript.ModelUse  `json:"models,omitempty"` // models that were asked, in order
	CostUSD          *float64               `json:"cost_usd"`         // null: a price is unknown
	Verify           []transcript.VerifyRow `json:"verify"`
	Inspection       *transcript.Inspection `json:"inspection,omitempty"` // findings in the change that did not stop the run
	Sandbox          Confinement            `json:"sandbox"`
	Denied           int                    `json:"denied"`                // calls and hosts that the policy refused
	MCPServers       []ToolServer           `json:"mcp_servers,omitempty"` // servers that were started or asked
	Hooks            []transcript.HookUse   `json:"hooks,omitempty"`       // the run's hooks, in the order of their calls
	Subagents        []*transcript.Subagent `json:"agents,omitempty"`      // in order of their starts
	Warnings         []transcript.Warning   `json:"warnings"`
	Changes          *ChangeSummary         `json:"changes"`          // null: nothing changed
	Output           string                 `json:"output,omitempty"` // the file for task.output_schema in the run directory
	TranscriptSHA256 string                 `json:"transcript_sha256"`
	Summary          string                 `json:"-"` // the agent's last message
	BeganWork        bool                   `json:"-"` // the agent or a command of the job began to work
	ChangedFiles     []changeset.File       `json:"-"`
	LocalFiles       `json:"-"`
}

// LocalFiles lists the files that this process wrote for a run, and what it could not write.
type LocalFiles struct {
	Directory  string
	File       string   // the file with the result, in Directory
	BodyFile   string   // body of the pull request; empty if there is none
	ReportFile string   // empty if it could not be written
	Errors     []string // what could not be written
	Problems   []string // problems of a job, one a line
}

// NewResult returns the result of a run of which only the end is known.
func NewResult(id string, stop *outcome.Stop) Result {
	return Result{
		Version: resultVersion, Outcome: stop.Outcome, Reason: stop.Reason, Message: outcome.ShortenNames(stop.Message), ExitCode: stop.ExitCode(),
		RunID: id, PullRequest: PullRequest{Operation: "none"},
		Plan: []transcript.PlanStep{}, Verify: []transcript.VerifyRow{}, Warnings: []transcript.Warning{}, Sandbox: Confinement{string(sandbox.LevelNone), []string{}, "checkout"},
	}
}

// ResultFromView returns the result that follows from a run's events. LocalFiles stays empty.
func ResultFromView(v *transcript.View) Result {
	end := v.Finished
	if end == nil {
		end = &transcript.RunFinished{}
	}
	r := NewResult(v.Started.RunID, &outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason})
	r.Message, r.ExitCode, r.Summary = strings.TrimSpace(end.Message+" "+end.ResumeHint), end.ExitCode, end.Summary
	r.BaseSHA, r.HeadSHA, r.Branch, r.Denied, r.Output = end.BaseSHA, end.HeadSHA, end.Branch, end.Denied, end.Output
	r.Usage, r.CostUSD = end.Usage, end.CostUSD
	r.Hooks, r.Subagents, r.TranscriptSHA256 = v.Hooks, v.Subagents, v.Head
	ranCommandOrModel := len(v.Setup) > 0 || v.Baseline != nil || v.Model != ""
	r.BeganWork = v.StartedWork() && ranCommandOrModel
	r.Plan, r.Warnings = append(r.Plan, v.Plan.Steps...), append(r.Warnings, v.Warnings...)
	if end.Turns > 0 {
		r.Models = slices.Clone(v.Models)
		for _, a := range v.Subagents {
			r.Models = append(r.Models, a.Models...)
		}
	}
	if v.Verify != nil {
		r.Verify = append(r.Verify, v.Verify.Rows...)
	}
	if !v.Inspection.Empty() {
		r.Inspection = &v.Inspection
	}
	if p := v.Policy; p.Level != "" {
		r.Sandbox = Confinement{p.Level, p.Layers, p.WorkTree}
	}
	for _, s := range v.MCPServers {
		r.MCPServers = append(r.MCPServers, ToolServer{s.Name, s.State, s.Revision, s.Server, s.Version, len(s.Tools), s.SHA256, s.Reason})
	}
	for _, step := range v.PublishSteps {
		r.addPublishing(step)
	}
	if c := v.Change; !c.Empty() {
		r.Changes, r.ChangedFiles = &ChangeSummary{len(c.Files), c.Insertions, c.Deletions}, c.Files
	}
	return r
}

// WriteResult writes the result to the file called name, and sets Directory and File in it. After an error,
// File is empty and Errors has the error.
func (r *Record) WriteResult(name string, result *Result) {
	result.Directory, result.File = r.Path(), name
	if err := r.WriteJSON(name, *result); err != nil {
		result.Errors, result.File = append(result.Errors, r.Redact(err.Error())), ""
	}
}

// addPublishing sets the pull request or post that a publishing step made on the forge.
func (r *Result) addPublishing(step transcript.Publish) {
	switch step.Step {
	case "pull_request":
		r.PullRequest = PullRequest{step.Number, step.URL, step.Operation}
	case "review", "labels", "comment":
		r.Feedback = &Feedback{step.Step, step.Number, step.URL, step.Operation, step.Findings, step.FindingsInText, append([]string{}, step.Labels...)}
	}
}

// ToolServer is an MCP server with its final state.
type ToolServer struct {
	Name     string `json:"name"`
	State    string `json:"state"` // as in the event
	Revision string `json:"revision,omitempty"`
	Server   string `json:"server,omitempty"` // as it calls itself
	Version  string `json:"version,omitempty"`
	Tools    int    `json:"tools"`            // that the model could call
	SHA256   string `json:"sha256,omitempty"` // of the list of its tools
	Reason   string `json:"why,omitempty"`
}

// PullRequest is the pull request in its final state.
type PullRequest struct {
	Number    int    `json:"number,omitempty"`
	URL       string `json:"url,omitempty"`
	Operation string `json:"operation,omitempty"` // created, updated, none
}

// Feedback is the post on an issue or pull request (publish.as).
type Feedback struct {
	As             string   `json:"as"` // review, labels, comment
	Number         int      `json:"number"`
	URL            string   `json:"url"`
	Operation      string   `json:"operation"` // created, updated, or none if the post existed already
	Findings       int      `json:"findings"`  // findings of a review on lines of the diff
	FindingsInText int      `json:"beside"`    // findings in the text of a review
	Labels         []string `json:"labels"`    // labels that were added
}

// Confinement describes how commands were confined. Without a sandbox or commands, the level is none and the
// work tree is the checkout.
type Confinement struct {
	Level    string   `json:"level"`
	Layers   []string `json:"layers"`
	WorkTree string   `json:"work_tree"` // the tree that commands worked in: overlay, private
}

// ChangeSummary has the size of the change.
type ChangeSummary struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`
}
