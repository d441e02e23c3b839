package runner

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/tools"
)

// Options say what to run and with what. Everything that a run takes from its
// surroundings stands here.
type Options struct {
	JobFile    string // path of a job file; one of the four is the task
	Issue      string // as job.ParseIssue reads it
	Prompt     string
	PromptFile string // path, or - for Stdin
	// Repair is the pull request of a run, as job.ParseIssue reads it, whose red checks are
	// to be mended: the task, whatever the event is. The job has task.from: event then.
	Repair string

	Dir      string // the checkout, or a folder in it
	Out      string // run directory; empty means a new one in the usual place
	Publish  string // github, local, none; empty means what the surroundings allow
	Replay   string // path of a scripted session that stands in for the model
	Set      []string
	Model    string
	Operator string // path of the operator's file; empty for none

	// Tools are called by the model besides those that agent-ci has: functions of the program
	// that embeds this package. Their calls are recorded as all are, cut and redacted, and
	// answered by the record in a replay. A job can refuse them by tools.allow and tools.deny.
	// Run is called from several goroutines at once, for a tool that does not mutate. It has to
	// return soon after its context has ended: the run waits for it.
	Tools []tools.Tool

	NoBaselineCache bool // what checks said of the base in earlier runs is not believed, nor kept
	Stdin           io.Reader

	Surroundings
}

// Run does one run and gives its result, whatever happens. A run directory with
// transcript and result.json is there afterwards, unless not even that could be made, as
// the result's message then says, or the input was wrong before anything had begun.
func Run(ctx context.Context, o Options) record.Result {
	in := newInvocation(record.NewID(time.Now()), settings.Given{
		JobFile: o.JobFile, Issue: o.Issue, Prompt: o.Prompt, PromptFile: o.PromptFile, Model: o.Model, Set: o.Set, Stdin: o.Stdin,
	}, o.Surroundings)
	in.dir, in.publish, in.script = o.Dir, o.Publish, o.Replay
	in.operator, in.repairs = o.Operator, o.Repair
	in.keepBaselines, in.tools = !o.NoBaselineCache, o.Tools
	inVain := false
	result := in.attended(ctx, func(so *reached, left *departure) record.Result {
		if err := in.makeDirectory(o.Out); err != nil {
			return in.unrecorded(so, err)
		}
		left.from(in.rec)
		in.maskSecrets()
		err := guarded(ctx, func(ctx context.Context) error { return in.run(ctx, so) })
		inVain = o.Out == "" && !in.env.InActions() && !in.rec.Begun() && err != nil && outcome.Of(ctx, err).Outcome == outcome.InvalidInput
		in.watch.Unkept = inVain
		return in.finish(ctx, so, left, err)
	})
	if inVain && result.Outcome == outcome.InvalidInput {
		in.leaveNothing(&result)
	}
	return result
}

// leaveNothing takes back the run directory of a run that had not begun when its input
// turned out to be wrong: a path that was mistyped leaves nothing behind. Where somebody
// names the directory, or a workflow asks for it, it stays.
func (in *invocation) leaveNothing(result *record.Result) {
	if result.Directory == "" || os.RemoveAll(result.Directory) != nil {
		return
	}
	result.Directory, result.File, result.ReportFile = "", "", ""
}
