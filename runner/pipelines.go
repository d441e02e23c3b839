package runner

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/bundle"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/skills"
	"github.com/agent-ci/agent-ci/runner/team"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// run is a run from its event to its outcome. A nil error means that the stages
// left the outcome to finish, which reads it off what was reached.
func (in *invocation) run(ctx context.Context, so *reached) error {
	event, err := in.event(ctx)
	if err != nil {
		return err
	}
	ws, noCheckout := in.openHere(ctx, event.Base())
	ws, noCheckout = in.leaveOther(event, ws, noCheckout)
	if so.workspace = ws; noCheckout != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if so.settings, err = in.configure(ctx, ws); err != nil {
		return err
	}
	if err := in.inTime(ctx, so.job().Limits, func(ctx context.Context) error { return in.takeOn(ctx, event, so, noCheckout) }); err != nil {
		return err
	}
	// A clone may have brought other settings, and so another limit of time.
	return in.inTime(ctx, so.job().Limits, func(limited context.Context) error {
		if err := in.makeReady(limited, event, so); err != nil {
			return err
		}
		return in.work(limited, ctx, so, 0)
	})
}

// takeOn finds out what the run is to do, and makes sure that there is a checkout of
// the right repository, clean and on its base commit.
func (in *invocation) takeOn(ctx context.Context, event intake.Event, so *reached, noCheckout error) (err error) {
	if so.assignment, err = in.assign(ctx, event, so.settings, so.workspace, assignment{}); err != nil {
		return err
	}
	if in.wantsClone(so.assignment, so.workspace, noCheckout) {
		asked := so.assignment
		if so.workspace != nil {
			so.left = so.workspace.Base()
			if asked.job().Repository.Name == "" {
				in.tellElsewhere(asked.project.name(), intake.NameInURL(so.workspace.Checkout().Origin(), asked.project.serverURL), so.workspace)
			}
		}
		cloned, set, err := in.clone(ctx, asked, event, so.workspace)
		if so.workspace = cloned; set != nil {
			so.assignment = in.by(asked, set, cloned)
		}
		if err != nil {
			return err
		}
		// Whom to listen to is the repository's to say.
		if !reflect.DeepEqual(asked.settings.Job, set.Job) {
			if so.assignment, err = in.assign(ctx, event, set, cloned, asked); err != nil {
				return err
			}
		} else if err := in.checkReady(ctx, cloned, set); err != nil { // what the commit has was not known
			return err
		}
	}
	if so.workspace == nil {
		return workspace.CheckoutFailure(noCheckout)
	}
	return so.workspace.Prepare(ctx, so.preparation())
}

// makeReady does what comes before the agent: what would keep a change from being
// published is found now, commands are confined, the first events are written, and
// the agent is told of its task.
func (in *invocation) makeReady(ctx context.Context, event intake.Event, so *reached) error {
	by, err := in.readRules(ctx, so)
	if err != nil {
		return err
	}
	base := so.workspace.Base()
	if err := so.task.FitsBase(base.Branch, workspace.BaseName(base)); err != nil {
		return err
	}
	if err := in.decideRepair(ctx, so); err != nil {
		return err
	}
	if err := so.source.NotDone(ctx, so.task, base.Branch, base.SHA); err != nil {
		return err
	}
	if err := in.findSkills(so); err != nil {
		return err
	}
	in.remember(so)
	var guides []agent.Guide
	if so.task.OnHead() { // after that the base's are not here
		if guides, err = in.readGuides(so); err != nil {
			return err
		}
	}
	switch {
	case so.task.Mode == intake.Join:
		so.left = base
		so.workspace, so.assignment, err = in.joinBranch(ctx, so.assignment, event, so.workspace)
	case so.task.OnHead():
		so.left = base
		err = in.goToHead(ctx, event, so)
	}
	if err != nil {
		return err
	}
	if err := in.preparePublishing(ctx, so); err != nil {
		return err
	}
	if err := in.confine(ctx, so, by); err != nil {
		return err
	}
	if err := in.readyHooks(ctx, so, hooks.Answers{}); err != nil {
		return err
	}
	if err := in.begin(so); err != nil {
		return err
	}
	if err := so.recordMemory(); err != nil {
		return err
	}
	in.showProgress(ctx, so)
	if err := in.beginRepair(ctx, so); err != nil {
		return err
	}
	if err := so.startHooks(ctx); err != nil {
		return err
	}
	if !so.task.OnHead() {
		if guides, err = in.readGuides(so); err != nil {
			return err
		}
	}
	if err := in.makeAgent(ctx, so, in.people(so)); err != nil {
		return err
	}
	if err := in.setUpAndBrief(ctx, so, guides); err != nil {
		return err
	}
	return in.layEarlierChange(ctx, so, event)
}

// setUpAndBrief runs the setup commands and the checks on the base, and tells the
// agent of the task.
func (in *invocation) setUpAndBrief(ctx context.Context, so *reached, guides []agent.Guide) (err error) {
	if err := so.checks().Applies(ctx); err != nil {
		return err
	}
	if err := so.checks().SetUp(ctx); err != nil {
		return err
	}
	so.kept = in.keptBaselines(so)
	if so.baseline, err = so.checks().Baseline(ctx); err != nil {
		return err
	}
	so.table = so.baseline
	return in.brief(ctx, so, guides)
}

// work lets the agent work until its change is verified, and publishes the change,
// also when the time of the run is over and the job wants its work all the same.
// attempts is how many of verification are over.
func (in *invocation) work(ctx, whole context.Context, so *reached, attempts int) error {
	if err := in.workUntilVerified(ctx, whole, so, attempts); err != nil {
		return err
	}
	if err := so.askOutput(ctx); err != nil {
		return err
	}
	if err := so.hooks.Fired(); err != nil {
		return err
	}
	return inGrace(ctx, whole, func(ctx context.Context) error { return in.publishChange(ctx, so) })
}

// resume is a run from where it was. A run whose time is over goes on too, to what is
// done with its work.
func (in *invocation) resume(ctx context.Context, h *history, so *reached, left *departure) error {
	guides, err := in.reenter(ctx, h, so, left)
	if err != nil {
		return outcome.Of(ctx, err)
	}
	return in.inTime(ctx, so.job().Limits, func(limited context.Context) error {
		if err := in.backToWork(limited, h, so, guides); err != nil {
			return err
		}
		return in.work(limited, ctx, so, h.Work.Attempts)
	})
}

// reenter opens what the run worked with, writes that the run goes on, and makes its
// agent.
func (in *invocation) reenter(ctx context.Context, h *history, so *reached, left *departure) (guides []agent.Guide, err error) {
	if err := in.holdResumed(ctx, h); err != nil {
		return nil, err
	}
	if so.model, err = in.findModel(ctx, so.job(), h.scripted); err != nil {
		return nil, err
	}
	so.model.Profile.Price = h.Started.Price // as the run began, whatever was learned since
	n := in.naming(so.job(), in.around(), nil)
	n.Recorded = h.Workspace.Repository
	if so.project, err = in.findProject(n); err != nil {
		return nil, err
	}
	if err := confine.EndLeft(ctx, in.rec.Directory); err != nil {
		return nil, err
	}
	if so.workspace, so.found, err = workspace.Resume(ctx, in.rec, workspace.Options{Dir: in.dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters(), Filters: so.job().Git.Listed()}, h.earlier()); err != nil {
		return nil, err
	}
	if so.skills, err = skills.Kept(in.rec.Directory, h.Skills); err != nil {
		return nil, workspace.CannotResume("%v; start a new run", err)
	}
	so.workTree = h.workTree(so.found)
	if !h.worked() { // else its images are in the conversation
		so.source = in.intakeSource(intake.Event{}, so.settings, so.workspace)
		so.source.Forge, so.source.To = so.project.forge, so.project.to
	}
	by, err := in.readRules(ctx, so)
	if err != nil {
		return nil, err
	}
	if err := in.confine(ctx, so, by); err != nil {
		return nil, err
	}
	if err := in.preparePublishing(ctx, so); err != nil {
		return nil, err
	}
	if h.job.Task.OutputSchema != "" || h.job.Publish.Feedback() {
		if so.output, err = settings.ParseOutputSchema(h.Started.OutputSchema); err != nil {
			return nil, err
		}
	}
	if err := in.readyHooks(ctx, so, h.hooked()); err != nil {
		return nil, err
	}
	if err := h.sameOperators(so.hooks); err != nil {
		return nil, err
	}
	if err := in.recordResumed(h, so, left); err != nil {
		return nil, err
	}
	if err := in.recordHooks(so); err != nil {
		return nil, err
	}
	in.showProgressAgain(ctx, h, so)
	if err := so.startHooks(ctx); err != nil {
		return nil, err
	}
	if guides, err = in.readGuides(so); err != nil {
		return nil, err
	}
	so.agents = h.Agents
	if err := team.Resume(in.rec, so.boxes, so.agents); err != nil { // also of one that the record has no word of yet
		return nil, err
	}
	return guides, in.makeAgent(ctx, so, in.people(so))
}

// backToWork makes checkout and conversation what they were when the run was stopped.
func (in *invocation) backToWork(ctx context.Context, h *history, so *reached, guides []agent.Guide) (err error) {
	if !h.worked() {
		err = in.setUpAndBrief(ctx, so, guides)
	} else if so.baseline, err = h.baseline(); err == nil {
		so.table, so.kept = so.baseline, in.keptBaselines(so)
		err = in.brief(ctx, so, guides)
	}
	if err != nil {
		return err
	}
	if err := so.agent.GoOn(h.returned(so.found)); err != nil {
		return err
	}
	if so.goesOn = h.worked(); !so.goesOn {
		return nil
	}
	return so.moveIn(ctx, h)
}

// replay is a run up to the end of its work, whose model says what one said before.
// repository is what the run was for; empty where that was not known.
func (in *invocation) replay(ctx context.Context, repository string, answers *recordedAnswers, so *reached) error {
	return in.inTime(ctx, so.job().Limits, func(limited context.Context) (err error) {
		if so.model, err = answers.model(so.job(), in.rec.Warn); err != nil {
			return err
		}
		n := in.naming(so.job(), in.around(), so.workspace)
		n.Recorded = repository
		if so.project, err = in.findProject(n); err != nil {
			return err
		}
		by, err := in.readRules(limited, so)
		if err != nil {
			return err
		}
		if err := in.confine(limited, so, by); err != nil {
			return err
		}
		so.hooks = answers.hooks
		if err := in.begin(so); err != nil {
			return err
		}
		if err := so.recordMemory(); err != nil {
			return err
		}
		if err := so.startHooks(limited); err != nil {
			return err
		}
		guides, err := in.readGuides(so)
		if err != nil {
			return err
		}
		if err := in.makeAgent(limited, so, answers.people()); err != nil {
			return err
		}
		if err := in.setUpAndBrief(limited, so, guides); err != nil {
			return err
		}
		if err := in.workUntilVerified(limited, ctx, so, 0); err != nil {
			return err
		}
		if err := so.hooks.Fired(); err != nil {
			return err
		}
		return in.judge(limited, so)
	})
}

// publishBundle is the second half of a run that was made elsewhere. The bundle is
// there beside an error as far as it was opened.
func (in *invocation) publishBundle(ctx context.Context, so *reached) (b bundle.Bundle, err error) {
	b, err = bundle.Open(ctx, in.rec, in.env.Token() != "")
	if err = cmp.Or(publishesChange(b), err); err != nil {
		return b, err
	}
	if so.workspace, err = workspace.Open(ctx, in.rec, workspace.Options{Dir: cmp.Or(in.dir, "."), Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()}); err != nil {
		return b, workspace.CheckoutFailure(err)
	}
	half := bundle.Half{
		Record: in.rec, Workspace: so.workspace, Source: in.source, Event: intake.ReadEvent(ctx, surroundings(in.env)),
		Forge: func(j *job.Job) (to publish.Forge, err error) {
			so.project, err = in.findProject(in.naming(j, in.around(), so.workspace))
			return in.onForge(so.project, so.workspace), err
		},
	}
	to, p, err := half.Propose(ctx, b)
	if so.adopt(p); p.RunID != "" {
		so.told.Plan = b.View.Plan
	}
	if err != nil {
		return b, err
	}
	p.Follow.Judge, p.Follow.Onto, p.LessonsIn = in.judging(so), so.onto, so.toldIn
	so.recall(in.rec, b.View)
	if !p.Change.Empty() {
		if err := p.Follow.Judge(ctx, p.Job, p.Change); err != nil {
			return b, err
		}
	}
	if !p.Change.Empty() {
		if err := in.hooksOfBundle(ctx, so, b, &p); err != nil {
			return b, err
		}
	}
	so.out = new(publish.Publication)
	if err := publish.Publish(ctx, to, p, so.out); err != nil {
		return b, err
	}
	in.proposeAlone(ctx, so, to, p)
	if !p.Change.Empty() {
		return b, nil
	}
	stop := b.NothingToPublish()
	stop.Message += so.out.OpenSentence()
	return b, stop
}

// confine finds out how commands can be confined, before anything is run or asked, and what they work in.
func (in *invocation) confine(ctx context.Context, so *reached, by *rules.Set) error {
	so.boxes = &confine.Sandboxes{
		Record: in.rec, Environ: in.env, Job: so.job(), Rules: by, Root: so.workspace.Root(), Dir: in.dir,
		Used: so.used, LeaveOut: so.workspace.LeaveOut, Known: so.workspace.Hidden(), NoOverlay: so.workspace.NoOverlay, Found: so.workTree,
		Lend: so.workspace.Checkout().LentObjects, MakeGit: so.workspace.MakeGit, CopyTree: so.workspace.CopyTree,
		Authorities: so.authorities, BaseTree: so.baseTree(), Hooked: len(so.job().Hooks) > 0 || in.operator != "",
	}
	so.trialCommit = in.trialCommit(so)
	if err := in.takeCredentials(ctx, so); err != nil {
		return err
	}
	if err := settings.CheckServerSecrets(in.env, so.job()); err != nil {
		return err
	}
	in.watch.Mask(slices.DeleteFunc(settings.ServerSecrets(in.env, so.job()), func(v secrets.Value) bool { return len(v.Secret) < secrets.MinLength }))
	if err := so.boxes.Confine(ctx); err != nil {
		return err
	}
	if err := so.useFilters(ctx); err != nil {
		return err
	}
	if err := so.useTree(ctx); err != nil {
		return err
	}
	if err := so.boxes.ConfineOthers(ctx); err != nil {
		return err
	}
	if unused := so.boxes.UnusableSecrets(); len(unused) > 0 {
		in.rec.Warn("secret_unused", "No command has the secret %s (policy.secrets): see its commands, and whether there are such with a network of the proxy.", strings.Join(unused, ", "))
	}
	return nil
}

// takeCredentials reads the values of the job's secrets, and keeps them out of all that the
// run writes from here on.
func (in *invocation) takeCredentials(ctx context.Context, so *reached) (err error) {
	if so.boxes.Credentials, err = settings.ReadCredentials(ctx, in.env, so.job()); err != nil || len(so.boxes.Credentials) == 0 {
		return err
	}
	values := settings.CredentialSecrets(so.boxes.Credentials)
	in.rec.KeepOut(append(settings.Secrets(in.env, so.job()), values...))
	in.rec.SpareBase(ctx, so.workspace.Checkout().BaseHolds)
	in.watch.Mask(values)
	return nil
}

// layEarlierChange puts the change of a run's pull request into the checkout, as if
// the agent had made it: configuration and checks stay those of the base. It comes
// after the baseline, and counts as part of the change.
func (in *invocation) layEarlierChange(ctx context.Context, so *reached, event intake.Event) error {
	if so.task.Mode != intake.Continue {
		return nil
	}
	from := so.project.forge.Repository(event.Repository)
	laid, err := in.onForge(so.project, so.workspace).EarlierChange(ctx, from, so.task.Pull, so.workspace.Base(), so.takeEarlierLessons)
	if err != nil || laid == nil {
		return err
	}
	so.earlier = laid.Change
	if err := so.workspace.LayOver(ctx, laid.Change); err != nil {
		return fmt.Errorf("go on with pull request #%d: %w", so.task.Pull.Number, err)
	}
	if laid.Clean() {
		so.laidAlone = so.red != nil && so.red.Clashes && len(so.red.Red) == 0
		return nil
	}
	in.rec.Warn("base_conflicts", "%s moved since pull request #%d was made, and the two conflict in %s; the agent was asked to merge them.",
		workspace.BaseName(so.workspace.Base()), so.task.Pull.Number, laid.Names())
	return so.agent.Tell(laid.Words())
}
