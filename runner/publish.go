package runner

import (
	"cmp"
	"context"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/bundle"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// PublishOptions names the bundle to publish, and the job to check it against.
type PublishOptions struct {
	RunDir   string
	Dir      string // the checkout
	JobFile  string // the job that made the bundle; optional
	Set      []string
	Operator string // path of the operator's file; empty for none

	Surroundings
}

// Publish is the second half of a run whose first half made a bundle elsewhere. It verifies the bundle,
// commits the change, pushes it and opens the pull request. It runs no command of the repository and
// does not touch the work tree. The bundle is only data: rules come from the base commit, the job file
// and this half's environment.
func Publish(ctx context.Context, o PublishOptions) record.Result {
	o.ForceStop = nil // there is no command to wait for
	r := newRunner("", start.Request{Dir: o.Dir, Operator: o.Operator, Publish: publish.ToForge}, settings.Inputs{JobFile: o.JobFile, Set: o.Set}, o.Surroundings)
	r.end.bundle = true
	return r.runAndReport(ctx, func() record.Result { return r.publishRunDir(ctx, o.RunDir) })
}

// publishRunDir publishes the bundle in runDir. It returns the result, and writes it to runDir.
func (r *runner) publishRunDir(ctx context.Context, runDir string) (result record.Result) {
	dir, err := record.OpenDirectory(runDir)
	if err != nil {
		return r.resultWithoutRecord(err)
	}
	r.Record.Directory = dir
	if err := cmp.Or(dir.Lock(), dir.CheckWritable()); err != nil {
		return r.resultWithoutRecord(err)
	}
	var b bundle.Bundle
	err = recoverPanic(ctx, func(ctx context.Context) (err error) {
		if b, err = bundle.Open(ctx, r.Record, r.Env.Token() != ""); err == nil {
			err = r.publishBundle(ctx, b)
		}
		return err
	})
	// The bundle's transcript is finished: this half's events go into the view, not into the file.
	view, _ := r.Record.Conclude(r.end.runFinished(r.end.outcome(ctx, r.Record, err)), r.Record.Begin(transcript.RunStarted{RunID: r.Record.ID}))
	view.Head = b.Head
	result = record.ResultFromView(view)
	result.BodyFile, result.Problems = r.end.publication().BodyFile, config.ProblemLines(err)
	r.Record.WriteResult(record.PublishFile, &result)
	if b.Head != "" {
		r.Record.Remove(record.StateFolder) // a folder that is no bundle may have the state of a run that can still resume
	}
	return result
}

// publishBundle verifies a bundle and publishes its change. It registers its results as stages of a run do.
func (r *runner) publishBundle(ctx context.Context, b bundle.Bundle) error {
	a := r.Assignment
	ws, err := workspace.Open(ctx, r.Record, r.CheckoutOptions(cmp.Or(a.Dir, ".")))
	r.end.Workspace = ws
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	second := bundle.SecondHalf{
		Record: r.Record, Workspace: ws, Source: r.Source, Event: intake.ReadEvent(ctx, intake.ReadSurroundings(r.Env)), Operator: a.Operator,
		Forge: func(j *job.Job) (to publish.Forge, err error) {
			a.Project, err = publish.FindProject(r.Env, r.Version, intake.RepositorySources{Job: j, Event: intake.Event{Surroundings: intake.ReadSurroundings(r.Env)}, Origin: ws.Checkout().Origin()}, a.Publish)
			return r.Forge(a.Project, ws), err
		},
	}
	_, p, err := second.Propose(ctx, b)
	a.Task = p.Task
	if p.Job != nil {
		a.Settings = &settings.Settings{Job: *p.Job}
	}
	at := &start.Place{Assignment: a, Workspace: ws}
	rd := &ready{Opened: &start.Opened{Place: at}}
	r.end.work = work{ready: rd, change: p.Change, verification: p.Verification, stopped: p.Stopped, summary: p.Summary}
	if err != nil {
		return err
	}
	if at.Lessons, err = second.Admit(ctx, b, &p); err != nil {
		return err
	}
	if b.View.Baseline != nil {
		rd.baseline = *b.View.Baseline
	}
	p.Inspection, p.Judge = &r.end.inspection, r.judgeOf(rd)
	if err := r.inspectChange(ctx, r.end.work, p.Job, p.Change); err != nil {
		return err
	}
	r.end.Hooks = p.Hooks
	if err := r.publish(ctx, &verdict{r.end.work, p}); err != nil || !p.Change.Empty() {
		return err
	}
	stop := b.NothingToPublish()
	stop.Message += r.end.published.DescribeOpenPull()
	return stop
}
