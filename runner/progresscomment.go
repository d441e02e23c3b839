package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

const (
	progressEvery = 15 * time.Second // between two edits of it
	progressWait  = 10 * time.Second // for one edit: it holds up the run
)

// How much of a plan and of a message it has room for, in UTF-16 code units;
// eight of them may stand for one of the message.
const (
	progressPlan    = 24_000
	progressMessage = 4_000
)

// progressComment is the one comment on an issue or pull request that shows how
// far the run on it is.
type progressComment struct {
	write func(ctx context.Context, body string) error
	now   func() time.Time
	link  string // page of the run; empty for none

	plan  transcript.Plan
	stage string
	trace string    // for a later run, not for people
	shown string    // the text that stands there
	last  time.Time // when the last edit was over
	fails int       // edits that failed since one that did not
	err   error     // of the last edit
}

// stages are what a run is doing, by the events that tell of it.
var stages = map[transcript.Type]string{
	transcript.TypeSetup:        "setting up",
	transcript.TypeModelRequest: "at work",
	transcript.TypeChange:       "checking the change",
	transcript.TypePublish:      "publishing the change",
}

// take notes what an event tells and shows it, if the last edit is long enough
// ago: longer each time that one failed, since a server that does not answer
// holds up the run. The next event shows what was not.
func (p *progressComment) take(e transcript.Event) {
	if e.Type == transcript.TypePlan {
		_ = json.Unmarshal(e.Data, &p.plan) // written by this process
	}
	if stage, known := stages[e.Type]; known {
		p.stage = stage
	}
	now := p.now()
	if p.last.IsZero() || now.Sub(p.last) < progressEvery<<min(p.fails, 5) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), progressWait)
	defer cancel()
	p.show(ctx, p.running())
}

func (p *progressComment) running() string {
	return fmt.Sprintf("agent-ci is %s%s.\n", p.stage, p.run())
}

func (p *progressComment) run() string {
	if p.link == "" {
		return ""
	}
	return " ([run](" + p.link + "))"
}

// show replaces what stands there, unless it is the same.
func (p *progressComment) show(ctx context.Context, state string) {
	text := progressMark + state
	if steps := body.Checklist(p.plan, progressPlan); steps != "" {
		text += "\n" + steps
	}
	text += p.trace
	if text == p.shown {
		return
	}
	p.err = p.write(ctx, text)
	p.last = p.now()
	if p.fails++; p.err == nil {
		p.shown, p.fails = text, 0
	}
}

// beginProgress puts the comment there once nothing stands in the way of the
// run's work, taking the one of an earlier run over.
func (r *run) beginProgress(ctx context.Context) error {
	if r.progressOn() == 0 || r.publishMode() != publishGitHub {
		return nil
	}
	r.progressID = r.earlierProgress(ctx)
	p := &progressComment{write: r.writeProgress, now: time.Now, link: r.env.RunLink(), stage: "starting"}
	p.show(ctx, p.running())
	r.progress.Store(p)
	return nil
}

// progressOn is the issue or pull request that an event asked for, by itself or
// in a workflow that names its issue; 0 for none.
func (r *run) progressOn() int {
	switch {
	case r.request != nil:
		return r.request.Number
	case !r.askedAt.IsZero() && r.task.issue != nil:
		return r.task.issue.Number
	}
	return 0
}

// earlierProgress is the comment of an earlier run, 0 for none: the last of an
// App or of the token's own account. A person's that looks like one stays as it
// is. Not to know is no failure: the run then makes another comment.
func (r *run) earlierProgress(ctx context.Context) int64 {
	if r.pull != nil {
		r.lookForProgress(ctx, r.pull.Number)
	}
	if c := r.ownProgress(ctx); c != nil {
		return c.ID
	}
	return 0
}

func (r *run) lookForProgress(ctx context.Context, number int) {
	if on, err := r.eventRepository().Issue(ctx, number); err == nil {
		r.progressLike = slices.DeleteFunc(on.Comments, func(c forge.Comment) bool { return !isProgress(c) })
	}
}

func (r *run) writeProgress(ctx context.Context, body string) error {
	if r.progressID != 0 {
		return r.eventRepository().EditComment(ctx, r.progressID, body)
	}
	comment, err := r.eventRepository().CreateComment(ctx, r.progressOn(), body)
	if err == nil {
		r.progressID = comment.ID
	}
	return err
}

// endProgress says how the run ended. That the comment could not be written is
// no failure of the run.
func (r *run) endProgress(ctx context.Context, stop *outcome.Stop) {
	p := r.progress.Swap(nil)
	if p == nil {
		return
	}
	p.plan = r.plan
	if stop.Outcome == outcome.NoChanges && r.published.commit == "" && r.task.snapshot != "" {
		p.trace = r.trace()
	}
	state := fmt.Sprintf("agent-ci ended as **%s**%s: %s\n", markdown.Text(string(stop.Outcome)), p.run(), markdown.Text(markdown.Cut(stop.Message, progressMessage)))
	if pull := r.published.pull; pull != nil {
		state = fmt.Sprintf("agent-ci ended as **%s**%s: #%d was %s.\n", markdown.Text(string(stop.Outcome)), p.run(), pull.Number, r.published.operation)
	}
	p.show(ctx, state)
	if p.err != nil {
		r.rec.Warn("progress_comment", "The progress could not be shown in a comment: %v", p.err)
	}
}
