package runner

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Options say what to run and with what. Everything that a run takes from its
// surroundings stands here.
type Options struct {
	JobFile    string // path of a job file; one of the four is the task
	Issue      string // OWNER/REPO#N
	Prompt     string
	PromptFile string // path, or - for Stdin

	Dir     string // the checkout, or a folder in it
	Out     string // run directory; empty means a new one in the usual place
	Publish string // github, local, none; empty means what the surroundings allow
	Replay  string // path of a scripted session that stands in for the model
	Set     []string
	Model   string
	Quiet   bool

	Environ  []string // of agent-ci itself
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string
	Stdin    io.Reader
	Events   io.Writer     // gets each event as a line of JSON; may be nil
	Progress io.Writer     // gets lines for a person; may be nil
	Step     *actions.Step // of the job in GitHub Actions; may be nil
	// Hurry ends when a run whose context has ended is to come to its end at
	// once, whatever it leaves undone; may be nil.
	Hurry context.Context
}

// Run does one run and gives its result, whatever happens. A run directory with
// transcript and result.json is there afterwards, unless not even that could
// be made; the result's message then says so.
func Run(ctx context.Context, o Options) record.Result {
	began := time.Now()
	r := newRun(o, record.NewID(began), began)
	r.confined = record.Unconfined()
	return r.attended(ctx, o.Hurry, func() record.Result {
		result := r.whole(ctx)
		r.tellStep(&result)
		return result
	})
}

func (r *run) whole(ctx context.Context) record.Result {
	if err := r.openDirectory(); err != nil {
		return r.unrecorded(err)
	}
	r.maskSecrets()
	err := r.guarded(ctx, r.pipeline)
	return r.finish(ctx, err)
}

// run is the state of one run. Each stage fills in what the ones after it need.
type run struct {
	options Options
	env     settings.Environment
	began   time.Time

	departure departure

	rec   *record.Record
	rules *rules.Set // on commands

	event    *actions.Event
	eventErr error            // why there is no event
	request  *actions.Request // that the event makes; nil for other tasks
	askedAt  time.Time        // when; what was written later does not count
	told     intake.Event
	accounts intake.Accounts
	pull     *forge.PullRequest // that is gone on with
	guides   []agent.Guide      // of its base

	job      *job.Job
	set      *settings.Settings
	source   *settings.Source
	task     task
	repo     repository
	forge    forge.Forge
	model    worker.Model
	space    *workspace.Workspace
	checkout *gitops.Checkout
	openErr  error // why there is no checkout
	cloned   bool
	base     gitops.Base
	begunAt  gitops.Base // where the checkout stood before the run
	snapshot *gitops.Snapshot
	hidden   *grants.Secrets // from commands, where they may write; nil until it was looked for
	branch   string

	confined     record.Confinement
	boxes        *confine.Sandboxes // once commands can be confined
	conversation *worker.Agent
	plan         transcript.Plan
	summary      string
	overBudget   *outcome.Stop   // that ended the agent's work
	untimed      context.Context // which limits.time does not end
	history      *history        // of a run that goes on; nil once it was caught up with
	resumed      bool            // run.resumed is written
	torn         int             // bytes that were cut off the transcript
	attempts     int             // of verification that are over
	committed    string          // commit that the run made before it was killed
	found        workspace.Found // of the checkout, when the run went on
	movesIn      bool            // the work is not, or not all, in the checkout yet
	raised       []string        // limits that a run which goes on was given: KEY=VALUE
	output       settings.OutputSchema
	outputFile   string // once it is written
	baseline     []transcript.VerifyRow
	table        transcript.Verify
	changes      *gitops.ChangeSet
	dropped      []string // protected files that the agent changed last, left out of changes
	kept         bool     // the change set is written to the run directory
	bundleHead   string   // of the chain of the run whose bundle is published
	published    published
	drift        drift       // of the base, while the work was done
	key          *sshsig.Key // that the commit is signed with; nil for none
	watch        *progress.Watch
	progressLike []forge.Comment // that may be an earlier run's progress
	shownAs      string          // folder of the transcript that the body names; empty for its own
	bodyFile     string          // of the pull request, once it is written
}

// pipeline is a run from the task to its outcome. A nil error means that the
// stages left the outcome to finish, which reads it off what happened.
func (r *run) pipeline(ctx context.Context) error {
	r.readEvent(ctx)
	if err := r.findCheckout(ctx); err != nil {
		return err
	}
	if err := r.readJob(ctx); err != nil {
		return err
	}
	// A clone may bring other settings, and so another limit of time.
	for _, stages := range [][]func(context.Context) error{r.toWorkspace(), r.fromWorkspace()} {
		if err := r.inTime(ctx, stages...); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) toWorkspace() []func(context.Context) error {
	return []func(context.Context) error{
		r.findRequest, r.newForge, r.trustActor, r.meetModel, r.readTask, r.readOutputSchema, r.openWorkspace,
	}
}

func (r *run) fromWorkspace() []func(context.Context) error {
	return []func(context.Context) error{
		r.readCommandRules, r.spareBase, r.notDoneAlready, r.joinBranch, r.choosePublishing, r.confine, r.begin, r.beginProgress,
		r.meetAgent, r.setUp, r.takeBaseline, r.briefAgent, r.goOn, r.workUntilVerified, r.askOutput, r.publishWork,
	}
}

// inTime goes through stages until one ends the run or limits.time does.
func (r *run) inTime(ctx context.Context, stages ...func(context.Context) error) error {
	ctx, stop := r.withTimeLimit(ctx)
	defer stop()
	return inTurn(ctx, stages...)
}

func inTurn(ctx context.Context, stages ...func(context.Context) error) error {
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return outcome.Of(ctx, err)
		}
	}
	return nil
}

// guarded turns a panic into the outcome internal_error, so that a result is
// written after it.
func (r *run) guarded(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = outcome.Stopf(outcome.InternalError, "panic",
				"agent-ci itself failed (%v); please report this with %s.", p, record.TranscriptFile).Because(fmt.Errorf("%s", debug.Stack()))
		}
	}()
	return work(ctx)
}

// withTimeLimit ends the run at limits.time, counted from its start.
func (r *run) withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	r.untimed = ctx
	limit := time.Duration(r.job.Limits.Time)
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	stop := outcome.Stopf(outcome.BudgetExceeded, settings.TimeReason,
		"The run was stopped after %s; raise limits.time or give a smaller task.", limit)
	return context.WithDeadlineCause(ctx, r.began.Add(limit), stop)
}
