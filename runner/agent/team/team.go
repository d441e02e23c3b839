package team

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// Team are all agents of a run that others started. Its methods may be called from several
// goroutines.
type Team struct {
	options worker.Options // of the run's own agent
	root    *Member
	waits   *Recorded // nil where nothing is replayed

	mu       sync.Mutex
	children []*child
	earlier  []*transcript.Agent // of the run before it went on
	changed  chan struct{}       // closed, and made anew, when something of a child is otherwise
	running  sync.WaitGroup
	merging  sync.Mutex // of what looks for changes, and merges them
}

// New is the team of the agent that options make. earlier are the agents that the run had before it
// went on, and waits what waits for agents came to in the run that is replayed; nil for none.
func New(options worker.Options, earlier []*transcript.Agent, waits *Recorded) *Team {
	t := &Team{options: options, earlier: earlier, waits: waits, changed: make(chan struct{})}
	started := 0
	for _, a := range earlier {
		if a.AskedBy == transcript.MainAgent {
			started++
		}
	}
	t.root = &Member{team: t, started: started, scripts: options.ScriptEngine != nil && (options.Job.Model.Tools == "code" || options.Job.Model.Tools == "auto" && options.Model.Profile.Code)}
	return t
}

// Resume takes it that the agents which a run had before it was killed are gone: it records the end
// of those that were at work, and removes their copies.
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

// Root is the team as the run's own agent sees it, which Lead tells of the agent.
func (t *Team) Root() *Member { return t.root }

// Lead says whose agents these are.
func (m *Member) Lead(a *worker.Agent) { m.agent = a }

// Member is the team as one agent sees it.
type Member struct {
	team    *Team
	who     *child // nil for the run's own agent
	depth   int    // of those that started one another above it
	agent   *worker.Agent
	scripts bool            // its model calls tools in scripts
	ctx     context.Context // of its work; nil while it does none

	// With the lock of the team.
	started int       // agents, by it
	news    []notice  // that it was not told yet
	until   time.Time // when it waits no longer at its end; zero before that
	merges  []string  // that a recorded wait made; nil for any
}

// notice is the end of a child that the one who started it is to be told.
type notice struct {
	of     *child
	status agents.Status
}

var _ worker.Team = (*Member)(nil)

// Tools are by what the model leads its agents.
func (m *Member) Tools() []tools.Tool {
	if m.depth >= m.team.job().Agents.Depth {
		return nil
	}
	setup := agents.Setup{Team: m, Roles: m.team.roles(), Most: m.team.job().Agents.Most}
	switch {
	case m.scripts:
		return agents.Collaboration(setup)
	case m.team.tasks():
		return agents.Task(setup)
	}
	return agents.Direct(setup)
}

func (t *Team) job() *job.Job { return t.options.Job }

// roles are those that can be started, for models.
func (t *Team) roles() []agents.Role {
	var all []agents.Role
	for _, name := range t.job().Agents.RoleNames() {
		role, _ := t.job().Agents.Role(name)
		all = append(all, agents.Role{Name: name, Text: t.about(role)})
	}
	return all
}

// about tells what an agent of a role may do.
func (t *Team) about(role job.Role) string {
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

// News are the messages that have come for the agent.
func (m *Member) News() []string {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	var texts []string
	if m.who != nil {
		texts, m.who.mail = m.who.mail, nil
	}
	for _, n := range m.news {
		texts = append(texts, m.notice(n))
	}
	m.news = nil
	return texts
}

// notice is what the agent is told of the end of a child.
func (m *Member) notice(n notice) string {
	n.status.Text = m.team.options.Record.Redact(n.status.Text)
	if m.scripts {
		return agents.Final(m.id(), n.of.id, n.status).String()
	}
	text, err := agents.Notification(n.of.id, n.status)
	if err != nil {
		return fmt.Sprintf("The agent %s has ended, and what it said can't be told: %v.", n.of.id, err)
	}
	return text
}

// id is that of the agent, for those that it starts.
func (m *Member) id() string {
	if m.who == nil {
		return "/root"
	}
	return m.who.id
}

// byName is who started an agent, in the record.
func (m *Member) byName() string {
	if m.who == nil {
		return transcript.MainAgent
	}
	return m.who.id
}

// tell says that something is otherwise. The caller has the lock.
func (t *Team) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits until met is true. It is called with the lock, and has it afterwards; met is asked with it.
func (t *Team) await(ctx context.Context, met func() bool) error {
	for !met() {
		changed := t.changed
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

// mine is the agent that the caller, or one of those that it started, has started; by its id or
// its name. The caller has the lock.
func (m *Member) mine(id string) *child {
	for _, c := range m.team.children {
		if (c.id == id || c.name == id) && m.leads(c) {
			return c
		}
	}
	return nil
}

// leads says whether an agent was started by the caller, or by one of those that it started.
func (m *Member) leads(c *child) bool {
	for at := c.by; ; at = at.who.by {
		if at == m {
			return true
		}
		if at.who == nil {
			return false
		}
	}
}

// below are the agents that one started, and theirs. The caller has the lock.
func (c *child) below() []*child {
	return slices.DeleteFunc(slices.Clone(c.by.team.children), func(other *child) bool { return other == c || !c.member.leads(other) })
}

// names are those of agents, in the order in which one agent starts them.
var names = []string{
	"Curie", "Noether", "Hopper", "Lovelace", "Meitner", "Franklin", "Goodall", "Hypatia", "Kepler", "Sagan", "Turing", "Euler",
	"Gauss", "Darwin", "Faraday", "Galileo", "Hubble", "Mendel", "Pascal", "Planck", "Raman", "Tesla", "Volta", "Wegener",
}

// nameOf is the name of the next agent that one starts.
func (m *Member) nameOf(number int) string {
	name := names[(number-1)%len(names)]
	if round := (number - 1) / len(names); round > 0 {
		name = fmt.Sprintf("%s-%d", name, round+1)
	}
	if m.who != nil {
		return m.who.name + "/" + name
	}
	return name
}

// idOf is the id of an agent: the same in each replay of a run.
func (m *Member) idOf(order agents.Order, name string) string {
	if m.scripts {
		return m.id() + "/" + order.Name
	}
	sum := sha256.Sum256([]byte(m.team.options.Record.ID + "\x00" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8: made by a rule of one's own
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Agents are all that were started in the run, in the order of their starts.
func (t *Team) Agents() []*transcript.Agent {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.earlier)
	for _, c := range t.children {
		all = append(all, c.recorded())
	}
	return all
}

// Used is what agents of the run used before it went on, and those that the caller started, or may yet.
func (m *Member) Used() agent.Used {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	return m.used()
}
