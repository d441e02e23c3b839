package runner

import (
	"context"
	"encoding/json"

	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/publish/bundle"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// speaker says on the subject of the run what its agent found.
func (r *runner) speaker(a *assignment) feedback.Speaker {
	return feedback.Speaker{
		Record: r.rec, Server: a.project.forge, Publish: a.job().Publish, On: *a.task.Subject, Key: a.task.Key, RunID: r.rec.ID,
		Snapshot: a.task.Snapshot, Commanded: a.source == nil || a.source.Commanded(), Link: r.env.RunLink(), // one that goes on was not refused
	}
}

// prepareSpeaking ends a run, before the first turn, that could say nothing, or nothing
// new.
func (r *runner) prepareSpeaking(ctx context.Context, a *assignment) error {
	switch a.project.publish {
	case publishNone:
		return nil
	case publishLocal:
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"publish.as is %s, which needs GitHub: set GITHUB_TOKEN, or use --publish none, which writes the findings to output.json.", a.job().Publish.As)
	}
	return r.speaker(a).Ready(ctx)
}

// sayFound publishes the object that the agent gave, once hooks allow it.
func (r *runner) sayFound(ctx context.Context, v *verdict) error {
	if v.project.publish == publishNone {
		return nil
	}
	raw, err := r.rec.Read(v.outputFile)
	if err == nil && v.hooks != nil {
		base := v.workspace.Base()
		err = v.hooks.Publishing(ctx, hooks.Draft{
			Base: base.Branch, BaseSHA: base.SHA, To: v.project.publish, As: v.job().Publish.As, Title: v.task.Title, Body: string(raw),
			Labels: []string{}, Files: []string{},
		})
	}
	if err == nil {
		r.end.feedback, err = r.speaker(v.assignment).Say(ctx, raw)
	}
	return err
}

// feedbackSchema is that of the object which the agent gives for what the job publishes.
func feedbackSchema(p job.Publish) (settings.OutputSchema, error) {
	raw, err := feedback.Schema(p)
	if err != nil {
		return settings.OutputSchema{}, err
	}
	return settings.ParseOutputSchema(raw)
}

// publishesChange refuses a bundle whose job publishes none: what its agent found is
// not said by another half.
func publishesChange(b bundle.Bundle) error {
	var j job.Job
	if b.View == nil || json.Unmarshal(b.View.Started.Job, &j) != nil || !j.Publish.Feedback() {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "bundle",
		"The bundle cannot be published: its job has publish.as: %s, and this half publishes changes alone; run that job with a token.", j.Publish.As)
}
