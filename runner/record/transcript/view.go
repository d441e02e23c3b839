package transcript

import (
	"slices"
	"strings"
	"time"
)

// View is the state of a run, folded from its events. Of plans, verification tables and changes it
// has only the last one.
type View struct {
	Started   RunStarted
	Finished  *RunFinished // nil for a running or killed run
	Task      Task
	Workspace Workspace
	Policy    Policy
	Setup     []Setup
	Warnings  []Warning
	Conversation
	ChangeState
	Resources
	ModelState
	Counts
	Lifetime
	LogState
}

// Conversation is the agents' work as readers see it.
type Conversation struct {
	Plan        Plan
	Entries     []Entry // messages and calls in order; FoldEvents leaves them out
	LastMessage string  // the last complete message of the run's own agent
}

// ChangeState is the change with its checks and its publication.
type ChangeState struct {
	Baseline          *Verify    // nil before the baseline
	Verify            *Verify    // the last table, which may be the baseline; nil before
	Change            *Change    // nil before the first change
	Inspection        Inspection // the findings in the change that do not refuse it
	Work              Work
	PublishSteps      []Publish
	OtherPublishSteps []Publish // publishing steps of other things, such as lessons
}

// Resources are the things that the run had besides its built-in tools.
type Resources struct {
	Secrets      []Secret    // used or refused secrets, in order
	Hooks        []HookUse   // the run's hooks, in the order of their calls
	MCPServers   []MCPServer // in order, each with its first tools and its last state
	Skills       Skills      // offered to the model
	LoadedSkills []Skill     // that the model loaded, in order

	Memory          *Memory  // nil if the run has no memory
	ProposedLessons []Lesson // lessons that the model proposed, in order
	Lessons         *Lessons // lessons proposed to people; nil if there are none
}

// ModelState is the use of models and agents.
type ModelState struct {
	Model     string          // of the last request of the run's own agent
	Models    []ModelUse      // models of the run's own agent, in order
	Fallbacks []ModelFallback // switches between these models
	Subagents []*Subagent     // in order of their starts
	Usage     Usage           // of all agents
}

// Counts counts requests and calls.
type Counts struct {
	Turns          int
	RequestedTurns int // turns that the run's own agent requested, failed requests included
	Retries        int
	Compactions    int // how often the conversation was shortened
	Calls          int
	HostedCalls    int // calls of the run's own agent that the API ran; not in Calls
	UncountedCalls int // calls in Calls that were refused before they counted
}

// Lifetime says when the run lived. A resumed run has several lifetimes.
type Lifetime struct {
	StartedAt       time.Time
	EarlierLifetime time.Duration // how long the run lived before the last resume
	ResumedAt       time.Time     // of the first event after the last resume
	LastEventAt     time.Time
}

// LogState is the state of the log behind the view.
type LogState struct {
	EventCount int64
	Head       string // head of the chain: the SHA-256 (hex) of the last line
	Torn       bool   // the last line is incomplete
	Damage     error  // of the first event with damage; nil if there is none
}

// Work is the state of the agent's work on its original base. In contrast, View's Change and Verify
// may be on a moved base.
type Work struct {
	Change *Change // nil before the first change
	Verify *Verify // the last table of Change, or else of the base; nil before the baseline
	// VerifyAttempts counts the verifications before the last answer.
	VerifyAttempts int
	// Done means that the last answer called no tool, and the change was taken after it.
	Done bool
	// LastPublishStep is the last publishing step since the last request.
	LastPublishStep string
}

// Entry is a message or a call of an agent: either Message or Call is set.
type Entry struct {
	Agent   string
	Name    string // of the agent, for people
	Message string // perhaps an excerpt
	Call    *Call
}

// Call is one tool call from its start to its end.
type Call struct {
	// Script is the call of the script that made this call; may be nil.
	Script      *Call
	Turn        int
	ID          string
	Tool        string
	Topic       string // its subject in one line: the command, the path and so on
	Input       string // perhaps an excerpt
	Output      string // perhaps an excerpt
	Finished    bool   // otherwise the run ended before the call did
	Failed      bool
	Result      string // "ok", "failed" or "exit 1"
	OutputFile  string
	OutputBytes int64
	Seconds     float64
	Changed     bool // the tool reported changed files
}

// StartedWork reports whether the run began to work: it has settings and a workspace.
func (v *View) StartedWork() bool { return v.Started.RunID != "" && v.Workspace.BaseSHA != "" }

// ContinuesPull reports whether the run continues a pull request. The checkout then had that pull
// request's change before the agent began.
func (v *View) ContinuesPull() bool {
	return v.Task.Subject == nil && v.Task.Source == "event" && strings.Contains(v.Task.URL, "/pull/")
}

// ChangeMoved reports whether the last change is on a moved base.
func (v *View) ChangeMoved() bool { return v.Change != nil && v.Change.BaseSHA != "" }

// CommitSHA returns the last commit of the change, or "".
func (v *View) CommitSHA() string {
	for _, step := range slices.Backward(v.PublishSteps) {
		if step.Step == "commit" {
			return step.HeadSHA
		}
	}
	return ""
}

// AllRequestedTurns returns the turns of all agents. For the run's own agent, failed requests count, too.
func (v *View) AllRequestedTurns() int {
	all := v.RequestedTurns
	for _, a := range v.Subagents {
		all += a.Turns
	}
	return all
}

// Cost returns the cost of the run in US dollars. It is nil before the run began to work, and if a
// price is unknown.
func (v *View) Cost() *float64 {
	if cost, known := CostOf(v.AllModels()); known && v.StartedWork() {
		return &cost
	}
	return nil
}

// Summary returns the agent's last message.
func (v *View) Summary() string {
	if v.Finished != nil && v.Finished.Summary != "" {
		return v.Finished.Summary
	}
	return v.LastMessage
}
