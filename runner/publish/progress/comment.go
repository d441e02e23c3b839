package progress

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

const (
	minEditInterval = 15 * time.Second // least time between two edits
	editTimeout     = 10 * time.Second // timeout of one edit, which delays the run
)

// Longest parts of the comment, in UTF-16 code units. Escaping can make a message eight times longer.
const (
	progressPlan     = 24_000
	progressMessage  = 4_000
	progressFailures = 7_000 // for the output of failed commands
)

// comment is the comment on an issue or pull request that shows the run's progress.
type comment struct {
	Thread
	stage    string
	trace    string    // hidden mark for a later run
	shown    string    // text on the forge
	last     time.Time // end of the last edit
	failures int       // failed edits in a row
	err      error     // error of the last edit
}

// workingSubagents returns a phrase with the working subagents, or "".
func workingSubagents(v *transcript.View) string {
	var names []string
	for _, a := range v.Subagents {
		if a.Status == transcript.AgentRunning {
			names = append(names, markdown.Text(a.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", with the agents " + strings.Join(names, ", ")
}

// stages maps an event type to the activity that it begins.
var stages = map[transcript.Type]string{
	transcript.TypeSetup:        "setting up",
	transcript.TypeModelRequest: "at work",
	transcript.TypeChange:       "checking the change",
	transcript.TypePublish:      "publishing the change",
}

// applyEvent applies an event, and edits the comment if the last edit is at least minEditInterval ago. Each
// failure in a row doubles that time, up to 32 times the interval, because a server that does not answer delays
// the run. v is the run after the event.
func (c *comment) applyEvent(e transcript.Event, v *transcript.View) {
	if stage, known := stages[e.Type]; known {
		c.stage = stage
	}
	if c.last.IsZero() || time.Since(c.last) < minEditInterval<<min(c.failures, 5) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), editTimeout)
	defer cancel()
	c.update(ctx, c.runningText(v), v.Plan)
}

// runningText returns what the run is doing, with a link to it.
func (c *comment) runningText(v *transcript.View) string {
	return fmt.Sprintf("agent-ci is %s%s%s.\n", c.stage, workingSubagents(v), c.runLink())
}

// runLink returns a link to the workflow run in brackets, or "" outside of a workflow.
func (c *comment) runLink() string {
	if c.Run == "" {
		return ""
	}
	return " (" + markdown.Link("run", c.Run) + ")"
}

// fileLinks returns links to the workflow run and, if uploaded, to its files.
func (c *comment) fileLinks() string {
	if c.Artifacts == "" {
		return c.runLink()
	}
	return fmt.Sprintf(" (%s, %s)", markdown.Link("run", c.Run), markdown.Link("report and transcript", c.Artifacts))
}

// update writes the comment unless its text is unchanged. state is the text above the plan. An error is stored in
// c.err.
func (c *comment) update(ctx context.Context, state string, plan transcript.Plan) {
	text := intake.ProgressMark + state
	if steps := body.Checklist(plan, progressPlan); steps != "" {
		text += "\n" + steps
	}
	text += c.trace
	if text == c.shown {
		return
	}
	c.err = c.write(ctx, text)
	c.last = time.Now()
	if c.err != nil {
		c.failures++
		return
	}
	c.shown, c.failures = text, 0
}

// Thread is the issue or pull request that shows the progress comment.
type Thread struct {
	Repository forge.Repository
	Number     int
	Earlier    int64 // id of an earlier run's comment to reuse; 0 for none
	// Run and Artifacts are the pages of the workflow run and of the files that it uploads. They are "" outside
	// of a workflow.
	Run, Artifacts string
}

// write creates the comment, or edits it once it exists.
func (t *Thread) write(ctx context.Context, body string) error {
	if t.Earlier != 0 {
		return t.Repository.EditComment(ctx, t.Earlier, body)
	}
	written, err := t.Repository.CreateComment(ctx, t.Number, body)
	if err == nil {
		t.Earlier = written.ID
	}
	return err
}

// Comment starts a progress comment.
func (w *Watch) Comment(ctx context.Context, on Thread) {
	c := &comment{Thread: on, stage: "starting"}
	c.update(ctx, c.runningText(&transcript.View{}), transcript.Plan{})
	w.comment.Store(c)
}

// End is the result of a run, for the progress comment.
type End struct {
	Stop  *outcome.Stop
	Site  transcript.Site  // pages of the pull request
	Draft bool             // the change must not be merged as it is
	View  *transcript.View // of the run; nil if it cannot be read
	Trace string           // hidden mark for a later run
}

// Conclude writes the run's result to the progress comment, if there is one. It returns the error of that edit.
func (w *Watch) Conclude(ctx context.Context, end End) error {
	c := w.comment.Swap(nil)
	if c == nil {
		return nil
	}
	c.trace = end.Trace
	view := cmp.Or(end.View, &transcript.View{})
	pull := record.ResultFromView(view).PullRequest
	sentence := body.Sentence(end.Site, markdown.Cut(end.Stop.Message, progressMessage)) + "\n"
	if pull.Operation == "created" || pull.Operation == "updated" {
		name := fmt.Sprintf("#%d", pull.Number)
		sentence = fmt.Sprintf("%s was %s.\n", markdown.Link(name, end.Site.Pull(pull.Number)), pull.Operation)
	}
	sign, _ := body.Ending(string(end.Stop.Outcome), end.Stop.Reason)
	sentence += body.Failures(view, progressFailures)
	verdict := ""
	hasChange := end.Stop.Outcome == outcome.Changed || end.Stop.Outcome == outcome.VerifyFailed || pull.Number != 0
	if hasChange {
		verdict = body.Verdict(view, sections.Doubt(end.Draft))
	}
	if verdict != "" {
		sign, verdict = "", verdict+"\n" // the verdict has its own
	}
	c.update(ctx, fmt.Sprintf("%s%sagent-ci ended as **%s**%s: %s", verdict, sign, markdown.Text(string(end.Stop.Outcome)), c.fileLinks(), sentence), view.Plan)
	return c.err
}
