package start

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// PreparePlace reads everything that the base commit configures, and checks whether the work is allowed and
// not done yet. It runs no command. It moves the workspace to the head of the person's branch, or of the
// pull request that the run comments on.
func (s *Start) PreparePlace(ctx context.Context, a *Assignment, ws *workspace.Workspace) (p *Place, err error) {
	newPlace := Place{configBase: ws.Base()}
	if err := s.readRulesAndAuthorities(ctx, &newPlace, a, ws); err != nil {
		return nil, err
	}
	if a, err = s.requireOpenTask(ctx, a, ws); err != nil {
		return nil, err
	}
	if newPlace.Skills, err = assembly.OfferSkills(s.Record, ws.Commit(), a.Job(), a.Model.Profile.ContextWindow); err != nil {
		return nil, err
	}
	lessons := proposals.Read(s.Record, s.Began, ws, a.Job(), a.Task.Title+"\n"+a.Task.Text)
	if newPlace.Guides, err = assembly.ReadGuides(ws.Commit(), a.Job().Repository.Path, s.Record.Warn); err != nil {
		return nil, err
	}
	headAssignment := *a
	if a.Task.WorksOnHead() { // from here on ws has the head's files, not the base's
		s.AbandonedBase = newPlace.configBase
		ws, headAssignment, err = s.moveToHead(ctx, headAssignment, ws)
	}
	newPlace.Assignment, newPlace.Workspace, newPlace.Lessons = &headAssignment, ws, lessons.Attach(ws, headAssignment.Job(), headAssignment.Task.Subject != nil)
	return s.registerPlace(newPlace), err // even with an error, the run's end needs the workspace
}

// requireOpenTask returns an outcome if the run may not work on the base, or if the task is done. It returns the
// assignment, of a repair with the next attempt.
func (s *Start) requireOpenTask(ctx context.Context, a *Assignment, ws *workspace.Workspace) (_ *Assignment, err error) {
	base := ws.Base()
	if err := a.Task.RequireBaseBranch(base.Branch, workspace.BaseName(base)); err != nil {
		return nil, err
	}
	if a.Repair != nil {
		if a, err = s.decideRepair(ctx, a, ws); err != nil {
			return nil, err
		}
	}
	if a.Task.Mode() == intake.Join && a.Project.Mode == publish.ToForge {
		s.Forge(a.Project, ws).ReportLostCommit(ctx, a.Task.Pull)
	}
	return a, a.Source.CheckNotDone(ctx, a.Task, base.Branch, base.SHA)
}

// decideRepair returns the assignment with the attempt to make and its remaining budget. It returns an
// outcome if there is nothing to fix or no further attempt is allowed, and says so on the pull request.
func (s *Start) decideRepair(ctx context.Context, a *Assignment, ws *workspace.Workspace) (*Assignment, error) {
	decided, err := a.Repair.Decide(ctx, a.Source, s.Env.RunLink(), a.Job().Repair)
	if err != nil {
		return a, err
	}
	remainingUSD := decided.RemainingUSD
	if a.Model.Profile.Price == nil {
		remainingUSD = 0 // without a price the remaining budget has no meaning
	}
	repairing := s.withSettings(*a, a.Settings.WithoutDrafts(remainingUSD), ws)
	repairing.Repair, repairing.Task.Repair = decided, &decided.Next
	s.Assignment = &repairing
	return &repairing, nil
}

// completeRecordedPlace completes the place of a recorded run: it reads rules, certificate authorities and
// guides from the base commit again.
func (s *Start) completeRecordedPlace(ctx context.Context, p Place, lessons *proposals.Lessons) (_ *Place, err error) {
	p.Lessons = lessons.Attach(p.Workspace, p.Job(), p.Task.Subject != nil)
	if err := s.readRulesAndAuthorities(ctx, &p, p.Assignment, p.Workspace); err != nil {
		return nil, err
	}
	p.Guides, err = assembly.ReadGuides(p.Workspace.Commit(), p.Job().Repository.Path, s.Record.Warn)
	return s.registerPlace(p), err
}

// registerPlace stores the place for the run's end, and returns it.
func (s *Start) registerPlace(p Place) *Place {
	s.Assignment, s.Workspace, s.Place = p.Assignment, p.Workspace, &p
	return &p
}

// readRulesAndAuthorities reads the rules on commands and the certificate authorities of hosts from the
// base commit. It also exempts texts of the base commit from redaction.
func (s *Start) readRulesAndAuthorities(ctx context.Context, p *Place, a *Assignment, ws *workspace.Workspace) (err error) {
	base := ws.Commit()
	if p.rules, err = settings.ReadRules(ctx, base, a.Job().Policy.Rules); err != nil {
		return err
	}
	if p.authorities, err = settings.ReadAuthorities(ctx, base, a.Job()); err == nil {
		s.Record.ExemptBase(ctx, ws.Checkout().BaseContainsText)
	}
	return err
}

// moveToHead sets the base to the tip of the person's branch that the run joins, or to the head of the pull
// request that it comments on. If the checkout lacks that commit, the run moves to a clone.
func (s *Start) moveToHead(ctx context.Context, a Assignment, ws *workspace.Workspace) (_ *workspace.Workspace, _ Assignment, err error) {
	head, err := a.pullHead(ctx)
	if err != nil {
		return ws, a, err
	}
	err = ws.SetBase(ctx, head)
	if errors.As(err, new(*gitops.UnknownBaseError)) && !ws.Cloned() { // a workflow's checkout usually has only one commit
		if ws, a, err = s.cloneRepository(ctx, a, a.Source.Event, ws); err != nil {
			return ws, a, err
		}
		err = ws.SetBase(ctx, head)
	}
	if err != nil {
		return ws, a, workspace.CheckoutFailure(err)
	}
	if a.Task.Mode() == intake.Join {
		a = s.withSettings(a, a.Settings.WithBranch(a.Task.Pull.Head).WithoutDrafts(0), ws)
	}
	return ws, a, ws.RequireFolder(a.Job().Repository.Path)
}

// pullHead returns the commit to work on: the tip of the person's branch that the run joins, or the head of the
// pull request that it comments on.
func (a *Assignment) pullHead(ctx context.Context) (gitops.BaseSpec, error) {
	if a.Task.Mode() != intake.Join {
		return gitops.BaseSpec{Branch: a.Task.Subject.PullRequest.Head, SHA: a.Task.Subject.HeadSHA}, nil
	}
	pull := a.Task.Pull
	tip, err := intake.LookUpBranch(ctx, a.Project.Forge.Repository(a.Source.Event.Repository), pull.Head)
	if err != nil {
		return gitops.BaseSpec{}, err
	}
	if tip == nil {
		return gitops.BaseSpec{}, outcome.Stopf(outcome.Skipped, "foreign_branch", "The branch %s of pull request #%d was deleted: %s.", pull.Head, pull.Number, pull.URL)
	}
	return gitops.BaseSpec{Branch: pull.Base, SHA: tip.SHA}, nil
}

// baseTree returns a function that makes the tree with the job's programs. The tree is that of the
// commit that configures the run: anyone may have written a pull request's head. A resumed run on a
// pull request does not know that commit, so its function returns an error.
func (p *Place) baseTree() func(ctx context.Context) (dir string, err error) {
	switch {
	case !p.Task.WorksOnHead():
		return p.Workspace.BaseTree()
	case p.configBase.Tree != "":
		return p.Workspace.FreshTreeOf(p.configBase)
	}
	return func(context.Context) (string, error) {
		return "", workspace.CannotResume("its job has programs of the commit that configured it (tools.dynamic, mcp_servers, hooks), and the transcript of a run on a pull request does not name that; start a new one")
	}
}
