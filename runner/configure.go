package runner

import (
	"context"
	"time"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// newRun is a run that has not begun.
func newRun(o Options, id string, began time.Time) *run {
	env := settings.Environment(o.Environ)
	r := &run{options: o, env: env, began: began, rec: record.New(id, settings.Secrets(env, nil))}
	r.watch = &progress.Watch{Events: o.Events, Step: o.Step}
	if !o.Quiet {
		r.watch.Lines = o.Progress
	}
	r.source = &settings.Source{Warn: r.rec.Warn, Given: settings.Given{
		JobFile: o.JobFile, Issue: o.Issue, Prompt: o.Prompt, PromptFile: o.PromptFile, Model: o.Model, Set: o.Set,
		Env: env, Reserved: o.Reserved, Stdin: o.Stdin,
	}}
	return r
}

// readJob merges the layers of configuration. The job may name another base than
// the one that the checkout stands on, and then it is read again from there.
func (r *run) readJob(ctx context.Context) error {
	if err := r.loadJob(ctx); err != nil {
		return err
	}
	wanted := r.job.Repository.Base
	if r.checkout == nil || wanted == "" || wanted == r.base.Branch {
		return nil
	}
	if err := r.chooseBase(ctx, wanted); err != nil {
		return checkoutFailure(err)
	}
	if err := r.loadJob(ctx); err != nil {
		return err
	}
	if r.job.Repository.Base != "" && r.job.Repository.Base != wanted {
		return outcome.Stopf(outcome.InvalidInput, "base",
			"The configuration on %s names another base, %s; give the one that holds with --set repository.base=….", wanted, r.job.Repository.Base)
	}
	return nil
}

func (r *run) loadJob(ctx context.Context) error {
	return r.goBy(r.source.Load(ctx, r.baseCommit()))
}

func (r *run) goBy(set *settings.Settings, err error) error {
	if err != nil {
		return err
	}
	r.set, r.job = set, &set.Job
	r.redact()
	return nil
}

// redact makes the run remove the secrets of its environment and its job.
func (r *run) redact() { r.rec.KeepOut(settings.Secrets(r.env, r.job)) }

func (r *run) baseCommit() settings.Commit {
	return settings.Commit{Checkout: r.checkout, SHA: r.base.SHA}
}

// readCommandRules reads the rules on commands.
func (r *run) readCommandRules(ctx context.Context) (err error) {
	r.rules, err = settings.ReadRules(ctx, r.baseCommit(), r.job.Policy.Rules)
	return err
}

// readOutputSchema reads task.output_schema. That of a run that goes on is as it
// was when the run was started.
func (r *run) readOutputSchema(ctx context.Context) (err error) {
	if r.history != nil && r.job.Task.OutputSchema != "" {
		r.output, err = settings.ParseOutputSchema(r.history.Started.OutputSchema)
		return err
	}
	if r.history == nil {
		r.output, err = r.source.ReadOutputSchema(ctx, r.baseCommit(), r.set)
	}
	return err
}

// spareBase keeps text of the repository from being taken for a part of a secret.
func (r *run) spareBase(ctx context.Context) error {
	r.rec.SpareBase(ctx, r.checkout.BaseHolds)
	return nil
}
