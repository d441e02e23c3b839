package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/judge"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/team"
	"github.com/agent-ci/agent-ci/runner/verify"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools/question"
)

// preparePublishing makes sure, before the first turn, that a change could be
// published: what stands in the way is cheaper to learn now.
func (in *invocation) preparePublishing(ctx context.Context, so *reached) (err error) {
	if so.task.Subject != nil {
		return in.prepareSpeaking(ctx, so)
	}
	to := in.destination(so.project, so.workspace)
	if to == nil {
		return nil
	}
	// The user of a task from an issue most likely expects a pull request.
	if in.publish == "" && so.project.publish == publishLocal && so.task.Issue != nil {
		return noTokenForIssue()
	}
	if local, is := to.(publish.Local); is && in.publish == "" && in.env.Token() != "" {
		if err := local.KnowsOrigin(ctx, so.task.Branch); err != nil {
			return err
		}
	}
	so.key, err = publish.Prepare(ctx, to, so.task.Branch, so.workspace.Base(), so.job())
	return err
}

func noTokenForIssue() *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "no_token",
		"A task from an issue ends in a pull request, which needs GITHUB_TOKEN; set it, or say --publish local to commit here only.")
}

// readRules reads the rules on commands, and the authorities of hosts, from the base
// commit, whose text is not taken for a part of a secret from here on.
func (in *invocation) readRules(ctx context.Context, so *reached) (*rules.Set, error) {
	base := so.workspace.Commit()
	set, err := settings.ReadRules(ctx, base, so.job().Policy.Rules)
	if err == nil {
		so.authorities, err = settings.ReadAuthorities(ctx, base, so.job())
	}
	if err == nil {
		in.rec.SpareBase(ctx, so.workspace.Checkout().BaseHolds)
	}
	return set, err
}

// showProgress puts a comment where an event asked for the run, once nothing stands
// in the way of its work. It takes over the comment of an earlier run.
func (in *invocation) showProgress(ctx context.Context, so *reached) {
	if so.task.ProgressOn == 0 || so.project.publish != publishGitHub {
		return
	}
	on := progress.Thread{
		Repository: so.project.forge.Repository(in.env.Get("GITHUB_REPOSITORY")), Number: so.task.ProgressOn, Pages: progress.Pages{Run: in.env.RunLink(), Artifacts: in.env.Artifacts()},
	}
	if earlier := intake.OwnProgress(ctx, so.project.forge, so.task.ProgressLike); earlier != nil {
		on.Earlier = earlier.ID
	}
	in.watch.Comment(ctx, on)
}

// readGuides reads the guides of the base commit for the agent.
func (in *invocation) readGuides(so *reached) ([]agent.Guide, error) {
	return worker.ReadGuides(so.workspace.Commit(), so.job().Repository.Path, in.rec.Warn)
}

// makeAgent makes the agent, which has been told nothing yet. ask puts its questions to people.
func (in *invocation) makeAgent(ctx context.Context, so *reached, ask asking) (err error) {
	if err := in.keepEmbedded(so.job()); err != nil {
		return err
	}
	options := in.agentOptions(so, ask)
	if !so.job().Agents.Enabled || so.model.Of == nil {
		so.agent, err = worker.New(ctx, options)
		return err
	}
	so.team = team.New(options, so.agents, so.waits)
	options.Team, options.News = so.team.Root(), so.team.Root().News
	so.agent, err = worker.New(ctx, options)
	so.team.Root().Lead(so.agent)
	return err
}

// agentOptions say who the agent is. ask puts its questions to people.
func (in *invocation) agentOptions(so *reached, ask asking) worker.Options {
	return worker.Options{
		Record: in.rec, Workspace: so.workspace, Sandboxes: so.boxes, Job: so.job(), Model: so.model, Began: in.began, Ask: ask,
		Hooks: so.hooks, Recorded: so.recorded, Before: so.before, Skills: so.skills, Tools: in.tools, ScriptEngine: in.engine, Memory: so.learnt.memory, TakeLesson: so.proposer(),
	}
}

// asking puts all questions of a run to people; nil where there are none.
type asking = func(ctx context.Context, all []question.Question) error

// people are those to whom the agent puts questions.
func (in *invocation) people(so *reached) asking {
	if so.job().Task.Questions != "ask" || so.task.Issue == nil || in.env.Token() == "" {
		return nil
	}
	return (&worker.IssuePeople{Forge: so.project.forge, Issue: *so.task.Issue, Redact: in.rec.Redact}).Ask
}

// brief tells the agent of its task. A record has the images of one in its
// conversation.
func (in *invocation) brief(ctx context.Context, so *reached, guides []agent.Guide) error {
	briefing := agent.Briefing{Guides: guides, Added: so.added, Task: agent.Task{Source: so.task.Name, Title: so.task.Title, Text: so.task.Text}}
	if !so.task.OnHead() {
		var err error
		if briefing.Further, err = worker.FurtherGuides(ctx, so.workspace.Checkout(), so.job().Repository.Path); err != nil {
			return err
		}
	}
	if so.source != nil {
		briefing.Task.Images, briefing.Task.Missing = so.source.Images(ctx, so.task)
	}
	return so.agent.Brief(briefing, so.baseline.Rows)
}

// workUntilVerified lets the agent work, takes the change set and verifies it.
// An end that looks too early is pointed out once, a red row goes back to the
// agent verify_attempts times. Work that a budget ended is verified and kept:
// limits.time ends the agent's work, and no check that has a time limit of its own.
func (in *invocation) workUntilVerified(ctx, whole context.Context, so *reached, attempts int) error {
	defer so.agent.Close()
	if done, err := so.followRecipe(ctx, whole, attempts); err != nil || done {
		return err
	}
	for attempt := attempts + 1; ; {
		laid := so.laidAlone // which nobody has to be paid for, unless the checks are red
		so.laidAlone = false
		work := so.agent.Work()
		if !laid {
			var err error
			work, err = so.agent.Run(ctx)
			if so.stopped = work.Stopped; err != nil {
				return err
			}
		}
		if err := inGrace(ctx, whole, so.takeChange); err != nil {
			return err
		}
		so.noteTime(ctx, whole)
		if err := work.WithoutAnswers(so.task.Issue); err != nil {
			return err
		}
		if laid && so.change.Empty() { // the base has all of it
			break
		}
		if nudged, err := so.nudge(); err != nil || nudged {
			if err != nil {
				return err
			}
			continue
		}
		if refused, err := in.giveBackRefused(ctx, whole, so); err != nil || refused {
			if err != nil {
				return err
			}
			continue
		}
		if so.change.Empty() || len(so.job().Verify) == 0 || whole.Err() != nil {
			break
		}
		if err := so.verify(ctx, whole, attempt); err != nil {
			return err
		}
		so.noteTime(ctx, whole)
		if told, err := so.giveBackUnproven(attempt); err != nil {
			return err
		} else if told {
			attempt++
			continue
		}
		if so.table.Passed || so.stopped != nil || attempt > so.job().VerifyAttempts {
			break
		}
		if so.stopped = so.agent.NearlySpent(); so.stopped != nil {
			break
		}
		if err := so.giveBack(); err != nil {
			return err
		}
		attempt++
	}
	if !so.change.Empty() {
		if err := so.tellUnshown(so.change); err != nil {
			return err
		}
	}
	return so.stoppedUnlessDraft()
}

// takeChange takes what the agent changed, and keeps it. Protected paths are put back
// where the job wants them left out.
func (so *reached) takeChange(ctx context.Context) error {
	change, err := so.workspace.TakeChange(ctx, func(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
		change, err := so.inExactBytes(ctx, change)
		if err != nil {
			return change, err
		}
		found, err := so.lessonsIn(change)
		if err != nil {
			return change, err
		}
		var written []string
		if found.ours { // its evidence may be gone: it is written anew below
			written = []string{lessons.Path}
		}
		verdict, err := judge.Verdict(so.job().Policy, change, written)
		if so.dropped = verdict.Drop; err == nil && len(verdict.Drop) > 0 {
			change, err = so.workspace.PutBack(ctx, change, verdict.Drop)
		}
		if err != nil {
			return change, err
		}
		return so.withLessons(ctx, change)
	})
	if change != nil {
		so.change = change
	}
	return err
}

// nudge points out an end that looks too early.
func (so *reached) nudge() (bool, error) {
	if so.stopped != nil {
		return false, nil
	}
	return so.agent.Nudge(so.change.Empty(), workspace.LeftBehind(so.change))
}

// giveBackRefused tells the agent, once, why its change may not be published, and says
// whether it did. Checks are not run on a change that is refused; of work that a
// budget ended only the size is in their way.
func (in *invocation) giveBackRefused(ctx, whole context.Context, so *reached) (bool, error) {
	if so.change.Empty() {
		return false, nil
	}
	err := inGrace(ctx, whole, in.judged(so, so.job(), so.change).Refusal)
	stop := (*outcome.Stop)(nil)
	if !errors.As(err, &stop) {
		return false, err
	}
	if stop.Outcome != outcome.BudgetExceeded && so.stopped != nil {
		return false, nil
	}
	if so.job().VerifyAttempts > 0 && so.stopped == nil {
		if told, failed := so.agent.Refused(stop.Message); failed != nil || told {
			return told, failed
		}
	}
	return false, stop
}

// giveBackUnproven tells the agent, once, which tests of its change prove nothing, and
// says whether it did.
func (so *reached) giveBackUnproven(attempt int) (bool, error) {
	if !so.table.Passed || so.stopped != nil || attempt > so.job().VerifyAttempts {
		return false, nil
	}
	words := verify.UnprovenWords(so.table)
	if words == "" {
		return false, nil
	}
	return so.agent.Unproven(words)
}

// giveBack tells the agent which checks are red.
func (so *reached) giveBack() error {
	words, err := so.checks().Words(so.table, worker.StoppedWords)
	if err != nil {
		return err
	}
	return so.agent.Tell(words)
}

// judge refuses a change that may not be published, and work of which nothing can be
// part of a change.
func (in *invocation) judge(ctx context.Context, so *reached) error {
	if so.change.Empty() {
		return in.judged(so, so.job(), so.change).LeftOut()
	}
	return in.judged(so, so.job(), so.change).Judge(ctx)
}

func (in *invocation) judged(so *reached, j *job.Job, change *gitops.ChangeSet) judge.Case {
	checkout := so.workspace.Checkout()
	return judge.Case{Record: in.rec, Job: j, Change: change, Blob: checkout.Blob, Kept: checkout.OpenLFS, Unfiltered: checkout.Unfiltered, Written: so.writtenHere, Repairs: so.repaired()}
}

// judging judges a change that follows its base.
func (in *invocation) judging(so *reached) func(context.Context, *job.Job, *gitops.ChangeSet) error {
	return func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
		return in.judged(so, j, change).Judge(ctx)
	}
}

// publishChange commits, pushes and opens the pull request, as far as the
// destination goes.
func (in *invocation) publishChange(ctx context.Context, so *reached) error {
	if err := in.judge(ctx, so); err != nil {
		return err
	}
	if err := so.keepsTests(); err != nil {
		return err
	}
	if so.task.Repair != nil && !so.change.Empty() {
		if err := so.source.StillRepairs(ctx, so.task.Pull.Number); err != nil {
			return err
		}
	}
	if so.task.Subject != nil {
		return in.say(ctx, so)
	}
	to := in.destination(so.project, so.workspace)
	if to == nil {
		return nil
	}
	so.out = new(publish.Publication)
	p := in.proposal(so)
	if err := publish.Publish(ctx, to, p, so.out); err != nil {
		return err
	}
	in.proposeAlone(ctx, so, to, p)
	return nil
}

// proposal is the change with all that is told of it.
func (in *invocation) proposal(so *reached) publish.Proposal {
	_, cost := so.spent()
	summary := so.work().Summary
	if summary == "" && so.task.Repair != nil {
		summary = fmt.Sprintf("The change was laid over %s, as that is by now.", so.workspace.Base().Branch)
	}
	p := publish.Proposal{
		Cost: cost, RunID: in.rec.ID, Job: so.job(), Task: so.task, Base: so.workspace.Base(), Change: so.change, Table: so.table,
		Summary: summary, Stopped: so.stopped, Key: so.key, InCheckout: so.change, Committed: so.committed,
		Follow: publish.Follow{Judge: in.judging(so), Onto: so.onto}, Ask: in.askOfDraft(so),
	}
	if so.boxes != nil && so.stopped == nil {
		p.Follow.Verify = so.checks().OnNewBase
	}
	return p
}

// trialCommit gives checks the commit of a change as it would be published.
func (in *invocation) trialCommit(so *reached) func(base gitops.Base, when time.Time) (gitops.CommitOptions, error) {
	return func(base gitops.Base, when time.Time) (gitops.CommitOptions, error) {
		p := in.proposal(so)
		p.Base = base
		return in.means(so.project, so.workspace).TrialCommit(&p, when)
	}
}
