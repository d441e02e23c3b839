package team

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// OfRun holds a run's agent and its team. The zero value has none.
type OfRun struct {
	Main    *worker.Agent       // nil where none works
	Earlier []*transcript.Agent // that a resumed run had
	team    *Team               // nil where the agent may start no others
}

// Make returns a run's agent with an empty conversation. earlier are a resumed run's agents. waits
// are a replayed run's recorded waits; nil for none. The agents are valid also with an error.
func Make(ctx context.Context, o worker.Options, earlier []*transcript.Agent, waits *Recorded) (*OfRun, error) {
	r := &OfRun{Earlier: earlier}
	if o.Job.Agents.Enabled && o.Model.Of != nil {
		r.team = New(o, earlier, waits)
		o.Team, o.News = r.team.Root(), r.team.Root().News
	}
	var err error
	r.Main, err = worker.New(ctx, o)
	if r.team != nil {
		r.team.Root().Lead(r.Main)
	}
	return r, err
}

// Summary is the last words of the agent of the run.
func (r *OfRun) Summary() string { return r.work().Summary }

func (r *OfRun) work() worker.Work {
	if r.Main == nil {
		return worker.Work{}
	}
	return r.Main.Work()
}

// Spent returns the use of all agents of the run, and the cost; nil without a known price.
func (r *OfRun) Spent() (spent agent.Spent, cost *float64) {
	work, others := r.work(), r.Earlier
	spent, cost = work.Spent, work.Cost
	if r.team != nil {
		others = r.team.Agents()
	}
	for _, o := range others {
		spent.Turns, spent.Calls, spent.Usage = spent.Turns+o.Turns, spent.Calls+o.Calls, spent.Usage.Add(model.Usage(o.Usage))
		spent.Models = append(slices.Clip(spent.Models), o.Models...)
	}
	if sum, known := transcript.CostOf(spent.Models); known {
		return spent, &sum
	}
	if len(others) > 0 {
		cost = nil
	}
	return spent, cost
}
