package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/audit"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ReplayOptions say which run is replayed and where.
type ReplayOptions struct {
	RunDir string
	// Dir is a checkout that has the base commit; empty means where the run worked, and for a run
	// that this machine did not record the one here.
	Dir string
	// JobFile is the job that a run was made by which this machine did not record; optional.
	JobFile string
	Out     string // run directory of the replay, kept; empty means a temporary one
	Frozen  bool   // tools are replayed too, none runs

	Environ      []string
	Reserved     []string // as in Surroundings
	Version      string
	ScriptEngine []string           // as in Surroundings
	Progress     io.Writer          // may be nil
	Terminal     *progress.Terminal // as in Surroundings
}

// Replayed is what a replay came to.
type Replayed struct {
	Tree        string // of the change; the base's when nothing changed
	Body        string // of the pull request that it would make
	Calls       int    // that were compared, or requests where tools were frozen
	Differences audit.Differences
	Outcome     outcome.Outcome // of the replay; empty where tools were frozen
	Message     string
}

func (r *Replayed) differ(found ...audit.Differences) {
	for _, each := range found {
		r.Differences = append(r.Differences, each...)
	}
}

// Replay runs the recorded answers of a model again, offline: in a fresh tree of
// the base commit, with the real tools, and tells where their outputs differ.
// Frozen, it runs nothing, and checks that the record is whole: that its events
// make up the requests which were sent, and that its objects are the change.
func Replay(ctx context.Context, o ReplayOptions) (*Replayed, error) {
	recorded, err := readRecorded(o)
	if err != nil {
		return nil, err
	}
	defer recorded.rec.Close()
	called := "the replay's tree"
	if o.Out == "" {
		called = publish.GoneTree
		if o.Out, err = os.MkdirTemp("", "agent-ci-replay-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
		defer sandbox.RemoveScratch(o.Out)
	}
	p := newReplay(recorded, o)
	p.called = called
	defer p.r.watch.Live(ctx, nil)()
	defer p.close()
	if err := p.open(ctx, o); err != nil {
		return nil, err
	}
	if o.Frozen {
		return p.frozen(ctx)
	}
	return p.live(ctx)
}

// recordedRun is the run that is replayed.
type recordedRun struct {
	*history.Run
	rec *record.Record
}

func readRecorded(o ReplayOptions) (recordedRun, error) {
	rec := newRunner("", settings.Given{}, Surroundings{Environ: o.Environ}).rec
	dir, err := record.OpenDirectory(o.RunDir)
	if err != nil {
		return recordedRun{}, err
	}
	rec.Directory = dir
	h, err := history.Read(rec)
	if err == nil && !h.Begun() {
		err = errors.New("the run had not begun: there is nothing to replay")
	}
	if err != nil {
		rec.Close()
		return recordedRun{}, err
	}
	return recordedRun{h, rec}, nil
}

func (r recordedRun) audited() audit.Record {
	return audit.Record{Directory: r.rec.Directory, View: r.View, Job: &r.Job}
}

// replayed is a run that takes its answers from another.
type replayed struct {
	recorded recordedRun
	r        *runner
	asked    *request
	source   *workspace.Workspace // that has the objects of the fresh tree
	tree     *workspace.Workspace // the fresh tree; nil where nothing is run
	into     string               // its folder
	called   string               // it, for people
}

func newReplay(recorded recordedRun, o ReplayOptions) *replayed {
	r := newRunner("", settings.Given{JobFile: o.JobFile}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Progress: o.Progress, Terminal: o.Terminal, Quiet: o.Progress == nil})
	r.rec.Notes = "" // the settings of a replay are those of who wrote its record
	return &replayed{recorded: recorded, r: r, asked: &request{publish: publish.Nowhere, program: program{engine: o.ScriptEngine}}, into: filepath.Join(o.Out, record.CheckoutFolder)}
}

// open makes the directory of the replay and finds the base commit.
func (p *replayed) open(ctx context.Context, o ReplayOptions) (err error) {
	if err := p.r.makeDirectory(o.Out, ""); err != nil {
		return err
	}
	was := p.recorded.Workspace
	p.r.rec.ID = p.recorded.Started.RunID
	p.r.keepOut(&p.recorded.Job)
	own := p.r.recordedHere(p.recorded.rec.Directory)
	from := was.Root
	if !own { // who wrote the record may have named any folder
		from = "."
	}
	if p.source, err = p.openTree(ctx, cmp.Or(o.Dir, from), ""); err == nil {
		err = p.source.SetBase(ctx, gitops.BaseSpec{Branch: was.Base, SHA: was.BaseSHA})
	}
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	if own || o.Frozen { // which runs nothing
		return nil
	}
	return p.r.holdForeign(ctx, p.recorded.Run, p.source, publish.Nowhere, false)
}

func (p *replayed) openTree(ctx context.Context, dir, name string) (*workspace.Workspace, error) {
	at := p.r.at(dir)
	at.Name = name
	ws, err := workspace.Open(ctx, p.r.rec, at)
	if err != nil {
		return nil, err
	}
	return ws, ws.StartOn(ctx, "")
}

func (p *replayed) close() {
	if p.r.end.boxes != nil { // its record is thrown away, and nothing resumes it
		_ = p.r.end.boxes.LeaveTree()
	}
	p.r.end.close()
	if p.source != nil {
		_ = p.source.Close()
	}
	p.r.rec.Close()
}

// live runs the recorded answers with the real tools.
func (p *replayed) live(ctx context.Context) (*Replayed, error) {
	if p.recorded.OnPull() {
		return nil, errors.New("the run went on with a pull request, whose change its transcript does not have; it can be replayed with --frozen alone")
	}
	if err := p.makeTree(ctx); err != nil {
		return nil, err
	}
	recorded, err := replay.Read(p.recorded.Run, p.recorded.rec, p.r.rec, p.places())
	if err == nil {
		p.asked.program.tools, err = extensions.ReplayEmbedded(p.recorded.rec.Directory, recorded.All())
	}
	if err != nil {
		return nil, err
	}
	p.asked.recorded = recorded
	at := place{assignment: new(recordedAssignment(p.recorded.Run, p.asked)), workspace: p.tree}
	at.project.Mode = publish.Nowhere
	if at.skills, err = skills.Kept(p.recorded.rec.Directory, p.recorded.Skills); err != nil {
		return nil, err
	}
	at.lessons = proposals.Recorded(p.r.rec, p.recorded.View).ForReplay().In(p.tree, at.job(), at.task.Subject != nil)
	p.r.placed(at)
	err = guarded(ctx, func(ctx context.Context) error { return p.run(ctx, at) })
	answers, end := recorded.Answers, p.r.end
	if err != nil && answers.Unused() {
		return nil, p.notStarted(ctx, err)
	}
	found := &Replayed{Tree: string(p.tree.Base().Tree), Calls: len(recorded.Outputs)}
	if !end.work.change.Empty() {
		found.Tree = string(end.work.change.Tree)
	}
	if end.agents.main != nil {
		if found.Body, err = p.writeBody(err); err != nil && found.Body == "" {
			return nil, err
		}
	}
	stop := end.of(ctx, p.r.rec, err)
	found.Outcome, found.Message = stop.Outcome, outcome.Shortened(p.r.rec.Redact(stop.Message))
	stop.Message = found.Message
	p.r.conclude(end.event(stop))
	if found.Differences, err = p.recorded.audited().Outputs(recorded.Outputs, p.r.rec.Directory, p.tree.Root()); err != nil {
		return found, err
	}
	came := audit.Replay{Stop: stop, Base: string(p.tree.Base().Tree), Tree: found.Tree, Checks: end.work.table.Rows}
	switch ended := p.recorded.Finished; {
	case !answers.Lacked:
		found.differ(p.recorded.audited().End(came))
	case ended != nil && !slices.Contains(history.Stopped, outcome.Outcome(ended.Outcome)): // nothing stopped the run before it had all answers
		found.differ(p.recorded.audited().GoesOn(came, found.Message))
	}
	patch, err := p.recorded.audited().Patch(ctx)
	found.differ(patch)
	return found, err
}

// run is a run up to its verdict, whose model says what one said before.
func (p *replayed) run(ctx context.Context, at place) error {
	r := p.r
	return r.inTime(ctx, at.job().Limits, func(limited context.Context) (err error) {
		a := *at.assignment
		if a.model, err = a.recorded.Answers.Model(a.job(), r.rec.Warn); err != nil {
			return err
		}
		n := intake.Naming{Job: a.job(), Event: r.around(), Recorded: p.recorded.Workspace.Repository, Origin: at.workspace.Checkout().Origin()}
		if a.project, err = r.findProject(n, a.publish); err != nil {
			return err
		}
		if err := r.readRules(limited, &at, &a, at.workspace); err != nil {
			return err
		}
		if at.guides, err = worker.ReadGuides(at.workspace.Commit(), a.job().Repository.Path, r.rec.Warn); err != nil {
			return err
		}
		at.assignment = &a
		rd, err := r.makeReady(limited, r.placed(at))
		if err != nil {
			return err
		}
		w, err := r.work(limited, ctx, rd, 0)
		if err != nil {
			return err
		}
		if err := rd.hooks.Fired(); err != nil {
			return err
		}
		_, err = r.judge(limited, w)
		return err
	})
}

// notStarted returns the outcome of a replay that ended before the first recorded answer: this
// machine lacks something that the run had.
func (p *replayed) notStarted(ctx context.Context, err error) error {
	stop := p.r.end.of(ctx, p.r.rec, err)
	return &outcome.Stop{Outcome: stop.Outcome, Reason: stop.Reason, Message: "The run cannot be replayed here: " + p.r.rec.Redact(stop.Message), Err: err}
}

// makeTree makes a fresh tree of the base commit, which borrows its objects.
func (p *replayed) makeTree(ctx context.Context) (err error) {
	base := p.source.Base()
	p.source.Checkout().AllowFilters(p.recorded.Job.Git.Listed())
	if err := p.source.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: p.into, Shown: gitops.Shown{Tree: base.Tree}}); err != nil {
		return err
	}
	if p.tree, err = p.openTree(ctx, p.into, p.called); err != nil {
		return workspace.CheckoutFailure(err)
	}
	if is := p.tree.Base().SHA; is != base.SHA {
		return fmt.Errorf("the fresh tree stands on %s, not on the base %s", gitops.Short(is), gitops.Short(base.SHA))
	}
	return p.tree.SetBase(ctx, gitops.BaseSpec{Branch: base.Branch, SHA: base.SHA})
}

// writeBody writes the body of the pull request and keeps the error of the run.
// It names the transcript that is replayed, and the folder that the run worked
// in: two replays differ in nothing but durations.
func (p *replayed) writeBody(failed error) (string, error) {
	view, err := p.r.rec.View()
	if err != nil {
		return "", errors.Join(failed, err)
	}
	recorded, err := p.recorded.rec.Directory.View()
	if err != nil {
		return "", errors.Join(failed, err)
	}
	view.Head, view.Events = recorded.Head, recorded.Events
	w := p.r.end.work
	proposal := p.r.proposal(w)
	proposal.ShownAs = filepath.Base(p.recorded.rec.Path())
	posts, err := body.Compose(view, w.project.Means(p.r.rec, p.r.env, w.workspace).BodyOptions(&proposal))
	if err != nil {
		return "", errors.Join(failed, err)
	}
	text := posts.Body
	for _, place := range p.places() {
		text = strings.ReplaceAll(text, place.Here, place.Recorded)
	}
	return text, errors.Join(failed, p.r.rec.Write(record.PullRequestFile, []byte(text)))
}

// places are those at which commands find the work tree.
func (p *replayed) places() []replay.Place {
	all := []replay.Place{{Recorded: p.recorded.Workspace.Root, Here: p.tree.Root()}}
	if seen := p.recorded.Policy.Seen; seen != "" {
		all = slices.Insert(all, 0, replay.Place{Recorded: seen, Here: p.tree.Seen()})
	}
	return all
}

// frozen checks that the record makes up what was sent and what was changed.
func (p *replayed) frozen(ctx context.Context) (*Replayed, error) {
	found := &Replayed{Tree: string(p.source.Base().Tree)}
	recorded := p.recorded.audited()
	requests, number, err := recorded.Requests()
	if err != nil {
		return nil, err
	}
	found.Calls = number
	found.differ(requests, recorded.Itself())
	view, err := p.recorded.rec.Directory.View()
	if err != nil {
		return nil, err
	}
	patch, err := recorded.Patch(ctx)
	if found.differ(patch); err != nil {
		return nil, err
	}
	if change := p.recorded.Work.Change; change != nil {
		if err := p.applyChange(ctx, change, found); err != nil {
			return nil, err
		}
	}
	if found.Body, err = p.recordedBody(view); err != nil {
		return nil, err
	}
	return found, p.r.rec.Write(record.PullRequestFile, []byte(found.Body))
}

// recordedBody is the body of the pull request by what the record tells. The template
// is that of the checkout.
func (p *replayed) recordedBody(view *transcript.View) (string, error) {
	proposal := publish.Proposal{Job: &p.recorded.Job, Task: recordedAssignment(p.recorded.Run, p.asked).task, Table: transcript.Verify{Passed: true}}
	if view.Verify != nil {
		proposal.Table = *view.Verify
	}
	means := publish.Means{Record: p.recorded.rec, Workspace: p.source, Env: p.r.env}
	posts, err := body.Compose(view, means.BodyOptions(&proposal))
	return posts.Body, err
}

// applyChange makes the tree of the change in the fresh tree.
func (p *replayed) applyChange(ctx context.Context, change *transcript.Change, found *Replayed) error {
	changes, err := p.source.ReadWork(ctx, p.recorded.rec.Directory, change)
	if err != nil {
		return err
	}
	found.differ(p.recorded.audited().Files(workspace.ChangeFiles(changes), string(changes.Tree)))
	found.Tree = string(changes.Tree)
	return p.source.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: p.into, Shown: gitops.Shown{Tree: changes.Tree}})
}
