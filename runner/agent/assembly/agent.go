package assembly

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/filetime"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/memory"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/question"
)

// Shared is what all agents of a run share.
type Shared struct {
	Record    *record.Record
	Workspace *workspace.Workspace
	Sandboxes *confine.Sandboxes
	Began     time.Time // start of the run; for a resumed run moved forward by the time it was stopped
	// Hooks run at the agents' events; nil for none.
	Hooks  *hooks.Hooks
	Skills skills.Offer  // skills that the models can load
	Memory memory.Memory // lessons offered to the agents
	// ReplayCommand returns a replayed command's recorded result; nil outside a replay.
	ReplayCommand func(ctx context.Context, call tools.Call) command.RecordedReturn
}

// Options configure an agent.
type Options struct {
	Shared
	Job      *job.Job
	Model    provider.Model
	Recorded *extensions.Recorded // replaces MCP servers in a replay; nil otherwise
	// Ask sends people all questions of the run so far. Nil means that nobody answers.
	Ask func(ctx context.Context, all []question.Question) error
	// Tools are the tools of the program that embeds agent-ci.
	Tools []tools.Tool
	// Subagent describes an agent that another agent started. It is nil for the run's own agent.
	Subagent *Subagent
	// Team manages the subagents that the agent starts. It is nil if it may start none.
	Team Team
	// ScriptEngine is the command line of the script engine. Empty without scripts.
	ScriptEngine []string
	// TakeLesson stores lessons that the agent proposes; nil means that it cannot propose any.
	TakeLesson TakeLesson
}

// Agent is one agent: a conversation, and tools while it works. It is not safe for concurrent use.
type Agent struct {
	Options
	toolset          toolset
	toolbox          *toolbox            // nil while the agent is idle
	dynamic          *extensions.Dynamic // tools that the job defines
	deferred         []string            // names of tools that the model has to search for
	servers          *extensions.Servers
	definitionsFixed bool
	serviceAttempts  int

	loadedSkills loadedSkills
	createdAt    time.Time // on the clock of files; the agent changed those that are newer
	conversation *agent.Conversation
	shownFiles   shownFiles          // files shown to a model that writes edits as text
	readFiles    opencode.KnownFiles // files that a model with OpenCode's tools has read
	javaScript   javaScript
	scriptState  code.State // what scripts of all attempts have left

	runFacts    []json.RawMessage // the briefing without the task, for subagents
	work        Work              // work so far, without Spent
	patchCount  int               // number of saved changes
	sentOnce    sentMessages
	hookAnswers hookAnswers   // given before the first request
	resumeFrom  *StoppedAgent // state to resume from; nil once that is done
}

// Work is the result of an agent's work.
type Work struct {
	Summary    string // the agent's last words
	Plan       transcript.Plan
	Questions  []question.Question // questions that it asked people
	Spent      agent.Spent
	BudgetStop *outcome.Stop // the stop by an exhausted budget, or nil
}

// New returns an agent with an empty conversation. It starts no process.
func New(ctx context.Context, o Options) (*Agent, error) {
	if o.Ask == nil && o.Job.Task.Questions == "ask" {
		o.Record.Warn(nobodyToAskCode, "task.questions is ask, but there is no issue, or no token, to ask with; the agent has to assume.")
	}
	if len(o.ScriptEngine) == 0 {
		if o.Job.Model.Tools == "code" {
			return nil, outcome.Stopf(outcome.InvalidInput, "no_script_engine", "model.tools is code, and the program that embeds agent-ci names no engine for scripts (Surroundings.ScriptEngine); set another form, or let it name one.")
		}
		o.Model.Profile.Code = false
	}
	a := &Agent{Options: o, toolset: toolsetOf(o.Model.Profile, o.Job.Model.Tools), createdAt: filetime.Now().Add(-1)}
	l := o.Job.Limits
	a.conversation = &agent.Conversation{
		Model: a.retryingModel(), Log: o.Record.Log(),
		Limits: agent.Limits{
			Turns: l.Turns, Calls: l.ToolCalls, Tokens: l.Tokens, CostUSD: l.CostUSD, TimeLimit: time.Duration(l.Time), Began: o.Began,
		},
		Surroundings: agent.Surroundings{
			ParseWritten: WrittenParserFor(o.Job.Model), Plan: a.planText, KeptTexts: a.keptSkills, MustStop: func() error { return cmp.Or(a.servers.StopReason(), a.Hooks.StopReason()) },
			BeforeCompaction: o.Hooks.BeforeCompaction, Team: o.Team, Warn: o.Record.Warn,
		},
	}
	if o.Subagent != nil {
		a.conversation.Name, a.conversation.Log = o.Subagent.Description.ID, o.Record.Log().ForAgent(o.Subagent.Description.ID)
	}
	var err error
	if a.dynamic, err = extensions.NewDynamic(o.Sandboxes, o.Job, a.workDir()); err != nil {
		return nil, err
	}
	a.servers = extensions.New(extensions.Options{
		Record: a.Record, Sandboxes: a.Sandboxes, Job: a.Job, Environ: a.Sandboxes.Environ, WorkDir: a.workDir(), Recorded: a.Recorded, ReservedNames: a.reservedNames(),
	})
	if err := a.setConstantSettings(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// nobodyToAskCode is the warning code for task.questions: ask without an issue or token.
const nobodyToAskCode = "nobody_to_ask"

// AskedPeople reports whether the agent of a run with these warnings could ask people.
func AskedPeople(j *job.Job, warnings []transcript.Warning) bool {
	return j.Task.Questions == "ask" && !slices.ContainsFunc(warnings, func(w transcript.Warning) bool { return w.Code == nobodyToAskCode })
}

// retryingModel returns the model with the job's retries.
func (a *Agent) retryingModel() model.Responder {
	return &model.Retrying{
		Next: a.Model.Responder, FirstPause: a.Model.FirstPause, MaxOutage: time.Duration(a.Job.Model.Outage),
		Report: func(failed *model.Failure, wait time.Duration) error {
			return a.conversation.RecordRetried(failed, wait)
		},
	}
}

// setConstantSettings sets the parts that are the same in every request, such as the instructions and the definitions
// of tools. The tools cannot be called before makeTools.
func (a *Agent) setConstantSettings(ctx context.Context) error {
	if err := a.useTools(ctx, &toolbox{view: a.newTreeView(nil)}); err != nil {
		return err
	}
	definitions, err := toolDefinitions(a.specsToDefine(), a.Job.Tools.Hosted)
	if err != nil {
		return err
	}
	jobModel, instructions := a.Job.Model, briefing.Instructions(a.toolset.actionPhrases())
	if a.Subagent != nil && strings.TrimSpace(a.Subagent.Role.Instructions) != "" {
		instructions += "\n\n" + a.Subagent.Role.Instructions
	}
	a.conversation.Settings = model.Settings{
		Instructions: instructions, Tools: definitions, CacheKey: a.Record.ID, ServiceTier: jobModel.ServiceTier,
		MaxOutputTokens: jobModel.MaxOutputTokens, NoStream: !jobModel.Stream, NoTools: jobModel.WritesTextOnly(),
		SerialCalls: a.toolset.Code, // a script makes parallel calls itself
	}
	for _, name := range jobModel.Chat {
		a.conversation.Settings.ChatQuirks = append(a.conversation.Settings.ChatQuirks, model.Quirk(name))
	}
	if a.toolset.Code {
		a.conversation.Settings.ToolsInInput = true
		if a.Model.Profile.Reasoning {
			a.conversation.Settings.Context = "all_turns"
		}
	}
	a.conversation.UseModel(a.modelOptions(a.Model.ProfiledModel))
	for _, fallback := range a.Model.Fallbacks {
		a.conversation.Fallbacks = append(a.conversation.Fallbacks, a.modelOptions(fallback))
	}
	return nil
}

// workDir returns the agent's working directory, as its commands see it.
func (a *Agent) workDir() string {
	return filepath.Join(a.Sandboxes.SandboxPath(a.Place()), filepath.FromSlash(a.Job.Repository.Path))
}

// Resume prepares the agent to continue from the state stopped. Call it after Brief and before Run.
func (a *Agent) Resume(stopped StoppedAgent) error {
	a.work.Plan, a.work.Questions = stopped.Plan, stopped.State.questions
	a.sentOnce, a.loadedSkills.all = stopped.State.sentOnce, stopped.State.loadedSkills
	a.scriptState, a.javaScript.Used = stopped.State.scriptState, stopped.State.javaScript
	a.shownFiles.names = stopped.State.shownFiles.names
	if patches, err := os.ReadDir(a.Record.Join(record.PatchesFolder)); err == nil {
		a.patchCount = len(patches)
	}
	if stopped.State.Turns() > 0 {
		a.conversation.Restore(&stopped.State.ResumeState, stopped.ModelUse, a.conversation.ItemCount())
	}
	a.resumeFrom = &stopped
	return a.servers.RequireSame(stopped.Servers)
}

// Work returns the work so far, also after an error.
func (a *Agent) Work() Work {
	work := a.work
	work.Spent = a.conversation.Spent()
	return work
}

// Run lets the agent work until it ends or a budget is used up, and then ends its processes. It returns the work so far,
// also with an error.
func (a *Agent) Run(ctx context.Context) (Work, error) {
	if a.hadEnded() {
		return a.Work(), nil
	}
	defer a.endProcesses()
	lastWords, err := a.converse(ctx)
	if lastWords != "" {
		a.work.Summary = a.Record.Redact(lastWords) // as in the transcript
	}
	a.work.BudgetStop, err = splitStop(ctx, err)
	return a.Work(), err
}

// hadEnded reports whether the agent had ended, and its stop hooks had accepted that, before the run was stopped. If so,
// it sets the summary, and there is nothing to resume.
func (a *Agent) hadEnded() bool {
	if a.resumeFrom == nil {
		return false
	}
	lastWords, ended := a.resumeFrom.State.Ended()
	asked, more := a.Hooks.PendingStop()
	hooksAccepted := asked && more == ""
	if !ended || !hooksAccepted {
		return false
	}
	a.work.Summary, a.resumeFrom = lastWords, nil
	return true
}

// converse makes the tools, finishes the calls that a stop interrupted, and runs the conversation. It returns the
// agent's last message.
func (a *Agent) converse(ctx context.Context) (lastWords string, err error) {
	if err := a.makeTools(ctx); err != nil {
		return "", err
	}
	if a.Team != nil {
		a.Team.Begin(ctx) // not before: subagents that start use the tools
	}
	lastWords, ended, err := a.settleEnd(ctx)
	if err != nil {
		return "", err
	}
	if err := a.finishInterrupted(ctx); err != nil {
		return "", err
	}
	if ended {
		return lastWords, nil
	}
	return a.converseUntilAllowed(ctx)
}

// splitStop returns err as budgetStop if it means an exhausted budget, and as other otherwise.
func splitStop(ctx context.Context, err error) (budgetStop *outcome.Stop, other error) {
	if err == nil {
		return nil, nil
	}
	stop := outcome.ForError(ctx, err)
	if stop.Outcome != outcome.BudgetExceeded {
		return nil, err
	}
	return stop, nil
}

// endProcesses stops the agent's team, scripts, servers and running commands. Only the run's own agent has scripts and
// servers.
func (a *Agent) endProcesses() {
	if a.Team != nil {
		a.Team.End()
	}
	if a.toolbox == nil {
		return
	}
	closeSandbox := (*sandbox.Sandbox).Close
	if a.Subagent == nil {
		closeSandbox = a.Sandboxes.CloseAgent
		a.endScripts()
		a.Hooks.SetAgentSandbox(nil) // the sandbox ends below
		a.warnOfProcesses(a.servers.EndAttempt())
	}
	a.warnOfProcesses(a.toolbox.close(closeSandbox))
	a.toolbox = nil
}

// warnOfProcesses warns of processes that could not be ended.
func (a *Agent) warnOfProcesses(err error) {
	if err != nil {
		a.Record.Warn("processes_left", "%s.", outcome.Sentence(err.Error()))
	}
}

// QuestionEnd asks an agent whose end looks too early whether it is done, once per run. If sent is true, the agent must
// continue. unchanged means nothing needs publishing. leftOut is "", or the end of a sentence that names files
// which cannot be published.
func (a *Agent) QuestionEnd(unchanged bool, leftOut string) (sent bool, err error) {
	message := earlyEndQuestion(a.Job.Task.Expects, a.work.Plan.Steps, unchanged, leftOut)
	return a.sendOncePerRun(nudgeHead, strings.TrimPrefix(message, nudgeHead))
}

// Tell adds a message of the runner before the agent's next turn.
func (a *Agent) Tell(text string) error { return a.conversation.Tell(text) }

// StopIfNoTurnLeft returns the error that ends the run if a budget allows the agent no further turn, or nil.
func (a *Agent) StopIfNoTurnLeft() *outcome.Stop { return a.conversation.StopIfNoTurnLeft() }

// OutputFile in the run directory holds the result that task.output_schema describes.
const OutputFile = "output.json"

// Output asks an agent that has ended for the result that task.output_schema describes, and writes OutputFile. An
// exhausted budget is no error: it sets Work.BudgetStop.
func (a *Agent) Output(ctx context.Context, schema settings.OutputSchema) (Work, error) {
	value, mismatch, err := a.conversation.Output(ctx, schema.Source, schema.Check)
	if err != nil {
		a.work.BudgetStop, err = splitStop(ctx, err)
		return a.Work(), err
	}
	if mismatch != nil {
		advice := "task.output_schema (%s); check the schema, or run again."
		if a.Job.Publish.IsFeedback() {
			advice = "publish.as: " + a.Job.Publish.As + " (%s); run again, or with another model."
		}
		return a.Work(), outcome.Stopf(outcome.ModelFailed, "output_schema", "The model did not give a result that fits "+advice, outcome.WithoutFullStop(mismatch)).Because(mismatch)
	}
	if value, err = eventlog.RedactJSON(value, a.Record.Redact); err != nil {
		return a.Work(), err
	}
	return a.Work(), a.Record.Write(OutputFile, append(value, '\n'))
}

// askPeople asks people the agent's new questions, together with all earlier ones.
func (a *Agent) askPeople(ctx context.Context, questions []question.Question) error {
	all := slices.Concat(a.work.Questions, questions)
	if err := a.Ask(ctx, all); err != nil {
		return err
	}
	a.work.Questions = all
	return nil
}

// recordPlan records a plan. It needs no lock, because mutating calls run alone.
func (a *Agent) recordPlan(p plan.Plan) error {
	recorded := transcript.Plan{Explanation: p.Explanation}
	for _, step := range p.Steps {
		recorded.Steps = append(recorded.Steps, transcript.PlanStep(step))
	}
	a.work.Plan = recorded
	return a.Record.Append(recorded)
}

// planText returns the agent's plan as a list, for the conversation.
func (a *Agent) planText() string {
	var s strings.Builder
	for _, step := range a.work.Plan.Steps {
		fmt.Fprintf(&s, "- [%s] %s\n", step.Status, step.Step)
	}
	return s.String()
}
