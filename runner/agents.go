package runner

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/team"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/question"
)

// agents are the agent of a run and those that it starts.
type agents struct {
	main     *worker.Agent       // nil where none works
	team     *team.Team          // nil where the agent may start no others
	earlier  []*transcript.Agent // those that a resumed run had
	recorded worker.Work         // of a run that a record tells of
}

// makeAgents makes the agent, which has been told nothing yet.
func (r *runner) makeAgents(ctx context.Context, rd *ready) (*agents, error) {
	made := *r.end.agents
	if rd.past != nil {
		if err := team.Resume(r.rec, rd.boxes, made.earlier); err != nil { // also of one that the record has no word of yet
			return nil, err
		}
	}
	if err := extensions.KeepEmbedded(r.rec, rd.job(), rd.program.tools); err != nil {
		return nil, err
	}
	o := worker.Options{
		Record: r.rec, Workspace: rd.workspace, Sandboxes: rd.boxes, Job: rd.job(), Model: rd.model, Began: r.began, Ask: r.people(rd.assignment),
		Hooks: rd.hooks, Skills: rd.skills, Tools: rd.program.tools, ScriptEngine: rd.program.engine, Memory: rd.lessons.Given, TakeLesson: rd.lessons.Taker(),
	}
	var waits *team.Recorded
	if rec := rd.recorded; rec != nil {
		o.Recorded, o.Before, waits = rec.Servers, rec.Endings, rec.Waits
	}
	if rd.job().Agents.Enabled && rd.model.Of != nil {
		made.team = team.New(o, made.earlier, waits)
		o.Team, o.News = made.team.Root(), made.team.Root().News
	}
	r.end.agents = &made
	var err error
	made.main, err = worker.New(ctx, o)
	if made.team != nil {
		made.team.Root().Lead(made.main)
	}
	return &made, err
}

// asking puts all questions of a run to people; nil where there are none.
type asking = func(ctx context.Context, all []question.Question) error

// people are those to whom the agent puts questions.
func (r *runner) people(a *assignment) asking {
	if a.recorded != nil {
		return a.recorded.People()
	}
	if a.job().Task.Questions != "ask" || a.task.Issue == nil || r.env.Token() == "" {
		return nil
	}
	return (&worker.IssuePeople{Forge: a.project.Forge, Issue: *a.task.Issue, Redact: r.rec.Redact}).Ask
}

// work is what the agent's work has come to.
func (a *agents) work() worker.Work {
	if a.main == nil {
		return a.recorded
	}
	work := a.main.Work()
	if work.Plan.Steps == nil {
		work.Plan = a.recorded.Plan
	}
	return work
}

// others are the agents that the agent of the run started.
func (a *agents) others() []*transcript.Agent {
	if a.team == nil {
		return a.earlier
	}
	return a.team.Agents()
}

// spent is what all agents of the run used, and what that cost.
func (a *agents) spent() (spent agent.Spent, cost *float64) {
	work := a.work()
	spent, cost = work.Spent, work.Cost
	others := a.others()
	for _, o := range others {
		spent.Turns, spent.Calls, spent.Usage = spent.Turns+o.Turns, spent.Calls+o.Calls, spent.Usage.Add(model.Usage(o.Usage))
		spent.Models = append(slices.Clip(spent.Models), o.Models...)
	}
	if sum, known := transcript.CostOf(spent.Models); known {
		cost = &sum
	} else if len(others) > 0 {
		cost = nil
	}
	return spent, cost
}
