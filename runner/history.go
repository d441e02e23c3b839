package runner

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/price"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// history is a run that was killed or stopped, as its transcript tells it.
type history struct {
	*transcript.View
	conversation worker.Past
	hooks        hooks.Answers
	listed       transcript.Hooks // that it had
	job          job.Job          // with the limits that it has
	limits       job.Limits       // when the run was stopped
	elapsed      time.Duration    // while the run lived
	scripted     int              // turns that a scripted session gave
	torn         int              // bytes that were cut off the transcript
	raised       []string         // limits that the run is given to go on: KEY=VALUE
	hasTree      bool             // the run directory has the work tree
	inTree       bool             // it ended, and its work tree alone has its work, as of a run that was killed
	found        workspace.Found  // how the checkout is, once it is opened
	foreign      bool             // this machine did not record the run
}

// readHistory folds the events of a run directory.
func readHistory(rec *record.Record) (*history, error) {
	h := &history{inTree: workspace.LeftInTree(rec.Directory), hasTree: confine.LeftTree(rec.Directory)}
	view, err := rec.Survey(h.take)
	if err != nil {
		return nil, err
	}
	h.View = view
	last := view.Until
	if alive := rec.LastAlive(); alive.After(last) && alive.Before(time.Now()) && view.Finished == nil {
		last = alive
	}
	h.elapsed = view.Lived + last.Sub(view.Since)
	return h, nil
}

// take adds what an event says beside what the view knows.
func (h *history) take(known *transcript.View, e transcript.Event) error {
	err := h.note(known, e)
	if err == nil {
		err = h.hooks.Take(e)
	}
	h.conversation.Written = worker.Writing(h.job.Model)
	h.conversation.CallLimit, h.conversation.OthersCalls = h.job.Limits.ToolCalls, known.CallsOfAgents()
	if err == nil && e.By() == "" {
		err = h.conversation.Take(e)
	}
	if err != nil {
		return fmt.Errorf("transcript event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

func (h *history) note(known *transcript.View, e transcript.Event) (err error) {
	switch e.Type {
	case transcript.TypeRunStarted:
		err = json.Unmarshal(known.Started.Job, &h.job)
	case transcript.TypeHooks:
		h.listed = transcript.Hooks{}
		err = json.Unmarshal(e.Data, &h.listed)
	case transcript.TypeModelResponse:
		var d struct{ ID string }
		if err = json.Unmarshal(e.Data, &d); err == nil && e.By() == "" {
			h.scripted = max(h.scripted, model.ScriptedTurn(d.ID))
		}
	case transcript.TypeModelRetry, transcript.TypeModelFailure:
		var d struct{ Kind model.Kind }
		if err = json.Unmarshal(e.Data, &d); err == nil && e.By() == "" && d.Kind != model.ScriptMismatch { // a turn that failed
			h.scripted++
		}
	case transcript.TypeRunResumed:
		h.job.Limits, err = settings.SetLimits(h.job.Limits, known.Resumed.Limits)
	}
	return err
}

// worked says that the agent had begun.
func (h *history) worked() bool { return h.conversation.Turns() > 0 }

// ended says that the run ended and that the end put its work aside.
func (h *history) ended() bool { return h.Finished != nil && !h.inTree }

// onPull says that the run goes on with a pull request, whose change was in the
// checkout before the agent began.
func (h *history) onPull() bool { return onPull(h.View) }

func onPull(v *transcript.View) bool {
	return v.Task.Subject == nil && v.Task.Source == "event" && strings.Contains(v.Task.URL, "/pull/")
}

// onHead says that the run works on the head of a pull request that it says something on.
func (h *history) onHead() bool { return h.Task.Subject != nil && h.Task.Subject.Pull }

// askedOn is the issue or pull request on which an event asked for the run; zero for none.
func (h *history) askedOn() job.Issue {
	if h.Task.Trigger == "" || h.Task.Subject != nil {
		return job.Issue{}
	}
	if h.onPull() {
		number, _ := strconv.Atoi(path.Base(h.Task.URL)) // else it is 0
		return job.Issue{Repository: h.Workspace.Repository, Number: number}
	}
	issue, _ := job.ParseIssue(h.Task.Issue) // none where it is not one
	return issue
}

// assignment is what the run was to do, and nothing of what it did.
func (h *history) assignment(asked *request) assignment {
	a := assignment{request: asked, settings: &settings.Settings{Job: h.job}, task: intake.Recorded(h.Task)}
	a.task.Key, a.task.Branch = h.Started.Key, h.Workspace.Branch
	return a
}

// earlier is the run for the workspace.
func (h *history) earlier() workspace.Earlier {
	return workspace.Earlier{
		Workspace: h.Workspace, Worked: h.worked(), Ended: h.ended(), OnPull: h.onPull(), OnHead: h.onHead(),
		InOverlay: h.Policy.WorkTree == confine.InOverlay, HasTree: h.hasTree,
	}
}

// workTree is the backing of the work tree that has the work; empty for none.
func (h *history) workTree() string {
	if !h.worked() || h.found.Away != "" {
		return ""
	}
	return h.Policy.WorkTree
}

// returned is how the agent goes on.
func (h *history) returned() worker.Earlier {
	return worker.Earlier{Past: &h.conversation, Plan: h.Plan, Used: h.Models, Ended: h.Finished != nil, Found: h.found, Servers: h.MCPServers, Agents: h.Agents}
}

// prices are those of the models of the run, by their names.
func (h *history) prices() map[string]*price.List {
	prices := map[string]*price.List{h.job.Model.Name: h.Started.Price}
	for _, fallback := range h.Fallbacks {
		prices[fallback.To] = fallback.Price
	}
	for _, a := range h.Agents {
		for _, used := range a.Models {
			prices[used.Model] = used.Price
		}
	}
	return prices
}

// baseline is what the checks said of the base.
func (h *history) baseline() (transcript.Verify, error) {
	table := transcript.Verify{Passed: true}
	if h.Baseline != nil {
		table = *h.Baseline
	}
	if len(table.Rows) != len(h.job.Verify) {
		return table, workspace.CannotResume("its transcript has no baseline of the verify commands")
	}
	return table, nil
}
