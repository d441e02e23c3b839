package team

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// team holds all agents that agents of a run have started. It is safe for concurrent use.
type team struct {
	options       worker.Options // options of the run's own agent
	root          *member
	recordedOrder *Order // nil outside a replay

	mu            sync.Mutex
	children      []*child
	earlierAgents []*transcript.Agent // agents from before the run was resumed
	changeSignal  chan struct{}       // closed and recreated at each change of a child
	running       sync.WaitGroup
	mergeLock     sync.Mutex // guards reading and merging changes
}

// NewRunAgents returns the run's own agent with an empty conversation. The agent leads a team if the job allows agents.
// earlier are the agents that a resumed run has started so far. recorded is nil outside a replay. The agent is valid
// even if there is an error.
func NewRunAgents(ctx context.Context, o worker.Options, earlier []*transcript.Agent, recorded *Order) (*worker.Agent, error) {
	if !o.Job.Agents.Enabled || o.Model.ForAgent == nil {
		return worker.New(ctx, o)
	}
	root := newTeam(o, earlier, recorded).root
	o.Team = root
	var err error
	root.agent, err = worker.New(ctx, o)
	return root.agent, err
}

// newTeam returns an empty team for the run's own agent, whose options are given.
func newTeam(options worker.Options, earlier []*transcript.Agent, recorded *Order) *team {
	t := &team{options: options, earlierAgents: earlier, recordedOrder: recorded, changeSignal: make(chan struct{})}
	started := 0
	for _, a := range earlier {
		if a.StartedBy == transcript.MainAgent {
			started++
		}
	}
	form := options.Job.Model.Tools
	wantsScripts := form == "code" || form == "auto" && options.Model.Profile.Code
	t.root = &member{team: t, startedCount: started, usesScripts: wantsScripts && options.ScriptEngine != nil}
	return t
}

// Resume records that the agents that were working when the run was killed have ended. It removes all copies of the
// tree.
func Resume(rec *record.Record, boxes *confine.Sandboxes, earlier []*transcript.Agent) error {
	var killed []string
	for _, a := range earlier {
		if a.Status != transcript.AgentRunning {
			continue
		}
		killed = append(killed, a.Name)
		a.Status, a.Reason = agents.Shutdown, "killed"
		if err := rec.AppendBy(a.ID, transcript.AgentFinished{Status: a.Status, Reason: a.Reason}); err != nil {
			return err
		}
	}
	if len(killed) > 0 {
		rec.Warn("agents_ended", "The run was killed while agents worked (%s); their work on copies of the work tree is not in the change.", strings.Join(killed, ", "))
	}
	return boxes.DropCopies()
}

// member is the team as one agent sees it.
type member struct {
	team        *team
	child       *child // nil for the run's own agent
	depth       int    // number of agents above it
	agent       *worker.Agent
	usesScripts bool            // its model calls tools in scripts
	ctx         context.Context // context of its work; nil while it is idle

	// Guarded by the team's lock.
	startedCount   int         // number of agents that it started
	news           []endNotice // news that the agent has not received yet
	waitUntil      time.Time   // when Settle stops waiting; zero before the first Settle
	recordedMerges []string    // agents that the recorded wait merged; nil outside a replayed wait
}

// endNotice is the news of a child's end, for its starter.
type endNotice struct {
	child     *child
	endStatus agents.Status
}

var _ worker.Team = (*member)(nil)

// Tools returns the model's tools for starting and managing agents, or nil at the deepest level.
func (m *member) Tools() []tools.Tool {
	if m.depth >= m.team.job().Agents.Depth {
		return nil
	}
	setup := agents.Setup{Team: m, Roles: m.team.roles(), MaxAgents: m.team.job().Agents.MaxOpen}
	switch {
	case m.usesScripts:
		return agents.Collaboration(setup)
	case m.team.givesTasks():
		return agents.Task(setup)
	}
	return agents.Direct(setup)
}

func (t *team) job() *job.Job { return t.options.Job }

// roles returns the roles that a new agent can have.
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

// TakeNews returns the agent's new messages and the notices of its children's ends, and forgets them.
func (m *member) TakeNews() []string {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	var texts []string
	if m.child != nil {
		texts, m.child.messages = m.child.messages, nil
	}
	for _, n := range m.news {
		texts = append(texts, m.noticeText(n))
	}
	m.news = nil
	return texts
}

// noticeText returns the message that tells the agent about a child's end.
func (m *member) noticeText(n endNotice) string {
	n.endStatus.Text = m.team.options.Record.Redact(n.endStatus.Text)
	if m.usesScripts {
		return agents.Final(m.id(), n.child.id, n.endStatus).String()
	}
	text, err := agents.Notification(n.child.id, n.endStatus)
	if err != nil {
		return fmt.Sprintf("The agent %s has ended, and what it said can't be told: %v.", n.child.id, err)
	}
	return text
}

// id returns the agent's ID, as its children know it.
func (m *member) id() string {
	if m.child == nil {
		return "/root"
	}
	return m.child.id
}

// starterName returns the agent's name in the record of an agent that it starts.
func (m *member) starterName() string {
	if m.child == nil {
		return transcript.MainAgent
	}
	return m.child.id
}

// notifyWaiters wakes every await, because a child has changed. The caller holds the lock.
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

// findBelow returns the agent with this ID or name that m started, directly or through other agents, or nil. The
// caller holds the lock.
func (m *member) findBelow(id string) *child {
	for _, c := range m.team.children {
		if (c.id == id || c.name == id) && m.isAbove(c) {
			return c
		}
	}
	return nil
}

// isAbove reports whether m started c, directly or through other agents.
func (m *member) isAbove(c *child) bool {
	for ancestor := c.starter; ; ancestor = ancestor.child.starter {
		if ancestor == m {
			return true
		}
		if ancestor.child == nil {
			return false
		}
	}
}

// descendants returns the agents that a child started, directly or through other agents. The caller holds the lock.
func (c *child) descendants() []*child {
	return slices.DeleteFunc(slices.Clone(c.starter.team.children), func(other *child) bool { return other == c || !c.ownTeam.isAbove(other) })
}

// agentNames are the names of started agents, in order.
var agentNames = []string{
	"Curie", "Noether", "Hopper", "Lovelace", "Meitner", "Franklin", "Goodall", "Hypatia", "Kepler", "Sagan", "Turing", "Euler",
	"Gauss", "Darwin", "Faraday", "Galileo", "Hubble", "Mendel", "Pascal", "Planck", "Raman", "Tesla", "Volta", "Wegener",
}

// nameOf returns the name for an agent that m starts. number counts the agents that m starts, from 0.
func (m *member) nameOf(number int) string {
	name := agentNames[number%len(agentNames)]
	if round := number / len(agentNames); round > 0 {
		name = fmt.Sprintf("%s-%d", name, round+1)
	}
	if m.child != nil {
		return m.child.name + "/" + name
	}
	return name
}

// idOf returns the ID of a new agent called name. A replay of the run gives the same ID.
func (m *member) idOf(order agents.Order, name string) string {
	if m.usesScripts {
		return m.id() + "/" + order.Name
	}
	sum := sha256.Sum256([]byte(m.team.options.Record.ID + "\x00" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // mark it as a UUID of version 8 (custom)
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Used returns how much of the agent's budget its agents have used or reserved.
func (m *member) Used() agent.Used {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	return m.usedByChildren()
}
