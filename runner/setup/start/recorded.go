package start

import (
	"cmp"
	"context"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/access"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// AdoptTranscript returns the assignment in a resumed run's transcript. It sets the run's id, clock,
// secrets and totals from it.
func (s *Start) AdoptTranscript(h *history.Run) Assignment {
	req := s.Assignment.Request
	req.ResumedRun, req.Publish = h, h.Started.Publish
	if h.Foreign {
		req.Dir = cmp.Or(req.Dir, ".") // the folder recorded on another machine has no meaning here
	}
	a := *recordedAssignment(h, req)
	s.Record.ID, s.Began = h.Started.RunID, time.Now().Add(-h.Elapsed)
	s.Record.SetSecrets(settings.Secrets(s.Env, a.Job()))
	s.Record.ContinueWarnings(h.Warnings)
	s.Watch.InitStatus(h.View, a.Job().Limits.CostUSD, a.Job().Limits.Tokens)
	s.Assignment = &a
	return a
}

// ResumePlace makes a resumed run's place from its record and the checkout.
func (s *Start) ResumePlace(ctx context.Context, a Assignment) (_ *Place, err error) {
	h := a.ResumedRun
	if h.Foreign {
		if err := h.RefuseExcessOnResume(ctx, s.Source, s.Record, s.CheckoutOptions(a.Dir)); err != nil {
			return nil, err
		}
	}
	if a.Model, err = access.Find(ctx, a.Job(), a.Script, h.ScriptedTurns, s.Env, s.Version, s.Record); err != nil {
		return nil, err
	}
	a.Model.Profile.Price = h.Started.Price // keep the price of the run's start
	if a.Project, err = s.recordedProject(&a, h); err != nil {
		return nil, err
	}
	if err := confine.KillLeftovers(ctx, s.Record.Directory); err != nil {
		return nil, err
	}
	p := Place{Assignment: &a}
	from := s.CheckoutOptions(a.Dir)
	from.Filters = a.Job().Git.FilterReads()
	p.Workspace, h.WorkPlace, err = workspace.Resume(ctx, s.Record, from, h.WorkspaceState())
	s.Workspace = p.Workspace
	if err != nil {
		return nil, err
	}
	if p.Skills, err = skills.ReadOffer(s.Record.Directory, h.Skills); err != nil {
		return nil, workspace.CannotResume("%v; start a new run", err)
	}
	if !h.AgentBegan() { // if the agent worked, its images are in the conversation already
		a.Source = s.intakeSource(intake.Event{}, a.Request, a.Settings, p.Workspace)
		a.Source.Forge, a.Source.Target = a.Project.Forge, a.Project.Repo
	}
	if h.Job.Task.OutputSchema != "" || h.Job.Publish.IsFeedback() {
		if a.OutputSchema, err = settings.ParseOutputSchema(h.Started.OutputSchema); err != nil {
			return nil, err
		}
	}
	return s.completeRecordedPlace(ctx, p, proposals.FromRecord(s.Record, h.View))
}

// NewReplayPlace returns the place of a replay. CompleteReplayPlace adds the base commit's configuration.
func (s *Start) NewReplayPlace(original *replay.Original, tree *workspace.Workspace) (p Place, err error) {
	req := s.Assignment.Request
	if req.Recording, err = original.ReadRecording(s.Record, tree); err == nil {
		req.Tools, err = extensions.ReplayEmbedded(original.Record.Directory, &req.Recording.Calls)
	}
	if err != nil {
		return p, err
	}
	p = Place{Assignment: recordedAssignment(original.Run, req), Workspace: tree}
	p.Project.Mode = publish.Nowhere
	if p.Skills, err = skills.ReadOffer(original.Record.Directory, original.Skills); err != nil {
		return p, err
	}
	s.registerPlace(p)
	return p, nil
}

// CompleteReplayPlace completes the place of a replay, with a model that repeats the recorded answers.
func (s *Start) CompleteReplayPlace(ctx context.Context, p Place, h *history.Run) (_ *Place, err error) {
	a := *p.Assignment
	if a.Model, err = a.Recording.Answers.Model(a.Job(), s.Record.Warn); err != nil {
		return nil, err
	}
	if a.Project, err = s.recordedProject(&a, h); err != nil {
		return nil, err
	}
	p.Assignment = &a
	return s.completeRecordedPlace(ctx, p, proposals.FromRecord(s.Record, h.View).ForReplay())
}
