package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
	"github.com/agent-ci/agent-ci/runner/worker"
)

// ReplayOptions say which run is replayed and where.
type ReplayOptions struct {
	RunDir string
	Dir    string // a checkout that has the base commit; empty means where the run worked
	Out    string // run directory of the replay, kept; empty means a temporary one
	Frozen bool   // tools are replayed too, none runs

	Environ  []string
	Version  string
	Progress io.Writer // may be nil
}

// Replayed is what a replay came to.
type Replayed struct {
	Tree        string // of the change; the base's when nothing changed
	Body        string // of the pull request that it would make
	Calls       int    // that were compared, or requests where tools were frozen
	Differences []Difference
	Outcome     outcome.Outcome // of the replay; empty where tools were frozen
	Message     string
}

// Difference is one point in which a replay is not as the run was.
type Difference struct {
	What     string // "call 3 (exec_command)"
	Recorded string
	Replayed string
}

// Replay runs the recorded answers of a model again, offline: in a fresh tree of
// the base commit, with the real tools, and tells where their outputs differ.
// Frozen, it runs nothing, and checks that the record is whole: that its events
// make up the requests which were sent, and that its objects are the change.
func Replay(ctx context.Context, o ReplayOptions) (*Replayed, error) {
	recorded := newRun(Options{Environ: o.Environ}, "", time.Now())
	defer recorded.close()
	dir, err := record.OpenDirectory(o.RunDir)
	if err != nil {
		return nil, err
	}
	recorded.rec.Directory = dir
	if recorded.history, err = recorded.readHistory(); err != nil {
		return nil, err
	}
	if !recorded.history.Begun() {
		return nil, errors.New("the run had not begun: there is nothing to replay")
	}
	if o.Out == "" {
		if o.Out, err = os.MkdirTemp("", "agent-ci-replay-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		defer sandbox.RemoveScratch(o.Out)
	}
	replay, err := newReplay(ctx, recorded, o)
	if replay != nil {
		defer replay.run.close()
	}
	if err != nil {
		return nil, err
	}
	if o.Frozen {
		return replay.frozen(ctx)
	}
	return replay.live(ctx)
}

// replay is a run that takes its answers from another.
type replay struct {
	recorded *run
	run      *run
	into     string // the fresh tree
}

// newReplay makes a fresh tree of the base commit, and a run in it.
func newReplay(ctx context.Context, recorded *run, o ReplayOptions) (*replay, error) {
	r := newRun(Options{Out: o.Out, Publish: publishNone, Environ: o.Environ, Version: o.Version, Progress: o.Progress, Quiet: o.Progress == nil}, "", time.Now())
	r.history = recorded.history
	p := &replay{recorded: recorded, run: r, into: filepath.Join(o.Out, record.CheckoutFolder)}
	if err := r.openDirectory(); err != nil {
		return p, err
	}
	r.adoptTask()
	r.history, r.options.Publish = nil, publishNone
	source := o.Dir
	if source == "" {
		source = recorded.history.Workspace.Root
	}
	if err := r.openCheckout(ctx, source); err != nil {
		return p, checkoutFailure(err)
	}
	base, err := r.checkout.UseBase(gitops.BaseSpec{Branch: recorded.history.Workspace.Base, SHA: recorded.history.Workspace.BaseSHA})
	if err != nil {
		return p, checkoutFailure(err)
	}
	r.base = base
	return p, nil
}

// live runs the recorded answers with the real tools.
func (p *replay) live(ctx context.Context) (*Replayed, error) {
	r := p.run
	if p.recorded.history.onPull() {
		return nil, errors.New("the run went on with a pull request, whose change its transcript does not have; it can be replayed with --frozen alone")
	}
	if err := r.checkout.Materialise(ctx, gitops.MaterialiseOptions{Dir: p.into, Tree: r.base.Tree}); err != nil {
		return nil, err
	}
	base, source := r.base, r.checkout
	defer source.Close() // the fresh tree borrows its objects
	if err := r.openCheckout(ctx, p.into); err != nil {
		return nil, checkoutFailure(err)
	}
	if r.base.SHA != base.SHA {
		return nil, fmt.Errorf("the fresh tree stands on %s, not on the base %s", gitops.Short(r.base.SHA), gitops.Short(base.SHA))
	}
	r.base.Branch = base.Branch
	answers, outputs, err := p.record()
	if err != nil {
		return nil, err
	}
	r.model.Responder = answers
	err = r.guarded(ctx, r.replayPipeline)
	found := &Replayed{Tree: string(r.base.Tree)}
	if !r.changes.Empty() {
		found.Tree = string(r.changes.Tree)
	}
	if r.conversation != nil {
		if found.Body, err = p.writeBody(err); err != nil && found.Body == "" {
			return nil, err
		}
	}
	stop := r.outcomeOf(ctx, err)
	found.Outcome, found.Message = stop.Outcome, r.rec.Redact(stop.Message)
	r.endProcesses()
	result := r.result(stop, err)
	r.conclude(&result, nil)
	found.Calls = len(outputs)
	found.Differences, err = p.compare(outputs)
	switch {
	case !answers.lacked:
		p.compareEnd(found, stop)
	case p.endedByItself():
		found.Differences = append(found.Differences, Difference{What: "end", Recorded: p.recorded.history.Finished.Message, Replayed: found.Message})
		p.compareChecks(found)
	}
	return found, errors.Join(err, p.checkPatch(ctx, found))
}

// endedByItself says that nothing stopped the run before it had all answers.
func (p *replay) endedByItself() bool {
	end := p.recorded.history.Finished
	return end != nil && !slices.Contains(goesOn, outcome.Outcome(end.Outcome))
}

// writeBody writes the body of the pull request and keeps the error of the run.
// It names the transcript that is replayed, and the folder that the run worked
// in: two replays differ in nothing but durations.
func (p *replay) writeBody(failed error) (string, error) {
	view, err := p.run.rec.View()
	if err != nil {
		return "", errors.Join(failed, err)
	}
	recorded, err := p.recorded.rec.Directory.View()
	if err != nil {
		return "", errors.Join(failed, err)
	}
	view.Head, view.Events = recorded.Head, recorded.Events
	p.run.shownAs = filepath.Base(p.recorded.rec.Path())
	posts, err := p.run.compose(view)
	if err != nil {
		return "", errors.Join(failed, err)
	}
	text := strings.ReplaceAll(posts.Body, p.run.checkout.Root(), p.recorded.history.Workspace.Root)
	return text, errors.Join(failed, p.run.rec.Write(record.PullRequestFile, []byte(text)))
}

func (r *run) replayPipeline(ctx context.Context) error {
	r.options.Publish = publishNone
	return r.inTime(ctx,
		r.knowRecorded, r.newForge, r.readCommandRules, r.spareBase, r.confine, r.begin, r.meetAgent, r.setUp, r.takeBaseline, r.briefAgent, r.workUntilVerified, r.judgeReplayed)
}

// judgeReplayed refuses what publishing would refuse before it asks anybody.
func (r *run) judgeReplayed(ctx context.Context) error {
	if r.changes.Empty() {
		return r.judgeLeftOut()
	}
	return r.judgeChanges(ctx)
}

// knowRecorded finds the model's profile. Nothing makes the conversation
// shorter: nobody reads it, and there is no recorded answer to that.
func (r *run) knowRecorded(context.Context) (err error) {
	answers := r.replayed()
	r.model, err = worker.NewModel(answers, r.job, r.rec.Warn)
	r.model.Profile.ContextWindow = 0
	r.model.Left = func() bool { return answers.next < len(answers.answers) }
	return err
}

// recordedAnswers is a model that says what one said before.
type recordedAnswers struct {
	answers []*model.Response
	next    int
	lacked  bool // one more was asked for
	asks    bool // the run put its questions to people
}

// replayed is the record that stands in for the model; nil where none does.
func (r *run) replayed() *recordedAnswers {
	recorded, _ := r.model.Responder.(*recordedAnswers)
	return recorded
}

func (a *recordedAnswers) Respond(ctx context.Context, _ model.Request, observe model.Observer) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.next == len(a.answers) {
		a.lacked = true
		return nil, outcome.Stopf(outcome.ModelFailed, string(model.ScriptMismatch),
			"The replay goes on where the run ended, after %d answers: a tool or a check came out otherwise, or the run was stopped there.", len(a.answers))
	}
	a.next++
	answer := a.answers[a.next-1]
	for _, item := range answer.Output {
		if observe.Item != nil {
			observe.Item(item)
		}
	}
	return answer, nil
}

// record reads the answers and the outputs of calls, by number. Where answers
// name the checkout of the run they now name the fresh tree.
func (p *replay) record() (*recordedAnswers, []transcript.ToolFinished, error) {
	answers := &recordedAnswers{asks: worker.AskedPeople(&p.recorded.history.job, p.recorded.history.Warnings)}
	var outputs []transcript.ToolFinished
	err := p.recorded.eachEvent(func(e transcript.Event) error {
		switch e.Type {
		case transcript.TypeModelResponse:
			var d transcript.ModelResponse
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			if d.Aside {
				return nil
			}
			for i := range d.Output {
				d.Output[i] = bytes.ReplaceAll(d.Output[i], jsonText(p.recorded.history.Workspace.Root), jsonText(p.run.checkout.Root()))
			}
			answers.answers = append(answers.answers, &model.Response{ID: d.ID, Status: d.Status, Output: d.Output, Usage: model.Usage(d.Usage)})
		case transcript.TypeToolFinished:
			var d transcript.ToolFinished
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			outputs = append(outputs, d)
		}
		return nil
	})
	return answers, outputs, err
}

// jsonText is a text as it stands inside of a JSON string.
func jsonText(s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil || len(s) < 2 {
		return []byte("\x00") // stands nowhere in JSON
	}
	return raw[1 : len(raw)-1]
}

func (r *run) eachEvent(take func(transcript.Event) error) error {
	_, err := r.rec.Survey(func(_ *transcript.View, e transcript.Event) error { return take(e) })
	return err
}

// compare finds the calls whose outputs are not what they were, but for times,
// names of chunks, the folder that the work is in, and how long that makes them.
func (p *replay) compare(recorded []transcript.ToolFinished) ([]Difference, error) {
	now := map[int]transcript.ToolFinished{}
	err := p.run.eachEvent(func(e transcript.Event) error {
		if e.Type != transcript.TypeToolFinished {
			return nil
		}
		var d transcript.ToolFinished
		err := json.Unmarshal(e.Data, &d)
		now[d.Number] = d
		return err
	})
	var found []Difference
	for _, was := range recorded {
		is, ran := now[was.Number]
		a := lasting(was.Output)
		b := lasting(strings.ReplaceAll(is.Output, p.run.checkout.Root(), p.recorded.history.Workspace.Root))
		if !ran {
			b = "(not called)"
		}
		if a != b {
			found = append(found, Difference{What: fmt.Sprintf("call %d (%s)", was.Number, was.Tool), Recorded: a, Replayed: b})
		}
	}
	return found, err
}

var passing = regexp.MustCompile(`(?m)^(?:Chunk ID: .*|Wall time: .*|Original token count: .*|Process running with session ID .*)\n?`)

// lasting is an output without what differs from run to run.
func lasting(output string) string { return passing.ReplaceAllString(output, "") }

// frozen checks that the record makes up what was sent and what was changed.
func (p *replay) frozen(ctx context.Context) (*Replayed, error) {
	found := &Replayed{Tree: string(p.run.base.Tree)}
	if err := p.checkRequests(found); err != nil {
		return nil, err
	}
	p.checkRecord(found)
	view, err := p.recorded.rec.Directory.View()
	if err = errors.Join(err, p.checkPatch(ctx, found)); err != nil {
		return nil, err
	}
	p.recorded.adoptHistory()
	p.recorded.table = transcript.Verify{Passed: true}
	if view.Verify != nil {
		p.recorded.table = *view.Verify
	}
	if change := p.recorded.history.Work.Change; change != nil {
		if err := p.applyChange(ctx, change, found); err != nil {
			return nil, err
		}
	}
	means, proposal := p.recorded.means(), p.recorded.proposal()
	means.Workspace = p.run.ws() // which has the template
	posts, err := body.Compose(view, means.BodyOptions(&proposal))
	if err != nil {
		return nil, err
	}
	found.Body = posts.Body
	return found, p.run.rec.Write(record.PullRequestFile, []byte(found.Body))
}

// applyChange makes the tree of the change in the fresh tree.
func (p *replay) applyChange(ctx context.Context, change *transcript.Change, found *Replayed) error {
	name := workPack(p.recorded.rec.Directory)
	pack, err := p.recorded.rec.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer pack.Close()
	changes, err := p.run.checkout.ReadPack(ctx, pack, gitops.Tree(change.TreeSHA))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if !transcript.SameFiles(changeFiles(changes), change.Files) {
		found.Differences = append(found.Differences, Difference{What: "change", Recorded: change.TreeSHA, Replayed: string(changes.Tree)})
	}
	found.Tree = string(changes.Tree)
	return p.run.checkout.Materialise(ctx, gitops.MaterialiseOptions{Dir: p.into, Tree: changes.Tree})
}

// checkRequests builds each request from the events and compares its digest.
func (p *replay) checkRequests(found *Replayed) error {
	rebuilt := model.Rebuilt{Chat: p.recorded.history.job.Model.Wire == "chat" && p.recorded.history.Started.Scripted == ""}
	return p.recorded.eachEvent(func(e transcript.Event) error {
		var d struct {
			Turn                 int
			SHA256               string
			Settings             json.RawMessage
			Input, Output, Items []json.RawMessage
			ID, Status           string
		}
		switch e.Type {
		case transcript.TypeModelRequest, transcript.TypeModelResponse, transcript.TypeCompaction:
		default:
			return nil
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		switch e.Type {
		case transcript.TypeModelRequest:
			digest, err := rebuilt.Request(d.Settings, d.Input)
			if err != nil {
				return err
			}
			found.Calls++
			if digest != d.SHA256 && !rebuilt.LacksImages() {
				found.Differences = append(found.Differences, Difference{What: fmt.Sprintf("request of turn %d", d.Turn), Recorded: d.SHA256, Replayed: digest})
			}
		case transcript.TypeModelResponse:
			if d.Status == transcript.Incomplete {
				rebuilt.Rest(d.Output)
				return nil
			}
			rebuilt.Response(d.ID, d.Output)
		case transcript.TypeCompaction:
			rebuilt.Compaction(d.Items)
		}
		return nil
	})
}
