package runner

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools/question"
)

// What stands here lets the stages that are methods of run use runner/worker by
// the names that they know.

const stoppedWords = worker.StoppedWords

// meetModel finds out who answers: a scripted session or the API.
func (r *run) meetModel(ctx context.Context) (err error) {
	if short := r.rec.Redactor().Short(); len(short) > 0 {
		r.rec.Warn("short_secret", "%s: the value is shorter than %d characters and is not searched for in outputs.", strings.Join(short, ", "), secrets.MinLength)
	}
	if r.options.Replay != "" {
		r.model, err = worker.NewScriptedModel(ctx, r.options.Replay, r.job)
		return err
	}
	r.model, err = worker.NewAPIModel(r.job, r.env, r.options.Version, r.rec.Warn)
	return err
}

func (r *run) price() *transcript.Price { return r.model.Price() }

// meetAgent makes the agent. Nothing is said yet.
func (r *run) meetAgent(ctx context.Context) (err error) {
	if !r.joins() {
		if err := r.readGuides(); err != nil {
			return err
		}
	}
	r.conversation, err = worker.New(ctx, worker.Options{
		Record: r.rec, Workspace: r.ws(), Sandboxes: r.boxes,
		Job: r.job, Model: r.model, Began: r.began, Ask: r.people(),
	})
	return err
}

func (r *run) readGuides() (err error) {
	r.guides, err = worker.ReadGuides(r.baseCommit(), r.job.Repository.Path, r.rec.Warn)
	return err
}

// people are those to whom the agent puts questions; nil where there are none. Those
// of a recorded run were asked already, and nobody is asked again.
func (r *run) people() func(context.Context, []question.Question) error {
	if recorded := r.replayed(); recorded != nil {
		if recorded.asks {
			return func(context.Context, []question.Question) error { return nil }
		}
		return nil
	}
	if r.job.Task.Questions != "ask" || r.task.issue == nil || r.env.Token() == "" {
		return nil
	}
	return (&worker.IssuePeople{Forge: r.forge, Issue: *r.task.issue, Redact: r.rec.Redact}).Ask
}

// briefAgent begins the conversation. An agent that was stopped goes on from there.
func (r *run) briefAgent(ctx context.Context) error {
	briefing := agent.Briefing{Guides: r.guides, Task: agent.Task{Source: r.task.name, Title: r.task.title, Text: r.task.text}}
	if !r.joins() {
		var err error
		if briefing.Further, err = worker.FurtherGuides(ctx, r.checkout, r.job.Repository.Path); err != nil {
			return err
		}
	}
	briefing.Task.Images, briefing.Task.Missing = r.taskImages(ctx)
	if err := r.conversation.Brief(briefing, r.baseline); err != nil {
		return err
	}
	if h := r.history; h != nil {
		r.conversation.GoOn(worker.Earlier{
			Past: &h.conversation, Plan: h.Plan, Usage: model.Usage(h.Usage), Ended: h.Finished != nil, Found: r.found,
		})
	}
	return nil
}

// letWork runs the agent until it ends or a budget is used up.
func (r *run) letWork(ctx context.Context) error {
	return r.inWorkspace(func(*workspace.Workspace) error {
		defer r.takeWork()
		_, err := r.conversation.Run(ctx)
		return err
	})
}

func (r *run) takeWork() {
	work := r.conversation.Work()
	r.history = nil
	r.plan, r.summary, r.overBudget = work.Plan, work.Summary, work.Stopped
}

// askOutput asks for the object that the job wants beside the change. A budget
// that is used up leaves none for it.
func (r *run) askOutput(ctx context.Context) error {
	if r.output.Source == nil || r.overBudget != nil {
		return nil
	}
	defer r.takeWork()
	work, err := r.conversation.Output(ctx, r.output)
	if err != nil {
		return err
	}
	if r.overBudget = work.Stopped; r.overBudget != nil {
		return r.overBudgetUnlessDraft()
	}
	r.outputFile = worker.OutputFile
	return nil
}

// waitsForAnswers ends a run whose agent has asked.
func (r *run) waitsForAnswers() error {
	return r.conversation.Work().WithoutAnswers(r.task.issue)
}

func (r *run) cost() *float64 {
	if r.conversation == nil {
		return nil
	}
	return r.conversation.Work().Cost
}

// endProcesses ends every command that still runs.
func (r *run) endProcesses() {
	if r.conversation != nil {
		r.conversation.EndProcesses()
	}
}
