package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/extensions"
	"github.com/agent-ci/agent-ci/runner/feedback"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/skills"
	"github.com/agent-ci/agent-ci/runner/team"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
)

// reached is what the stages of a pipeline gave, as far as they came: the end of a
// run is told of it, and leaves the checkout by it. No room sees it.
type reached struct {
	assignment
	workspace *workspace.Workspace // nil while there is no checkout
	left      gitops.Base          // of the checkout that a clone took the place of
	boxes     *confine.Sandboxes   // nil before commands can be confined
	recorded  *extensions.Recorded // stands in for servers of tools; nil where they are started
	hooks     *hooks.Hooks         // nil where there are none, and before they are known
	added     string               // by hooks, for the agent
	skills    skills.Offer         // that the agent can load
	agent     *worker.Agent        // nil before it is made
	learnt    learnt
	team      *team.Team          // nil where the agent may start no others
	agents    []*transcript.Agent // that a run had before it went on
	// before says how a call of a command returned in the record; nil where nothing is replayed.
	before      func(context.Context, tools.Call) command.Before
	waits       *team.Recorded       // what waits for agents came to; nil where nothing is replayed
	key         *sshsig.Key          // that the commit is signed with; nil for none
	authorities settings.Authorities // of hosts that commands reach
	workTree    string               // what a run that goes on has its work in; empty for none
	found       workspace.Found      // how the checkout of a run that goes on was
	committed   string               // commit that the run made before it was killed

	repair  repairing
	earlier *gitops.ChangeSet // of the pull request that the run goes on with; nil for none
	// laidAlone says that all that is to be done was to lay it over the new base, which went
	// without a conflict: the checks decide whether the agent has to work.
	laidAlone bool

	// trialCommit says how the change would be committed on a base.
	trialCommit func(base gitops.Base, when time.Time) (gitops.CommitOptions, error)

	baseline transcript.Verify
	kept     *verify.Kept         // nil: nothing is kept of bases, or believed
	table    transcript.Verify    // the last one
	change   *gitops.ChangeSet    // as the checkout holds it
	dropped  []string             // protected files that the agent changed, left out of change
	stopped  *outcome.Stop        // by which a budget ended the work
	outFile  string               // with the object that task.output_schema describes
	out      *publish.Publication // nil before anything was published
	said     *feedback.Said       // nil before anything was said on the subject
	told     worker.Work          // what a record tells of the work
	resumed  bool                 // run.resumed is written
	goesOn   bool                 // the agent had begun before the run went on
	used     []transcript.Secret  // by commands, before a run went on
	replays  bool                 // a record answers in the place of the model
	until    time.Time            // when the time of the run is over; zero while that is not known
}

// preparation says what the run needs of its checkout.
func (so *reached) preparation() workspace.Preparation {
	base := workspace.BaseBranch{Configured: so.job().Repository.Base != "", NoneNeeded: so.project.publish == publishNone}
	if so.job().PullRequest.Branch == "" {
		base.TaskBranch = so.task.Branch
	}
	if so.project.publish == publishGitHub {
		base.Usual = func(ctx context.Context) (string, error) { return intake.DefaultBranch(ctx, so.project.to) }
	}
	shared := so.project.publish != publishNone && !so.movesHead()
	return workspace.Preparation{Base: base, Path: so.job().Repository.Path, Changes: so.job().Task.Expects == "change", Shared: shared}
}

// movesHead says whether the branch that the change goes to is the one that is checked
// out: it can't move without the checkout, which others work in.
func (so *reached) movesHead() bool { return so.workspace.On(so.task.Branch) }

// useFilters has filters run in sandboxes of the run from here on, and refuses those that nobody
// vouches for.
func (so *reached) useFilters(ctx context.Context) error {
	checkout := so.workspace.Checkout()
	checkout.OpenFiltersBy(so.boxes.OpenFilter)
	checkout.AllowFilters(so.job().Git.Listed())
	return checkout.CheckFilters(ctx)
}

// useTree has the workspace know what commands work in, and other runs work above the checkout
// meanwhile if nothing of this one is to come into it.
func (so *reached) useTree(ctx context.Context) error {
	err := so.workspace.UseTree(ctx, so.boxes.WorkTree())
	if err == nil && !so.workspace.Worked() {
		err = so.boxes.CheckWayBack(ctx)
	}
	switch {
	case err != nil || so.project.publish == publishNone:
		return err
	case so.movesHead():
		return so.workspace.KeepAlone()
	}
	return so.workspace.Share(ctx)
}

func (so *reached) checks() verify.Checks {
	return verify.Checks{
		Record: so.boxes.Record, Sandboxes: so.boxes, Workspace: so.workspace, Job: so.job(), Until: so.until, Kept: so.kept,
		Branch: so.task.Branch, Commit: so.trialCommit,
	}
}

// askOutput asks the agent for the object that the job wants beside the change. A
// budget that is used up leaves none for it.
func (so *reached) askOutput(ctx context.Context) error {
	if so.output.Source == nil || so.stopped != nil {
		return nil
	}
	work, err := so.agent.Output(ctx, so.output)
	if err != nil {
		return err
	}
	if so.stopped = work.Stopped; so.stopped != nil {
		return so.stoppedUnlessDraft()
	}
	so.outFile = worker.OutputFile
	return nil
}

// stoppedUnlessDraft ends a run that a budget ended, unless its work is to be
// published as a draft.
func (so *reached) stoppedUnlessDraft() error {
	if so.stopped == nil || so.job().Limits.OnBudget == "draft" && !so.change.Empty() {
		return nil
	}
	return so.stopped
}

// noteTime takes it that limits.time, which ends ctx and not whole, has ended the work.
func (so *reached) noteTime(ctx, whole context.Context) {
	if so.stopped == nil && ctx.Err() != nil && whole.Err() == nil {
		so.stopped = outcome.Of(ctx, ctx.Err())
	}
}

// verify runs the checks on the change. What ends ctx and not whole ends proofs of its tests.
func (so *reached) verify(ctx, whole context.Context, attempt int) error {
	so.until, _ = ctx.Deadline()
	table, err := so.checks().Change(whole, attempt, so.change, so.baseline.Rows)
	if len(table.Rows) > 0 {
		so.table = table
	}
	return err
}

// work is what the agent's work has come to.
func (so *reached) work() worker.Work {
	if so.agent == nil {
		return so.told
	}
	work := so.agent.Work()
	if work.Plan.Steps == nil {
		work.Plan = so.told.Plan
	}
	work.Summary = cmp.Or(work.Summary, so.told.Summary)
	return work
}

// subagents are the agents that others of the run started.
func (so *reached) subagents() []*transcript.Agent {
	if so.team == nil {
		return so.agents
	}
	return so.team.Agents()
}

// spent is what all agents of the run used, and what that cost.
func (so *reached) spent() (spent agent.Spent, cost *float64) {
	work := so.work()
	spent, cost = work.Spent, work.Cost
	for _, a := range so.subagents() {
		spent.Turns, spent.Calls, spent.Usage = spent.Turns+a.Turns, spent.Calls+a.Calls, spent.Usage.Add(model.Usage(a.Usage))
		spent.Models = append(slices.Clip(spent.Models), a.Models...)
	}
	if sum, known := transcript.CostOf(spent.Models); known {
		cost = &sum
	} else if len(so.subagents()) > 0 {
		cost = nil
	}
	return spent, cost
}

// confined is how commands were confined.
func (so *reached) confined() record.Confinement {
	if so.boxes == nil || so.boxes.Reached().Level == "" {
		return record.Unconfined()
	}
	return so.boxes.Reached()
}

// workspaceOr is the workspace, or one without a checkout where there is none.
func (so *reached) workspaceOr(rec *record.Record) *workspace.Workspace {
	if so.workspace == nil {
		return workspace.Folder(rec, "")
	}
	return so.workspace
}

// published is what became of the change; of one that was not published, where it is.
func (so *reached) published() publish.Publication {
	if so.out != nil {
		return *so.out
	}
	p := publish.Publication{Base: so.left, Change: so.change, Table: so.table}
	if so.workspace != nil {
		p.Base = so.workspace.Base()
	}
	return p
}

// adopt takes over what a bundle proposes, as far as it came.
func (so *reached) adopt(p publish.Proposal) {
	so.change, so.table, so.stopped, so.task, so.told.Summary = p.Change, p.Table, p.Stopped, p.Task, p.Summary
	if p.Job != nil {
		so.settings = &settings.Settings{Job: *p.Job}
	}
}

// close lets go of what the run worked with.
func (so *reached) close() {
	so.hooks.Beside(nil)
	if so.workspace != nil {
		_ = so.workspace.Close()
	}
	if so.boxes != nil {
		so.boxes.Release()
	}
	if so.kept != nil {
		_ = so.kept.Close()
	}
}

// baseTree gives the tree that programs of the job come from: of the commit that configured the
// run, which the head of a pull request did not, whoever wrote that. A run that goes on does not
// know that commit any more.
func (so *reached) baseTree() func(ctx context.Context) (dir string, err error) {
	switch {
	case !so.task.OnHead() && so.task.Mode != intake.Join:
		return so.workspace.BaseTree()
	case so.left.Tree != "":
		return so.workspace.TreeOf(so.left)
	}
	return func(context.Context) (string, error) {
		return "", workspace.CannotResume("its job has programs of the commit that configured it (tools.dynamic, mcp_servers, hooks), and the transcript of a run on a pull request does not name that; start a new one")
	}
}
