package runner

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// enter makes the place of a new run. It finds obstacles to publishing before it runs any command. The
// base commit configures the run. Afterwards the workspace moves to the head of a person's branch, or
// of the pull request that the run comments on.
func (r *runner) enter(ctx context.Context, a *assignment, ws *workspace.Workspace) (p *place, err error) {
	base := ws.Base()
	newPlace := place{configBase: base}
	if err := r.readRules(ctx, &newPlace, a, ws); err != nil {
		return nil, err
	}
	if err := a.task.RequireBase(base.Branch, workspace.BaseName(base)); err != nil {
		return nil, err
	}
	if a.repair != nil {
		if a, err = r.decideRepair(ctx, a, ws); err != nil {
			return nil, err
		}
	}
	if a.task.Mode == intake.Join && a.project.Mode == publish.ToForge {
		r.forge(a.project, ws).ReportLostCommit(ctx, a.task.Pull)
	}
	if err := a.source.CheckNotDone(ctx, a.task, base.Branch, base.SHA); err != nil {
		return nil, err
	}
	if newPlace.skills, err = worker.OfferSkills(r.rec, ws.Commit(), a.job(), a.model.Profile.ContextWindow); err != nil {
		return nil, err
	}
	lessons := proposals.Read(r.rec, r.began, ws, a.job(), a.task.Title+"\n"+a.task.Text)
	if newPlace.guides, err = worker.ReadGuides(ws.Commit(), a.job().Repository.Path, r.rec.Warn); err != nil {
		return nil, err
	}
	headAssignment := *a
	if a.task.WorksOnHead() { // from here on ws has the head's files, not the base's
		r.end.abandonedBase = base
		ws, headAssignment, err = r.goToHead(ctx, headAssignment, ws)
	}
	newPlace.assignment, newPlace.workspace, newPlace.lessons = &headAssignment, ws, lessons.Attach(ws, headAssignment.job(), headAssignment.task.Subject != nil)
	return r.registerPlace(newPlace), err
}

// decideRepair stops a repair that has nothing to fix or is not allowed, with a post on the pull request.
// Otherwise it sets the run's cost limit.
func (r *runner) decideRepair(ctx context.Context, a *assignment, ws *workspace.Workspace) (*assignment, error) {
	decided, err := a.repair.Decide(ctx, a.source, r.env.RunLink(), a.job().Repair)
	if err != nil {
		return a, err
	}
	remainingUSD := decided.Plan.RemainingUSD
	if !a.model.Profile.Price.Known() {
		remainingUSD = 0 // without a price the remaining budget has no meaning
	}
	repairing := r.withSettings(*a, a.settings.WithoutDrafts(remainingUSD), ws)
	repairing.repair, repairing.task.Repair = decided, &decided.Plan.Attempt
	r.end.assignment = &repairing
	return &repairing, nil
}

// recall completes the place of a recorded run. It reads the configuration from the base again.
func (r *runner) recall(ctx context.Context, p place, lessons *proposals.Lessons) (_ *place, err error) {
	p.lessons = lessons.Attach(p.workspace, p.job(), p.task.Subject != nil)
	if err := r.readRules(ctx, &p, p.assignment, p.workspace); err != nil {
		return nil, err
	}
	p.guides, err = worker.ReadGuides(p.workspace.Commit(), p.job().Repository.Path, r.rec.Warn)
	return r.registerPlace(p), err
}

// registerPlace stores the place for the run's end, and returns it.
func (r *runner) registerPlace(p place) *place {
	r.end.assignment, r.end.workspace, r.end.place = p.assignment, p.workspace, &p
	return &p
}

// readRules reads the rules on commands and the certificate authorities of hosts from the base commit. It
// also tells the record that parts of secrets that occur in the base's text need no redaction.
func (r *runner) readRules(ctx context.Context, p *place, a *assignment, ws *workspace.Workspace) (err error) {
	base := ws.Commit()
	if p.rules, err = settings.ReadRules(ctx, base, a.job().Policy.Rules); err != nil {
		return err
	}
	if p.authorities, err = settings.ReadAuthorities(ctx, base, a.job()); err == nil {
		r.rec.ExemptBase(ctx, ws.Checkout().BaseContainsText)
	}
	return err
}

// goToHead sets the base to the tip of the person's branch that the run joins, or to the head of the
// pull request that it comments on. If the checkout lacks that commit, the run works in a clone.
func (r *runner) goToHead(ctx context.Context, a assignment, ws *workspace.Workspace) (_ *workspace.Workspace, _ assignment, err error) {
	head, err := a.pullHead(ctx)
	if err != nil {
		return ws, a, err
	}
	err = ws.SetBase(ctx, head)
	if errors.As(err, new(*gitops.UnknownBaseError)) && !ws.Cloned() { // a workflow's checkout usually has only one commit
		if ws, a, err = r.clone(ctx, a, a.source.Event, ws); err != nil {
			return ws, a, err
		}
		err = ws.SetBase(ctx, head)
	}
	if err != nil {
		return ws, a, workspace.CheckoutFailure(err)
	}
	if a.task.Mode == intake.Join {
		a = r.withSettings(a, a.settings.WithBranch(a.task.Pull.Head).WithoutDrafts(0), ws)
	}
	return ws, a, ws.RequireFolder(a.job().Repository.Path)
}

// pullHead returns the commit to work on: the tip of the person's branch that the run joins, or the head of the
// pull request that it comments on.
func (a *assignment) pullHead(ctx context.Context) (gitops.BaseSpec, error) {
	if a.task.Mode != intake.Join {
		return gitops.BaseSpec{Branch: a.task.Subject.Pull.Head, SHA: a.task.Subject.HeadSHA}, nil
	}
	pull := a.task.Pull
	tip, err := intake.LookUpBranch(ctx, a.project.Forge.Repository(a.source.Event.Repository), pull.Head)
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
func (p *place) baseTree() func(ctx context.Context) (dir string, err error) {
	switch {
	case !p.task.WorksOnHead():
		return p.workspace.BaseTree()
	case p.configBase.Tree != "":
		return p.workspace.FreshTreeOf(p.configBase)
	}
	return func(context.Context) (string, error) {
		return "", workspace.CannotResume("its job has programs of the commit that configured it (tools.dynamic, mcp_servers, hooks), and the transcript of a run on a pull request does not name that; start a new one")
	}
}
