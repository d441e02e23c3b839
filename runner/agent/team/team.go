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

// Team holds all started agents of a run. It is safe for concurrent use.
type Team struct {
	options       worker.Options // of the run's own agent
	root          *member
	recordedOrder *Order // nil where nothing is replayed

	mu           sync.Mutex
	children     []*child
	earlier      []*transcript.Agent // of the run before it went on
	changeSignal chan struct{}       // closed and recreated at each change of a child
	running      sync.WaitGroup
	mergeLock    sync.Mutex // guards reading and merging changes
}

// NewRunAgents returns a run's agent with an empty conversation, at the head of a team if the job has one.
// earlier are a resumed run's agents. waits are a replayed run's recorded waits; nil for none. The
// agent is valid also with an error.
func NewRunAgents(ctx context.Context, o worker.Options, earlier []*transcript.Agent, waits *Order) (*worker.Agent, error) {
	if !o.Job.Agents.Enabled || o.Model.Of == nil {
		return worker.New(ctx, o)
	}
	root := newTeam(o, earlier, waits).root
	o.Team, o.News = root, root.takeNews
	var err error
	root.agent, err = worker.New(ctx, o)
	return root.agent, err
}

// newTeam returns the team of the agent made by options.
func newTeam(options worker.Options, earlier []*transcript.Agent, waits *Order) *Team {
	t := &Team{options: options, earlier: earlier, recordedOrder: waits, changeSignal: make(chan struct{})}
	started := 0
	for _, a := range earlier {
		if a.AskedBy == transcript.MainAgent {
			started++
		}
	}
	t.root = &member{team: t, started: started, usesScripts: options.ScriptEngine != nil && (options.Job.Model.Tools == "code" || options.Job.Model.Tools == "auto" && options.Model.Profile.Code)}
	return t
}

// Resume ends the agents of a killed run: it records the end of working ones and removes their
// copies.
func Resume(rec *record.Record, boxes *confine.Sandboxes, earlier []*transcript.Agent) error {
	var killed []string
	for _, a := range earlier {
		if a.Status != transcript.AgentRunning {
			continue
		}
		killed = append(killed, a.Name)
		a.Status, a.Reason = agents.Shutdown, "killed"
		if err := rec.AppendBy(a.ID, transcript.TypeAgentFinished, transcript.AgentFinished{Status: a.Status, Reason: a.Reason}); err != nil {
			return err
		}
	}
	if len(killed) > 0 {
		rec.Warn("agents_ended", "The run was killed while agents worked (%s); their work on copies of the workspace is not in the change.", strings.Join(killed, ", "))
	}
	return boxes.DropCopies()
}

// member is the team as one agent sees it.
type member struct {
	team        *Team
	child       *child // nil for the run's own agent
	depth       int    // of those that started one another above it
	agent       *worker.Agent
	usesScripts bool            // its model calls tools in scripts
	ctx         context.Context // of its work; nil while it does none

	// Guarded by the team's lock.
	started        int       // agents, by it
	news           []notice  // not yet told to the agent
	waitUntil      time.Time // end of the wait at its end; zero before it
	recordedMerges []string  // that a recorded wait made; nil for any
}

// notice is the news of a child's end, for its starter.
type notice struct {
	of     *child
	status agents.Status
}

var _ worker.Team = (*member)(nil)

// Tools returns the model's tools for managing its agents.
func (m *member) Tools() []tools.Tool {
	if m.depth >= m.team.job().Agents.Depth {
		return nil
	}
	setup := agents.Setup{Team: m, Roles: m.team.roles(), MaxAgents: m.team.job().Agents.Most}
	switch {
	case m.usesScripts:
		return agents.Collaboration(setup)
	case m.team.givesTasks():
		return agents.Task(setup)
	}
	return agents.Direct(setup)
}

func (t *Team) job() *job.Job { return t.options.Job }

// roles returns the available roles, for models.
func (t *Team) roles() []agents.Role {
	var all []agents.Role
	for _, name := range t.job().Agents.RoleNames() {
		role, _ := t.job().Agents.Role(name)
		all = append(all, agents.Role{Name: name, Text: t.describeRole(role)})
	}
	return all
}

// describeRole describes a role's permissions.
func (t *Team) describeRole(role job.Role) string {
	may := map[string]string{
		job.WritesNone:   "It reads your tree, and runs no commands.",
		job.WritesOwn:    "It works on a copy of your tree, and its change is merged into yours.",
		job.WritesShared: "It changes your tree itself.",
	}[role.Writes]
	if role.Writes == job.WritesOwn && !t.options.Sandboxes.Overlaid() {
		may = "Not here: there are no copies of the tree."
	}
	words := strings.TrimSpace(role.Instructions)
	if line, _, more := strings.Cut(words, "\n"); more {
		words = line
	}
	return strings.TrimSpace(clip.Visible(words, 300) + " " + may)
}

// takeNews returns and clears the agent's messages.
func (m *member) takeNews() []string {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	var texts []string
	if m.child != nil {
		texts, m.child.messages = m.child.messages, nil
	}
	for _, n := range m.news {
		texts = append(texts, m.notice(n))
	}
	m.news = nil
	return texts
}

// notice returns the message about a child's end.
func (m *member) notice(n notice) string {
	n.status.Text = m.team.options.Record.Redact(n.status.Text)
	if m.usesScripts {
		return agents.Final(m.id(), n.of.id, n.status).String()
	}
	text, err := agents.Notification(n.of.id, n.status)
	if err != nil {
		return fmt.Sprintf("The agent %s has ended, and what it said can't be told: %v.", n.of.id, err)
	}
	return text
}

// id returns the agent's ID, for its children.
func (m *member) id() string {
	if m.child == nil {
		return "/root"
	}
	return m.child.id
}

// starterName is who started an agent, in the record.
func (m *member) starterName() string {
	if m.child == nil {
		return transcript.MainAgent
	}
	return m.child.id
}

// notifyWaiters wakes waiters after a change. The caller holds the lock.
func (t *Team) notifyWaiters() {
	close(t.changeSignal)
	t.changeSignal = make(chan struct{})
}

// await waits until met returns true. The caller holds the lock before and after, and met runs with
// it.
func (t *Team) await(ctx context.Context, met func() bool) error {
	for !met() {
		changed := t.changeSignal
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if err := ctx.Err(); err != nil && !met() {
			return err
		}
	}
	return nil
}

// findBelow returns an agent below the caller, at any depth, by ID or name. The caller holds the lock.
func (m *member) findBelow(id string) *child {
	for _, c := range m.team.children {
		if (c.id == id || c.name == id) && m.isAbove(c) {
			return c
		}
	}
	return nil
}

// isAbove reports whether an agent is below the caller, at any depth.
func (m *member) isAbove(c *child) bool {
	for at := c.starter; ; at = at.child.starter {
		if at == m {
			return true
		}
		if at.child == nil {
			return false
		}
	}
}

// descendants returns the agents below a child, at any depth. The caller holds the lock.
func (c *child) descendants() []*child {
	return slices.DeleteFunc(slices.Clone(c.starter.team.children), func(other *child) bool { return other == c || !c.ownTeam.isAbove(other) })
}

// names of started agents, in order.
var names = []string{
	"Curie", "Noether", "Hopper", "Lovelace", "Meitner", "Franklin", "Goodall", "Hypatia", "Kepler", "Sagan", "Turing", "Euler",
	"Gauss", "Darwin", "Faraday", "Galileo", "Hubble", "Mendel", "Pascal", "Planck", "Raman", "Tesla", "Volta", "Wegener",
}

// nameOf returns the name of the next agent.
func (m *member) nameOf(number int) string {
	name := names[(number-1)%len(names)]
	if round := (number - 1) / len(names); round > 0 {
		name = fmt.Sprintf("%s-%d", name, round+1)
	}
	if m.child != nil {
		return m.child.name + "/" + name
	}
	return name
}

// idOf is the id of an agent: the same in each replay of a run.
func (m *member) idOf(order agents.Order, name string) string {
	if m.usesScripts {
		return m.id() + "/" + order.Name
	}
	sum := sha256.Sum256([]byte(m.team.options.Record.ID + "\x00" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8: made by a rule of one's own
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Used returns the use of a resumed run's earlier agents, and the used or reserved share of the
// caller's own.
func (m *member) Used() agent.Used {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	return m.used()
}
