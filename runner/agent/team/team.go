package team

import (
	"context"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// team holds the agents of a run: its own and all subagents. It is safe for concurrent use.
type team struct {
	options       assembly.Options // options of the run's own agent
	root          *teamAgent       // the run's own agent
	recordedOrder *RecordedOrder   // nil outside a replay

	mu               sync.Mutex
	subagents        []*teamAgent           // in order of their starts
	earlierSubagents []*transcript.Subagent // subagents from before the run was resumed
	changeSignal     chan struct{}          // closed and recreated at each change of a subagent
	mergeLock        sync.Mutex             // guards reading and merging changes
}

// NewAgent returns the run's own agent with an empty conversation. The agent leads a team if the job allows subagents.
// earlier are the subagents that a resumed run has started so far. recorded is nil outside a replay. The agent is valid
// even if there is an error.
func NewAgent(ctx context.Context, o assembly.Options, earlier []*transcript.Subagent, recorded *RecordedOrder) (*assembly.Agent, error) {
	if !o.Job.Agents.Enabled || o.Model.ForSubagent == nil {
		return assembly.New(ctx, o)
	}
	root := newTeam(o, earlier, recorded).root
	o.Team = root
	var err error
	root.agent, err = assembly.New(ctx, o)
	return root.agent, err
}

// newTeam returns an empty team for the run's own agent, whose options are given.
func newTeam(options assembly.Options, earlier []*transcript.Subagent, recorded *RecordedOrder) *team {
	t := &team{options: options, earlierSubagents: earlier, recordedOrder: recorded, changeSignal: make(chan struct{})}
	started := 0
	for _, s := range earlier {
		if s.StartedBy == transcript.MainAgent {
			started++
		}
	}
	form := options.Job.Model.Tools
	wantsScripts := form == "code" || form == "auto" && options.Model.Profile.Code
	t.root = &teamAgent{team: t, id: "/root", startedCount: started, usesScripts: wantsScripts && options.ScriptEngine != nil}
	return t
}

// Resume records that the subagents that were working when the run was killed have ended. It removes all copies of the
// tree.
func Resume(rec *record.Record, boxes *confine.Sandboxes, earlier []*transcript.Subagent) error {
	var killed []string
	for _, s := range earlier {
		if s.Status != transcript.AgentRunning {
			continue
		}
		killed = append(killed, s.Name)
		s.Status, s.Reason = agents.Shutdown, "killed"
		if err := rec.AppendBy(s.ID, transcript.AgentFinished{Status: s.Status, Reason: s.Reason}); err != nil {
			return err
		}
	}
	if len(killed) > 0 {
		rec.Warn("agents_ended", "The run was killed while agents worked (%s); their work on copies of the work tree is not in the change.", strings.Join(killed, ", "))
	}
	return boxes.DropCopies()
}

func (t *team) job() *job.Job { return t.options.Job }

// roles returns the roles that a new subagent can have.
func (t *team) roles() []agents.Role {
	var all []agents.Role
	for _, name := range t.job().Agents.RoleNames() {
		role, _ := t.job().Agents.Role(name)
		all = append(all, agents.Role{Name: name, Text: t.describeRole(role)})
	}
	return all
}

// describeRole describes a role to the model: the first line of its instructions, and what it may change.
func (t *team) describeRole(role job.Role) string {
	mayChange := map[string]string{
		job.WritesNone:   "It reads your tree, and runs no commands.",
		job.WritesOwn:    "It works on a copy of your tree, and its change is merged into yours.",
		job.WritesShared: "It changes your tree itself.",
	}[role.Writes]
	if role.Writes == job.WritesOwn && !t.options.Sandboxes.Overlaid() {
		mayChange = "Not here: there are no copies of the tree."
	}
	instructions := strings.TrimSpace(role.Instructions)
	if line, _, hasMore := strings.Cut(instructions, "\n"); hasMore {
		instructions = line
	}
	return strings.TrimSpace(clip.Visible(instructions, 300) + " " + mayChange)
}

// notifyWaiters wakes every await, because a subagent has changed. The caller holds the lock.
func (t *team) notifyWaiters() {
	close(t.changeSignal)
	t.changeSignal = make(chan struct{})
}

// await waits until condition returns true, or returns the error of ctx if ctx ends first. The caller holds the lock.
// await releases it while it waits, but not while it calls condition.
func (t *team) await(ctx context.Context, condition func() bool) error {
	for !condition() {
		changed := t.changeSignal
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if err := ctx.Err(); err != nil && !condition() {
			return err
		}
	}
	return nil
}

// givesTasks reports whether the model has a tool such as OpenCode's task, which starts a subagent and waits for its end.
func (t *team) givesTasks() bool {
	family := t.job().Model.Tools
	return family != "" && len(dialect.NamesInFamily(family, dialect.Leads)) > 0
}

// lacksCloseTool reports whether the model has no tool for closing subagents.
func (t *team) lacksCloseTool() bool { return t.root.usesScripts || t.givesTasks() }

// openCount returns the number of open subagents. Ended ones count only if the model can close them. The caller holds
// the lock.
func (t *team) openCount() (n int) {
	for _, s := range t.subagents {
		closesItself := t.lacksCloseTool() && s.status.Ended()
		if !s.closed && !closesItself {
			n++
		}
	}
	return n
}

// tooManySubagentsError returns the error that tells the model that no further subagent may start.
func (t *team) tooManySubagentsError() error {
	if t.lacksCloseTool() {
		return agents.Refusef("%d agents are at work, which is as many as there may be (agents.most). Wait until one has ended.", t.openCount())
	}
	return agents.Refusef("%d agents are open, which is as many as there may be (agents.most). Close one that has ended, by close_agent, before you start another.", t.openCount())
}
