package transcript

import (
	"slices"
	"strings"
	"time"
)

// View is what is known of a run, folded from its events. What an event replaces
// (plan, verification, change) is there in its last form only.
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
	Work      Work
	Publish   []Publish
	Beside    []Publish // steps of publishing what is not the change
	Memory    *Memory   // nil where the run remembers nothing
	Proposed  []Lesson  // by the model, as they came
	Lessons   *Lessons  // that are proposed to people; nil for none
	Secrets   []Secret  // that were used or refused, as they came
	Hooks     []HookUse // that the run has, in the order in which they are asked
	Warnings  []Warning
	Skills    Skills // that the model is told of
	// LoadedSkills are those of them that were given to the model, in that order.
	LoadedSkills []Skill
	// MCPServers are the servers of tools, as they came: with the tools that they had at the
	// start, and what became of them last.
	MCPServers []MCPServer
	Entries    []Entry // messages and calls, as they came; Survey leaves them out
	Turns      int
	Calls      int
	Retries    int
	// Compactions is how often the conversation was made shorter.
	Compactions int
	Usage       Usage
	Models      []ModelUse      // that the run's own agent asked, in their order
	Agents      []*Agent        // that others started, in the order of their starts
	Fallbacks   []ModelFallback // from one of these to the next
	// LastMessage is the last message of the run's own agent, whole.
	LastMessage string
	Finished    *RunFinished // nil while the run goes on, or when it was killed
	// Lived is how long the run lived before it was last resumed. Since and Until
	// are the times of the first event after that and of the last one.
	Lived        time.Duration
	Since, Until time.Time
	Events       int64
	Head         string // of the chain: the SHA-256 in hex of the last event's line
	Torn         bool   // the log's last line was not whole
}

// Work is how far the agent's own work is, on the commit that it began on. View's
// Change and Verify are also those on a base that moved after that.
type Work struct {
	Change *Change // nil when there is none yet
	Verify *Verify // the last table of Change, else of the base; nil before the baseline
	// Attempts is how many verifications there were before the last answer.
	Attempts int
	// Done says that the last answer called no tool, and that a change set was
	// taken after it.
	Done bool
	// Published is the last step of publishing since the last request.
	Published string
}

// Entry is a message of an agent or a call that it made; one of the two is set.
type Entry struct {
	Agent   string
	Name    string // of the agent, for people
	Message Excerpt
	Call    *Call
}

// Call is one tool call from its start to its end.
type Call struct {
	// By is the script's call that made this one; nil for a call of the model's own.
	By       *Call
	Turn     int
	ID       string
	Tool     string
	Topic    string // what it was about, in one line: the command, the path, …
	Input    Excerpt
	Output   Excerpt
	Finished bool // else the run ended before the call did
	Failed   bool
	ExitCode *int
	File     string
	Bytes    int64
	Seconds  float64
	Changed  bool // its tool tells of files that it changed
}

// Begun says that the run came to work: it tells of settings and of a workspace.
func (v *View) Begun() bool { return v.Started.RunID != "" && v.Workspace.BaseSHA != "" }

// OnPull says that the run goes on with a pull request, whose change was in the checkout before the
// agent began.
func (v *View) OnPull() bool {
	return v.Task.Subject == nil && v.Task.Source == "event" && strings.Contains(v.Task.URL, "/pull/")
}

// Moved says that the last change is on a base that moved after the work began.
func (v *View) Moved() bool { return v.Change != nil && v.Change.BaseSHA != "" }

// Commit is the last commit that was made of the change; empty for none.
func (v *View) Commit() string {
	for _, step := range slices.Backward(v.Publish) {
		if step.Step == "commit" {
			return step.HeadSHA
		}
	}
	return ""
}

// Summary is what the agent said last.
func (v *View) Summary() string {
	if v.Finished != nil && v.Finished.Summary != "" {
		return v.Finished.Summary
	}
	return v.LastMessage
}
