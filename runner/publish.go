package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/bundle"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// PublishOptions say which bundle to publish, and what it is checked by.
type PublishOptions struct {
	RunDir   string
	Dir      string // the checkout
	JobFile  string // the job that the bundle was made by; optional
	Set      []string
	Operator string // path of the operator's file; empty for none

	Surroundings
}

// Publish is the second half of a run that was made elsewhere: it checks the
// bundle that the run left, commits its change, pushes it and opens the pull
// request. It runs no command of the repository and does not touch the work
// tree. What the bundle says is data: the rules come from the base commit, the
// job file and the environment of this half.
func Publish(ctx context.Context, o PublishOptions) record.Result {
	o.Hurry = nil // nothing of it is waited for
	in := newInvocation("", settings.Given{JobFile: o.JobFile, Set: o.Set}, o.Surroundings)
	in.dir, in.operator, in.publish, in.foreign = o.Dir, o.Operator, publishGitHub, true
	return in.attended(ctx, func(so *reached, _ *departure) record.Result { return in.publishFrom(ctx, o.RunDir, so) })
}

func (in *invocation) publishFrom(ctx context.Context, runDir string, so *reached) (result record.Result) {
	in.maskSecrets()
	dir, err := record.OpenDirectory(runDir)
	if err != nil {
		return in.unrecorded(so, err)
	}
	in.rec.Directory = dir
	if err := dir.Lock(); err != nil {
		return in.unrecorded(so, err)
	}
	if err := dir.Writable(); err != nil {
		return in.unrecorded(so, err)
	}
	var b bundle.Bundle
	err = guarded(ctx, func(ctx context.Context) (err error) {
		b, err = in.publishBundle(ctx, so)
		return err
	})
	stop := so.end(ctx, in.rec, err)
	stop.Message = in.rec.Redact(stop.Message)
	result = record.Project(in.publishedView(so, stop))
	result.Sandbox = record.Confinement{} // no command was run
	result.Directory, result.BodyFile, result.Problems = in.rec.Path(), so.published().BodyFile, problemsOf(err)
	result.TranscriptSHA256, result.File = b.Head, record.PublishFile
	if err := in.rec.WriteJSON(record.PublishFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	if b.Head != "" {
		in.rec.Remove(record.StateFolder) // else it may be that of a run that can still go on
	}
	return result
}

// publishedView returns what this half knows of the run: a bundle's transcript is closed, and takes
// no events of it.
func (in *invocation) publishedView(so *reached, stop *outcome.Stop) *transcript.View {
	p, end := so.published(), so.finished(stop)
	view := &transcript.View{Started: transcript.RunStarted{RunID: in.rec.ID}, Plan: so.told.Plan, Verify: &p.Table, Warnings: in.rec.Warnings(), Finished: &end}
	if !p.Change.Empty() {
		view.Change = &transcript.Change{Files: workspace.ChangeFiles(p.Change), Insertions: p.Change.Insertions, Deletions: p.Change.Deletions}
		for i, f := range view.Change.Files { // a name may hold a secret
			view.Change.Files[i].Path = in.rec.Redact(f.Path)
		}
	}
	if p.Pull != nil {
		view.Publish = []transcript.Publish{{Step: "pull_request", Number: p.Pull.Number, URL: p.Pull.URL, Operation: p.Operation}}
	}
	if so.hooks != nil {
		view.Hooks = so.hooks.Uses()
	}
	return view
}
