package team

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// NewRunAgents returns a run's agent with an empty conversation, at the head of a team if the job has one.
// earlier are a resumed run's agents. waits are a replayed run's recorded waits; nil for none. The
// agent is valid also with an error.
func NewRunAgents(ctx context.Context, o worker.Options, earlier []*transcript.Agent, waits *Order) (*worker.Agent, error) {
	if !o.Job.Agents.Enabled || o.Model.Of == nil {
		return worker.New(ctx, o)
	}
	t := newTeam(o, earlier, waits)
	o.Team, o.News = t.Root(), t.Root().takeNews
	main, err := worker.New(ctx, o)
	t.Root().lead(main)
	return main, err
}
