package runner

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/bundle"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// PublishOptions say which bundle to publish, and what it is checked by.
type PublishOptions struct {
	RunDir  string
	Dir     string // the checkout
	JobFile string // the job that the bundle was made by; optional
	Set     []string
	Quiet   bool

	Environ  []string
	Reserved []string
	Version  string
	Progress io.Writer     // may be nil
	Step     *actions.Step // of the job in GitHub Actions; may be nil
}

// Publish is the second half of a run that was made elsewhere: it checks the
// bundle that the run left, commits its change, pushes it and opens the pull
// request. It runs no command of the repository and does not touch the work
// tree. What the bundle says is data: the rules come from the base commit, the
// job file and the environment of this half.
func Publish(ctx context.Context, o PublishOptions) record.Result {
	r := newRun(Options{
		JobFile: o.JobFile, Dir: o.Dir, Set: o.Set, Quiet: o.Quiet, Publish: publishGitHub,
		Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Progress: o.Progress, Step: o.Step,
	}, "", time.Now())
	defer r.close()
	result := r.wholeBundle(ctx, o.RunDir)
	r.tellStep(&result)
	return result
}

func (r *run) wholeBundle(ctx context.Context, runDir string) record.Result {
	r.maskSecrets()
	dir, err := record.OpenDirectory(runDir)
	if err != nil {
		return r.unrecorded(err)
	}
	r.rec.Directory = dir
	if err := dir.Writable(); err != nil {
		return r.unrecorded(err)
	}
	err = r.guarded(ctx, r.publishBundle)
	stop := r.outcomeOf(ctx, err)
	stop.Message = r.rec.Redact(stop.Message)
	result := r.result(stop, err)
	result.TranscriptSHA256, result.File = r.bundleHead, record.PublishFile
	if err := r.rec.WriteJSON(record.PublishFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	if r.bundleHead != "" {
		r.rec.Remove(record.StateFolder) // else it may be that of a run that can still go on
	}
	return result
}

func (r *run) publishBundle(ctx context.Context) error {
	b, err := bundle.Open(ctx, r.rec, r.env.Token() != "")
	r.bundleHead = b.Head
	if err != nil {
		return err
	}
	if err := r.openBundleCheckout(ctx); err != nil {
		return err
	}
	r.readEvent(ctx)
	to, p, err := r.secondHalf(ctx).Propose(ctx, b)
	r.job, r.base, r.changes, r.table, r.summary, r.overBudget = p.Job, p.Base, p.Change, p.Table, p.Summary, p.Stopped
	if p.RunID != "" {
		r.plan = b.View.Plan
	}
	if err != nil {
		return err
	}
	p.Follow.Judge = r.judgeMoved
	if p.Change.Empty() {
		return r.publishNothing(ctx, to, p, b)
	}
	if err := r.judgeChanges(ctx); err != nil {
		return err
	}
	return r.publishTo(ctx, to, p)
}

// publishNothing is the end of a run that changed nothing: a pull request of its
// task that is open is closed.
func (r *run) publishNothing(ctx context.Context, to publish.Forge, p publish.Proposal, b bundle.Bundle) error {
	if err := r.publishTo(ctx, to, p); err != nil {
		return err
	}
	stop := b.NothingToPublish()
	stop.Message += r.published.whole().ClosedSentence()
	return stop
}

func (r *run) secondHalf(ctx context.Context) bundle.Half {
	return bundle.Half{Record: r.rec, Workspace: r.space, Source: r.source, Event: r.told, Forge: func(j *job.Job) (publish.Forge, error) {
		r.job = j
		err := r.newForge(ctx)
		return r.toForge(), err
	}}
}

// openBundleCheckout opens the checkout, whose commit says what this half goes by
// until the base is known.
func (r *run) openBundleCheckout(ctx context.Context) (err error) {
	r.space, err = workspace.Open(ctx, r.rec, workspace.Options{Dir: cmp.Or(r.options.Dir, "."), Path: r.env.Get("PATH")})
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	r.mirror()
	return nil
}
