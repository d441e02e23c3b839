package transcript

import (
	"slices"
	"strings"
	"time"
)

// View is the state of a run, folded from its events. It only has the last plan, verification and
// change.
type View struct {
	StartedAt time.Time
	Started   RunStarted
	Resumed   *RunResumed // the last time; nil where the run never went on after an end
	Task      Task
	Workspace Workspace
	Policy    Policy
	Model     string // of the last request
	Setup     []Setup
	Plan      Plan
	Baseline  *Verify // nil before it was taken
	Verify    *Verify // the last table, also of the baseline; nil before that
	Change    *Change // nil when there is none yet
	// Inspection is what was found in the change beside what the judge refuses.
	Inspection   Inspection
	Work         Work
	Publish      []Publish
	OtherPublish []Publish // publishing steps of anything but the change, such as lessons
	Memory       *Memory   // nil where the run remembers nothing
	Proposed     []Lesson  // by the model, as they came
	Lessons      *Lessons  // that are proposed to people; nil for none
	Secrets      []Secret  // that were used or refused, as they came
	Hooks        []HookUse // that the run has, in the order in which they are asked
	Warnings     []Warning
	Skills       Skills // offered to the model
	// LoadedSkills lists the skills loaded by the model, in order.
	LoadedSkills []Skill
	// MCPServers lists the MCP servers in order, with their initial tools and last state.
	MCPServers []MCPServer
	Entries    []Entry // messages and calls, as they came; Survey leaves them out
	Turns      int
	Calls      int
	Hosted     int // calls of the run's own agent that the API ran itself; Calls leaves them out
	Uncounted  int // of Calls, those of scripts that were refused before they counted
	Asked      int // requests of the run's own agent that were a turn, one that failed included
	Retries    int
	// Compactions is how often the conversation was made shorter.
	Compactions int
	Usage       Usage
	Models      []ModelUse      // that the run's own agent asked, in their order
	Agents      []*Agent        // that others started, in the order of their starts
	Fallbacks   []ModelFallback // from one of these to the next
	// LastMessage is the last message of the run's own agent, whole.
	LastMessage string
	Finished    *RunFinished // nil for a running or killed run
	// EarlierLifetime is the lifetime before the last resume. Since and Until are the times of the first
	// event after it and of the last event.
	EarlierLifetime        time.Duration
	ResumedAt, LastEventAt time.Time
	Events                 int64
	Head                   string // of the chain: the SHA-256 in hex of the last event's line
	Torn                   bool   // the log's last line was not whole
}

// Work is the state of the agent's work on its original base. View's Change and Verify may be on a
// moved base.
type Work struct {
	Change *Change // nil when there is none yet
	Verify *Verify // the last table of Change, else of the base; nil before the baseline
	// Attempts is how many verifications there were before the last answer.
	Attempts int
	// Done reports that the last answer called no tool and a change set was taken afterwards.
	Done bool
	// Published is the last step of publishing since the last request.
	Published string
}

// Entry is a message or a call of an agent. Exactly one field is set.
type Entry struct {
	Agent   string
	Name    string // of the agent, for people
	Message Excerpt
	Call    *Call
}

// Call is one tool call from its start to its end.
type Call struct {
	// By is the call whose script made this call; may be nil.
	By       *Call
	Turn     int
	ID       string
	Tool     string
	Topic    string // its subject in one line: the command, the path, …
	Input    Excerpt
	Output   Excerpt
	Finished bool // else the run ended before the call did
	Failed   bool
	ExitCode *int
	File     string
	Bytes    int64
	Seconds  float64
	Changed  bool // its tool reports changed files
}

// StartedWork reports whether the run started to work: it has settings and a workspace.
func (v *View) StartedWork() bool { return v.Started.RunID != "" && v.Workspace.BaseSHA != "" }

// ContinuesPull reports whether the run continues a pull request, whose change was in the checkout before the
// agent began.
func (v *View) ContinuesPull() bool {
	return v.Task.Subject == nil && v.Task.Source == "event" && strings.Contains(v.Task.URL, "/pull/")
}

// ChangeMoved reports whether the last change is on a moved base.
func (v *View) ChangeMoved() bool { return v.Change != nil && v.Change.BaseSHA != "" }

// Commit returns the last commit of the change, or "".
func (v *View) Commit() string {
	for _, step := range slices.Backward(v.Publish) {
		if step.Step == "commit" {
			return step.HeadSHA
		}
	}
	return ""
}

// AllAsked returns the turns of all agents, with a request of the run's own agent that failed.
func (v *View) AllAsked() int {
	all := v.Asked
	for _, a := range v.Agents {
		all += a.Turns
	}
	return all
}

// Cost returns the cost of the run; nil before it has begun to work, and without a known price.
func (v *View) Cost() *float64 {
	if cost, known := CostOf(v.AllModels()); known && v.StartedWork() {
		return &cost
	}
	return nil
}

// Summary returns the agent's last words.
func (v *View) Summary() string {
	if v.Finished != nil && v.Finished.Summary != "" {
		return v.Finished.Summary
	}
	return v.LastMessage
}
