// Package history reads a run's record for a resume or replay, and decides which runs can resume.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Run is a killed or stopped run as recorded.
type Run struct {
	*transcript.View
	conversation   assembly.ResumeState
	HookAnswers    hooks.Answers
	StartHooks     transcript.Hooks    // that it had
	Job            job.Job             // with the limits that it has
	LimitsAtStop   job.Limits          // when the run was stopped
	Elapsed        time.Duration       // while the run lived
	ScriptedTurns  int                 // turns that a scripted session gave
	TornBytes      int                 // bytes that were cut off the transcript
	ChangedLimits  []string            // limits that the run is given to go on: KEY=VALUE
	hasWorkTree    bool                // the run directory has the work tree
	workOnlyInTree bool                // the run ended, but only its work tree has the work, as after a kill
	WorkPlace      workspace.WorkPlace // how the checkout is, once it is opened
	Foreign        bool                // this machine did not record the run
}

// Read reads a run from its run directory.
func Read(rec *record.Record) (*Run, error) {
	h := &Run{workOnlyInTree: workspace.WorkOnlyInTree(rec.Directory), hasWorkTree: confine.HasWorkTree(rec.Directory)}
	view, err := rec.FoldEvents(h.applyEvent)
	if err != nil {
		return nil, err
	}
	h.View = view
	last := view.LastEventAt
	if alive := rec.LastHeartbeat(); alive.After(last) && alive.Before(time.Now()) && view.Finished == nil {
		last = alive
	}
	h.Elapsed = view.EarlierLifetime + last.Sub(view.ResumedAt)
	return h, nil
}

// applyEvent adds the facts in an event that the view lacks.
func (h *Run) applyEvent(known *transcript.View, e transcript.Event) error {
	err := h.storeEvent(e)
	h.HookAnswers.Apply(e)
	h.conversation.ParseWritten = assembly.WrittenParserFor(h.Job.Model)
	h.conversation.CallLimit, h.conversation.SubagentCalls = h.Job.Limits.ToolCalls, known.CallsOfSubagents()
	if err == nil && e.Subagent() == "" {
		err = h.conversation.Apply(e)
	}
	if err != nil {
		return fmt.Errorf("transcript event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// storeEvent stores job, limits and hooks of an event, and counts the turns of a scripted session.
func (h *Run) storeEvent(e transcript.Event) (err error) {
	ofOwnAgent := e.Subagent() == ""
	switch d := e.Content.(type) {
	case transcript.RunStarted:
		return json.Unmarshal(d.Job, &h.Job)
	case transcript.Hooks:
		h.StartHooks = d
	case transcript.ModelResponse:
		if ofOwnAgent {
			h.ScriptedTurns = max(h.ScriptedTurns, scripted.Turn(d.ID))
		}
	case transcript.ModelRetry: // a turn that failed
		if ofOwnAgent {
			h.ScriptedTurns++
		}
	case transcript.ModelFailure:
		if ofOwnAgent && d.Kind != string(model.ScriptMismatch) {
			h.ScriptedTurns++
		}
	case transcript.RunResumed:
		h.Job.Limits, err = settings.SetLimits(h.Job.Limits, d.Limits)
	}
	return err
}

// AgentBegan reports whether the agent had begun to work.
func (h *Run) AgentBegan() bool { return h.conversation.Turns() > 0 }

// RecordedTask returns the run's task without its results.
func (h *Run) RecordedTask() intake.Task {
	t := intake.TaskFromTranscript(h.View.Task)
	t.Key, t.Branch = h.Started.Key, h.Workspace.Branch
	return t
}

// worksOnPullHead reports whether the run comments on a pull request, and so works on its head commit.
func (h *Run) worksOnPullHead() bool { return h.Task.Subject != nil && h.Task.Subject.Pull }

// RequestSubject returns the issue or pull request on which the run was requested. It is zero if no event
// requested the run.
func (h *Run) RequestSubject() form.Issue {
	if h.Task.Trigger == "" || h.Task.Subject != nil {
		return form.Issue{}
	}
	if h.ContinuesPull() {
		number, _ := strconv.Atoi(path.Base(h.Task.URL)) // else it is 0
		return form.Issue{Repository: h.Workspace.Repository, Number: number}
	}
	issue, _ := form.ParseIssue(h.Task.Issue) // zero if the task has no issue
	return issue
}

// WorkspaceState returns the facts that the workspace needs to resume the run.
func (h *Run) WorkspaceState() workspace.ResumedRun {
	return workspace.ResumedRun{
		Workspace: h.Workspace, AgentBegan: h.AgentBegan(), Stopped: h.Finished != nil && !h.workOnlyInTree, BeganWithPull: h.ContinuesPull(), OnPullHead: h.worksOnPullHead(),
		InOverlay: h.Policy.WorkTree == confine.InOverlay, HasTree: h.hasWorkTree,
	}
}

// WorkTreeKind returns the kind of work tree that has the agent's work. Without a work tree it is "".
func (h *Run) WorkTreeKind() string {
	if !h.AgentBegan() || h.WorkPlace != "" {
		return ""
	}
	return h.Policy.WorkTree
}

// ForAgent returns the facts that the agent needs to resume.
func (h *Run) ForAgent() assembly.StoppedAgent {
	return assembly.StoppedAgent{State: &h.conversation, Plan: h.Plan, ModelUse: h.Models, Ended: h.Finished != nil, WorkPlace: h.WorkPlace, Servers: h.MCPServers, Subagents: h.Subagents}
}

// ResumeEvent returns the event run.resumed. workTree is the kind of work tree from now on.
func (h *Run) ResumeEvent(version, workTree string) transcript.RunResumed {
	event := transcript.RunResumed{
		Version: version, TornBytes: h.TornBytes, RestoredElsewhere: h.WorkPlace != "", Limits: h.ChangedLimits, Seconds: h.Elapsed.Seconds(),
	}
	if workTree != h.Policy.WorkTree {
		event.WorkTree = workTree
	}
	if end := h.Finished; end != nil {
		event.PreviousEnd = end.Outcome + "/" + end.Reason
	}
	return event
}

// Prices returns the prices of the run's models by model name.
func (h *Run) Prices() map[string]*price.List {
	prices := map[string]*price.List{h.Job.Model.Name: h.Started.Price}
	for _, fallback := range h.Fallbacks {
		prices[fallback.To] = fallback.Price
	}
	for _, a := range h.Subagents {
		for _, used := range a.Models {
			prices[used.Model] = used.Price
		}
	}
	return prices
}

// BaselineTable returns the results of the checks on the base. Missing ones are an error.
func (h *Run) BaselineTable() (transcript.Verify, error) {
	table := transcript.Verify{Passed: true}
	if h.Baseline != nil {
		table = *h.Baseline
	}
	if len(table.Rows) != len(h.Job.Verify) {
		return table, workspace.CannotResume("its transcript has no baseline of the verify commands")
	}
	return table, nil
}

// RequireSameOperatorHooks returns an error unless a resumed run has the operator's hooks of its start.
func (h *Run) RequireSameOperatorHooks(all []hooks.Hook) error {
	if h.StartHooks.Hooks == nil && !h.AgentBegan() { // it was killed before it had hooks
		return nil
	}
	if slices.EqualFunc(hooks.OperatorHooks(hooks.FromTranscript(h.StartHooks)), hooks.OperatorHooks(all), func(a, b hooks.Hook) bool {
		return a.Name == b.Name && a.SHA256 == b.SHA256
	}) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "operator_file",
		"The operator's hooks are not those that the run started with; resume it with the same operator's file (--operator-file).")
}

// Reopen reads the run directory at dir for a resume, and locks it. set has changed limits as KEY=VALUE, script
// the path of a scripted session or "". show receives later events. With an error it returns the run as far
// as it was read, or nil.
func Reopen(ctx context.Context, rec *record.Record, dir string, set []string, script string, show record.Show) (h *Run, err error) {
	if rec.Directory, err = record.OpenDirectory(dir); err != nil {
		return nil, err
	}
	if err := rec.LockWithRetry(ctx); err != nil {
		return nil, err
	}
	torn, err := rec.Reopen(show)
	if err != nil {
		return nil, workspace.CannotResume("%s", outcome.WithoutFullStop(err)).Because(err)
	}
	if h, err = Read(rec); err != nil { // the record is damaged, or of a later version
		return nil, workspace.CannotResume("%s", outcome.WithoutFullStop(err)).Because(err)
	}
	h.TornBytes, h.ChangedLimits, h.LimitsAtStop = torn, set, h.Job.Limits
	if h.Job.Limits, err = settings.SetLimits(h.LimitsAtStop, set); err != nil {
		return h, err
	}
	pending := workspace.WorkPending(rec.Directory)
	if err := cmp.Or(h.checkResumable(pending), h.checkLimitRaised(), h.requireSameModelKind(script)); err != nil {
		return h, err
	}
	recordedHere := rec.RecordedHere(rec.DigestsFolder)
	if !recordedHere && rec.Has(record.StateFolder) { // what it says of checkouts would be put into the one here
		return h, foreignRecordError("the folder %s in its run directory is not trusted; remove it to resume with the change and the patches that its transcript tells of", record.StateFolder)
	}
	h.Foreign = !recordedHere
	if err := rec.RequireUnaltered(ctx, h.Finished, record.PackFile, record.WorkPackFile, record.PatchesFolder); err != nil {
		if ctx.Err() != nil {
			return h, err
		}
		return h, workspace.CannotResume("%s", outcome.WithoutFullStop(err))
	}
	return h, nil
}
