package team

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
)

func TestShareLeavesPartForStarter(t *testing.T) {
	limits := agent.Limits{Turns: 100, Calls: 50, Tokens: 10_000, CostUSD: 1}
	var spent agent.Used
	for range 4 { // each is what the one before was
		part := must.Get(equalPart(limits, spent, 5-spent.Turns/20))(t)
		must.Same(t, agent.Used{Turns: 20, Calls: 10, Tokens: 2000, CostUSD: part.CostUSD}, part)
		must.Same(t, true, near(0.2, part.CostUSD), part.CostUSD)
		spent = spent.Add(part)
	}
	must.Same(t, 20, limits.Turns-spent.Turns)
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestShareOfUnlimitedIsUnlimited(t *testing.T) {
	part := must.Get(equalPart(agent.Limits{Turns: 10}, agent.Used{Turns: 2, Calls: 7, Tokens: 9}, 2))(t)
	must.Same(t, agent.Used{Turns: 4}, part)
}

func TestRefusesTooSmallShare(t *testing.T) {
	for key, limits := range map[string]agent.Limits{
		"limits.turns": {Turns: 5}, "limits.tool_calls": {Calls: 3}, "limits.tokens": {Tokens: 4000}, "limits.cost_usd": {CostUSD: 0.1},
	} {
		_, err := equalPart(limits, agent.Used{Turns: 2, Calls: 2, Tokens: 2500, CostUSD: 0.1}, 2)
		if refusal, is := err.(*agents.Refusal); !is || !strings.Contains(refusal.Words, key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// led is a team whose agent has started some, which stand as their states say.
func led(t *testing.T, states ...string) (*teamAgent, []*teamAgent) {
	t.Helper()
	j := &job.Job{Agents: job.Agents{Enabled: true, MaxOpen: 3, Depth: 1}}
	rec := record.New("run-1", nil)
	t.Cleanup(rec.Close)
	team := newTeam(assembly.Options{Shared: assembly.Shared{Record: rec, Sandboxes: &confine.Sandboxes{Control: egress.Control{Record: rec, Job: j}}}, Job: j}, nil, nil)
	for i, state := range states {
		c := &teamAgent{team: team, starter: team.root, name: subagentNames[i], id: "id-" + subagentNames[i], status: agents.Status{State: state, Text: state + " it is"}}
		c.spent = agent.Spent{Turns: 2, Calls: 1, Usage: model.Usage{Input: 10, Output: 5}}
		if state == agents.Running {
			c.stopTurn, c.reserved = func(error) {}, agent.Used{Turns: 7}
		}
		team.subagents = append(team.subagents, c)
	}
	return team.root, team.subagents
}

func TestWaitReturnsAtFirstEnd(t *testing.T) {
	m, all := led(t, agents.Running, agents.Running)
	m.news = []endNotice{{subagent: all[0]}}
	go func() {
		m.team.mu.Lock()
		defer m.team.mu.Unlock()
		all[1].status = agents.Status{State: agents.Completed, Text: "Seen."}
		m.team.notifyWaiters()
	}()
	got, timedOut, err := m.Wait(t.Context(), []string{all[0].id, all[1].name}, time.Hour)
	want := map[string]agents.Status{all[1].name: {State: agents.Completed, Text: "Seen."}}
	must.Do(t, err)
	must.Same(t, want, got)
	must.Same(t, false, timedOut)
	if _, timedOut, _ := m.Wait(t.Context(), []string{all[0].id}, time.Millisecond); !timedOut {
		t.Error("a wait for one that works is over")
	}
	if got, _, _ := m.Wait(t.Context(), []string{"nobody"}, time.Hour); got["nobody"].State != agents.NotFound {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.Wait(ctx, []string{all[0].id}, time.Hour); err == nil {
		t.Error("a wait goes on when its context has ended")
	}
}

func TestCountsReservedShareUntilReturned(t *testing.T) {
	m, all := led(t, agents.Running, agents.Completed)
	m.team.earlierSubagents = []*transcript.Subagent{{Turns: 3, Calls: 4, Usage: transcript.Usage{Input: 1}}}
	want := agent.Used{Turns: 2 + 7 + 2 + 3, Calls: 1 + 1 + 4, Tokens: 15 + 15 + 1}
	must.Same(t, want, m.Used())
	all[0].stopTurn, all[0].reserved = nil, agent.Used{}
	must.Same(t, 7, m.Used().Turns)
}

func TestChargesMaximumForUnknownCost(t *testing.T) {
	m, all := led(t, agents.Completed)
	priced := &price.List{Rates: price.Rates{Input: 1}}
	models := []transcript.ModelUse{{Model: "priced", Price: priced, CostUSD: 0.25, Usage: transcript.Usage{Input: 10}}}
	c := all[0]
	c.spent.Models, c.allowed.CostUSD = models, 1
	if got := m.Used().CostUSD; !near(got, 0.25) {
		t.Errorf("a known cost counts as %v", got)
	}
	c.spent.Models = append(models, transcript.ModelUse{Model: "unpriced"})
	if got := m.Used().CostUSD; !near(got, 0.25) {
		t.Errorf("with a fallback that was not used it counts as %v", got)
	}
	c.spent.Models[1].Usage.Output = 7
	if got := m.Used().CostUSD; !near(got, 1) {
		t.Errorf("with a fallback of no known price it counts as %v", got)
	}
	c.allowed.CostUSD, c.reserved.CostUSD = 1.5, 0.5 // another turn
	if got := m.Used().CostUSD; !near(got, 1.5) {
		t.Errorf("while it works again it counts as %v", got)
	}
	m.team.earlierSubagents, m.team.subagents = []*transcript.Subagent{{Models: c.spent.Models, MaxUSD: 2}}, nil
	if got := m.Used().CostUSD; !near(got, 2) {
		t.Errorf("after a restart it counts as %v", got)
	}
	m.team.earlierSubagents[0].Models = []transcript.ModelUse{{Model: "unpriced", Usage: transcript.Usage{Input: 10}}}
	must.Same(t, 0, m.Used().CostUSD, "where no price was known from the start, and no limit holds, it counts as")
}

func TestCountsOpenAgents(t *testing.T) {
	m, all := led(t, agents.Completed, agents.Running, agents.Errored)
	must.Same(t, 3, m.team.openCount())
	m.ctx = t.Context()
	if _, _, err := m.Spawn(t.Context(), agents.Order{Message: "x"}); err == nil || !strings.Contains(err.Error(), "agents.most") {
		t.Errorf("a fourth one: %v", err)
	}
	if _, err := m.Close(all[0].id); err != nil || m.team.openCount() != 2 {
		t.Errorf("%v, %d are open", err, m.team.openCount())
	}
	must.Fail(t, "is closed", must.Err(m.Send(t.Context(), all[0].id, "Go on.", false)), "a message to one that is closed")
	m.team.root.usesScripts = true // where no model closes any
	must.Same(t, 1, m.team.openCount())
}

func TestParsesOwnPaths(t *testing.T) {
	paths := must.Get(cleanPaths([]string{"docs/", "a.txt", "src/**/*.go"}))(t)
	c := &teamAgent{paths: paths}
	for path, mine := range map[string]bool{
		"docs/a.md": true, "docs": true, "docs2/a.md": false, "a.txt": true, "b.txt": false, "src/x/y.go": true, "src/x/y.md": false,
		"DOCS/a.md": false, "other/a.txt": false, "A.TXT": false, "vendor/src/x/y.go": false,
	} {
		must.Same(t, mine, c.mayChange(path), path)
	}
	must.Same(t, true, (&teamAgent{}).mayChange("anything"), "one without paths of its own may not change all")
	for _, path := range []string{"/etc", "../x", ".."} {
		must.Fail(t, "", must.Err(cleanPaths([]string{path})), path, "is taken")
	}
}

func TestExcludesReplacementsOfExcludedFiles(t *testing.T) {
	var files []changeset.File
	for _, change := range []string{"D keep/deep/a", "A keep", "D lock", "A lock/x", "A lock/y/z", "D gone", "A gone/new.lock", "A gone/fine", "A keeps", "M free"} {
		f := changeset.File{Path: change[2:]}
		if change[0] != 'A' {
			f.OldMode = "100644"
		}
		if change[0] != 'D' {
			f.NewMode = "100644"
		}
		files = append(files, f)
	}
	left := excludedFiles(files, func(path string) bool { return slices.Contains([]string{"keep/deep/a", "lock", "gone/new.lock"}, path) })
	want := []string{"gone/new.lock", "keep", "keep/deep/a", "lock", "lock/x", "lock/y/z"}
	must.Same(t, want, slices.Sorted(maps.Keys(left)))
}

func TestSavesFilesUnderUniqueNames(t *testing.T) {
	c := &teamAgent{name: "Curie"}
	seen := map[string]string{}
	for _, name := range []string{"a/b", "a-b", "a", "b", "x/b", "A/B", "a\nb", "a b", strings.Repeat("long/", 500) + "b", strings.Repeat("b", 300), "a/\xff", "..."} {
		kept := c.savedName(name)
		if other, twice := seen[kept]; twice || len(kept) > 200 || strings.ContainsAny(kept, "/\n ") || strings.Contains(kept, "\xff") || !strings.HasPrefix(kept, "agent-Curie-") {
			t.Errorf("%q is kept as %q, and %q too", name, kept, other)
		}
		seen[kept] = name
	}
	if kept := c.savedName("dir/b.txt"); !strings.HasSuffix(kept, "-b.txt") {
		t.Error(kept)
	}
}

func TestReplayRepeatsAgentIDs(t *testing.T) {
	first, _ := led(t)
	second, _ := led(t)
	var ids []string
	for n := range 50 {
		ids = append(ids, first.idOf(first.nameOf(n)))
		must.Same(t, ids[n], second.idOf(second.nameOf(n)))
	}
	slices.Sort(ids)
	must.Same(t, 50, len(slices.Compact(ids)), "an id came twice")
}

func TestStartsNoTurnAfterStarterEnded(t *testing.T) {
	m, all := led(t, agents.Completed)
	below := &teamAgent{team: m.team, starter: all[0], name: "below", id: "id-below", status: agents.Status{State: agents.Completed}, closed: true}
	m.team.subagents = append(m.team.subagents, below)
	must.Get(m.Resume(below.id))(t)
	_, err := m.Send(t.Context(), below.id, "Go on", false)
	if refusal, is := err.(*agents.Refusal); !is || !strings.Contains(refusal.Words, "has ended") {
		t.Errorf("%v", err)
	}
}

func TestEndStopsAllAgentsBeforeWaiting(t *testing.T) {
	m, all := led(t, agents.Running, agents.Running)
	m.ctx = t.Context()
	first, second := all[0], all[1]
	first.turnDone, second.turnDone = make(chan struct{}), make(chan struct{})
	first.stopTurn = func(error) {}
	second.stopTurn = func(error) { // on which a call of the first waits
		for _, c := range []*teamAgent{second, first} {
			if c.stopTurn != nil {
				c.status, c.stopTurn = agents.Status{State: agents.Shutdown}, nil
				close(c.turnDone)
			}
		}
	}
	m.End() // or it waits for one that waits for another, without end
}

// TestReportsCrashAsStatus has an agent whose work breaks down by a fault of the runner.
func TestReportsCrashAsStatus(t *testing.T) {
	m, all := led(t, agents.Running)
	all[0].agent = nil // any use of it panics
	status, reason := all[0].work(t.Context())
	if status.State != agents.Errored || !strings.Contains(status.Text, "fault of agent-ci") || reason != "crash" {
		t.Errorf("got %+v, %q", status, reason)
	}
	if told := m.team.options.Record.Warnings(); len(told) != 1 || told[0].Code != "agent_panic" {
		t.Errorf("people are told %v", told)
	}
}
