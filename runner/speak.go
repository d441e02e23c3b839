package runner

import (
	"context"
	"encoding/json"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/bundle"
	"github.com/agent-ci/agent-ci/runner/feedback"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// speaker says on the subject of the run what its agent found.
func (in *invocation) speaker(so *reached) feedback.Speaker {
	return feedback.Speaker{
		Record: in.rec, Server: so.project.forge, Publish: so.job().Publish, On: *so.task.Subject, Key: so.task.Key, RunID: in.rec.ID,
		Snapshot: so.task.Snapshot, Commanded: so.source == nil || so.source.Commanded(), Link: in.env.RunLink(), // one that goes on was not refused
	}
}

// prepareSpeaking ends a run, before the first turn, that could say nothing, or nothing
// new.
func (in *invocation) prepareSpeaking(ctx context.Context, so *reached) error {
	switch so.project.publish {
	case publishNone:
		return nil
	case publishLocal:
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"publish.as is %s, which is said on GitHub: set GITHUB_TOKEN, or use --publish none, which leaves what the agent found in output.json.", so.job().Publish.As)
	}
	return in.speaker(so).Ready(ctx)
}

// say publishes the object that the agent gave.
func (in *invocation) say(ctx context.Context, so *reached) error {
	if so.project.publish == publishNone {
		return nil
	}
	raw, err := in.rec.Read(so.outFile)
	if err == nil {
		err = in.askOfWords(ctx, so, raw)
	}
	if err == nil {
		so.said, err = in.speaker(so).Say(ctx, raw)
	}
	return err
}

// goToHead puts the checkout on the head of the pull request that the run says
// something on. What configures the run was read from the base by now.
func (in *invocation) goToHead(ctx context.Context, event intake.Event, so *reached) (err error) {
	on := so.task.Subject
	so.workspace, so.assignment, err = in.standOn(ctx, so.assignment, event, so.workspace, gitops.BaseSpec{Branch: on.Pull.Head, SHA: on.HeadSHA})
	if err != nil {
		return err
	}
	return so.workspace.HasFolder(so.job().Repository.Path)
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
