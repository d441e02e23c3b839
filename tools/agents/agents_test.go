package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// fakeTeam has agents that stand as it was told, and writes down what is asked of it.
type fakeTeam struct {
	known    map[string]agents.Status
	unmerged []string
	merge    func(id string) (tools.Result, error)
	timedOut bool
	fault    error

	mu    sync.Mutex
	asked []string
}

func (f *fakeTeam) ask(format string, values ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, values...))
}

func (f *fakeTeam) status(id string) (agents.Status, error) {
	status, known := f.known[id]
	if !known {
		return status, agents.Unknown(id)
	}
	return status, f.fault
}

func (f *fakeTeam) Spawn(_ context.Context, o agents.Order) (string, string, error) {
	f.ask("spawn %+v", o)
	if o.Message == "one too many" {
		return "", "", agents.Refusef("4 agents are open already. Close one of them.")
	}
	if o.Name != "" {
		return "/root/" + o.Name, o.Name, nil
	}
	return "id-1", "Sagan", nil
}

func (f *fakeTeam) Send(_ context.Context, id, message string, interrupt bool) (string, error) {
	f.ask("send %s %q %t", id, message, interrupt)
	_, err := f.status(id)
	return "sub-1", err
}

func (f *fakeTeam) Note(id, message string) error {
	f.ask("note %s %q", id, message)
	_, err := f.status(id)
	return err
}

func (f *fakeTeam) Resume(id string) (agents.Status, error) { return f.status(id) }

func (f *fakeTeam) Wait(_ context.Context, ids []string, timeout time.Duration) (map[string]agents.Status, bool, error) {
	f.ask("wait %v %s", ids, timeout)
	if f.timedOut {
		return nil, true, f.fault
	}
	all := map[string]agents.Status{}
	for _, id := range ids {
		if status, known := f.known[id]; !known {
			all[id] = agents.Status{State: agents.NotFound}
		} else if status.Ended() {
			all[id] = status
		}
	}
	return all, false, f.fault
}

func (f *fakeTeam) Close(id string) (agents.Status, error) {
	f.ask("close %s", id)
	return f.status(id)
}

func (f *fakeTeam) Interrupt(id string) (agents.Status, error) { return f.status(id) }

func (f *fakeTeam) List(prefix string) []agents.Listed {
	var all []agents.Listed
	for _, id := range []string{"/root/a", "/root/b"} {
		if status, known := f.known[id]; known && strings.HasPrefix(id, prefix) {
			all = append(all, agents.Listed{Name: id, Status: status})
		}
	}
	return all
}

func (f *fakeTeam) Unmerged(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(f.unmerged), func(id string) bool { return len(ids) > 0 && !slices.Contains(ids, id) })
}

func (f *fakeTeam) Merge(_ context.Context, id string) (tools.Result, error) {
	f.ask("merge %s", id)
	if _, err := f.status(id); err != nil {
		return tools.Result{}, err
	}
	if f.merge != nil {
		return f.merge(id)
	}
	return tools.Result{Output: "Took over a.go of " + id + "."}, nil
}

var roles = []agents.Role{{Name: "explorer", Text: "Reads only."}, {Name: "worker", Text: "Writes."}}

func dispatcher(form func(agents.Setup) []tools.Tool, f *fakeTeam) *tools.Dispatcher {
	all := form(agents.Setup{Team: f, Roles: roles, MaxAgents: 4})
	return &tools.Dispatcher{Registry: tools.New(all...), Outputs: new(tools.Outputs)}
}

func stand() *fakeTeam {
	return &fakeTeam{known: map[string]agents.Status{
		"done": {State: agents.Completed, Text: "It is <b>done</b>."}, "mute": {State: agents.Completed}, "busy": {State: agents.Running},
		"broke":   {State: agents.Errored, Text: "no tokens left"},
		"/root/a": {State: agents.Completed, Text: "found"}, "/root/b": {State: agents.Running},
	}}
}

// exchange is a call and what comes of it.
type exchange struct{ name, tool, input, want, asked string }

func exchanges(t *testing.T, form func(agents.Setup) []tools.Tool, all []exchange) {
	t.Helper()
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			f := stand()
			d := dispatcher(form, f)
			result := d.Dispatch(t.Context(), []tools.Call{{ID: "1", Number: 1, Name: e.tool, Input: e.input}})[0]
			got := result.Output
			if result.Failed {
				got = "refused: " + got
			}
			must.Same(t, e.want, got, "the result")
			if asked := strings.Join(f.asked, "; "); e.asked != "" && asked != e.asked {
				t.Errorf("the team was asked %s, want %s", asked, e.asked)
			}
		})
	}
}

func TestDirect(t *testing.T) {
	exchanges(t, agents.Direct, []exchange{
		{
			"spawn", "spawn_agent", `{"message":"look","agent_type":"explorer","fork_context":true,"model":"m","reasoning_effort":"low","service_tier":"flex","paths":["a/"]}`,
			`{"agent_id":"id-1","nickname":"Sagan"}`, "spawn {Name: Role:explorer Message:look Fork:true Model:m Effort:low ServiceTier:flex Paths:[a/]}",
		},
		{
			"spawn with no role", "spawn_agent", `{"items":[{"type":"text","text":"look"},{"type":"local_image","path":"a.png"},{"type":"skill","name":"s","path":"s/SKILL.md"}],"agent_type":"default"}`,
			`{"agent_id":"id-1","nickname":"Sagan"}`, "spawn {Name: Role: Message:look\n[image: a.png]\n[skill: s s/SKILL.md] Fork:false Model: Effort: ServiceTier: Paths:[]}",
		},
		{"spawn for nothing", "spawn_agent", `{"agent_type":"worker"}`, "refused: spawn_agent: the message is empty; say what the agent is to do.", ""},
		{"spawn in two forms", "spawn_agent", `{"message":"a","items":[{"type":"text","text":"b"}]}`, "refused: spawn_agent: give the message by message or by items, not by both.", ""},
		{"spawn a role that is not there", "spawn_agent", `{"message":"a","agent_type":"poet"}`, "refused: spawn_agent: there is no agent_type poet; there are explorer, worker, default.", ""},
		{"spawn too many", "spawn_agent", `{"message":"one too many"}`, "refused: 4 agents are open already. Close one of them.", ""},
		{"send", "send_input", `{"target":"busy","message":"stop","interrupt":true}`, `{"submission_id":"sub-1"}`, `send busy "stop" true`},
		{"send under another name", "send_input", `{"id":"busy","message":"go"}`, `{"submission_id":"sub-1"}`, `send busy "go" false`},
		{"resume", "resume_agent", `{"id":"busy"}`, `{"status":"running"}`, ""},
		{
			"wait", "wait_agent", `{"targets":["done","mute","busy","broke"]}`,
			`{"status":{"broke":{"errored":"no tokens left"},"done":{"completed":"It is <b>done</b>."},"mute":{"completed":null}},"timed_out":false}`, "wait [done mute busy broke] 30s",
		},
		{"wait a moment", "wait_agent", `{"targets":["done"],"timeout_ms":1}`, `{"status":{"done":{"completed":"It is <b>done</b>."}},"timed_out":false}`, "wait [done] 10s"},
		{"wait for ever", "wait_agent", `{"targets":["done"],"timeout_ms":1e300}`, `{"status":{"done":{"completed":"It is <b>done</b>."}},"timed_out":false}`, "wait [done] 1h0m0s"},
		{"wait for nobody", "wait_agent", `{"targets":["gone"]}`, `refused: {"status":{"gone":"not_found"},"timed_out":false}`, ""},
		{"wait for no one in particular", "wait_agent", `{"targets":[]}`, "refused: wait_agent: targets is empty; name the agents to wait for by the ids or nicknames that spawn_agent returned.", ""},
		{"wait for some who are there", "wait_agent", `{"targets":["gone","mute"]}`, `{"status":{"gone":"not_found","mute":{"completed":null}},"timed_out":false}`, ""},
		{"close", "close_agent", `{"target":"busy"}`, `{"previous_status":"running"}`, "close busy"},
		{"merge", "merge_agent", `{"id":"done"}`, "Took over a.go of done.", "merge done"},
		{"merge nobody", "merge_agent", `{"id":"gone"}`, "refused: There is no agent gone. Use the id of one that you started.", ""},
	})
}

func TestCollaboration(t *testing.T) {
	exchanges(t, agents.Collaboration, []exchange{
		{
			"spawn", "spawn_agent", `{"task_name":"look","message":"look","fork_turns":"none","model":"m","reasoning_effort":"low"}`, `{"task_name":"/root/look"}`,
			"spawn {Name:look Role: Message:look Fork:false Model:m Effort:low ServiceTier: Paths:[]}",
		},
		{
			"spawn that knows all", "spawn_agent", `{"task_name":"look_2","message":"look","agent_type":"worker","paths":["a"]}`, `{"task_name":"/root/look_2"}`,
			"spawn {Name:look_2 Role:worker Message:look Fork:true Model: Effort: ServiceTier: Paths:[a]}",
		},
		{
			"spawn that knows the last turns", "spawn_agent", `{"task_name":"a","message":"look","fork_turns":"3"}`, `{"task_name":"/root/a"}`,
			"spawn {Name:a Role: Message:look Fork:true Model: Effort: ServiceTier: Paths:[]}",
		},
		{"spawn that knows who knows", "spawn_agent", `{"task_name":"a","message":"look","fork_turns":"some"}`, "refused: spawn_agent: fork_turns has to be all or none.", ""},
		{
			"spawn by a path", "spawn_agent", `{"task_name":"../a","message":"look"}`,
			"refused: spawn_agent: task_name has to be of 1 to 64 lower case letters, digits and underscores, and not root.", "",
		},
		{"send", "send_message", `{"target":"/root/b","message":"more"}`, "", `note /root/b "more"`},
		{"follow up", "followup_task", `{"target":"/root/a","message":"more"}`, "", `send /root/a "more" false`},
		{"wait", "wait_agent", `{}`, `{"message":"Wait completed.","timed_out":false}`, "wait [] 30s"},
		{"interrupt", "interrupt_agent", `{"target":"/root/b"}`, `{"previous_status":"running"}`, ""},
		{"list", "list_agents", `{}`, `{"agents":[{"agent_name":"/root/a","agent_status":{"completed":"found"}},{"agent_name":"/root/b","agent_status":"running"}]}`, ""},
		{"list some", "list_agents", `{"path_prefix":"/root/b"}`, `{"agents":[{"agent_name":"/root/b","agent_status":"running"}]}`, ""},
	})
}

func TestTask(t *testing.T) {
	task := func(more string) string { return `{"description":"Look","prompt":"look",` + more + `}` }
	exchanges(t, agents.Task, []exchange{
		{"general", "task", task(`"subagent_type":"general","task_id":"done"`), "task_id: done\n\n<task_result>\nIt is <b>done</b>.\n</task_result>\n", `send done "look" false; wait [done] 1h0m0s`},
		{"without words", "task", task(`"subagent_type":"explore","task_id":"mute"`), "task_id: mute\n\n<task_result>\n\n</task_result>\n", ""},
		{"that breaks", "task", task(`"subagent_type":"general","task_id":"broke"`), "refused: task_id: broke\n\n<task_result>\nno tokens left\n</task_result>\nThe agent did not complete it: errored.\n", ""},
	})
	for kind, role := range map[string]string{"general": "", "explore": "explorer", "explorer": "explorer", "worker": "worker"} {
		f := stand()
		f.known["id-1"] = agents.Status{State: agents.Completed, Text: "found"}
		f.unmerged = []string{"id-1", "done"}
		d := dispatcher(agents.Task, f)
		got := d.Dispatch(t.Context(), []tools.Call{{ID: "1", Number: 1, Name: "task", Input: task(`"subagent_type":"` + kind + `"`)}})[0]
		asked := strings.Join(f.asked, "; ")
		must.Same(t, "spawn {Name: Role:"+role+" Message:look Fork:false Model: Effort: ServiceTier: Paths:[]}; wait [id-1] 1h0m0s; merge id-1", asked, kind, "the team was asked")
		if want := "task_id: id-1\n\n<task_result>\nfound\n</task_result>\nTook over a.go of id-1.\n"; got.Output != want || got.Failed || got.Detail[agents.TaskDetail] != "id-1" {
			t.Errorf("%s gives %+v, want %q", kind, got, want)
		}
	}
}

func TestWaitReportsTimeout(t *testing.T) {
	f := stand()
	f.timedOut = true
	for want, call := range map[string]tools.Call{
		`{"status":{},"timed_out":true}`:                 {Name: "wait_agent", Input: `{"targets":["busy"]}`},
		`{"message":"Wait timed out.","timed_out":true}`: {Name: "wait_agent", Input: `{}`},
	} {
		form := agents.Direct
		if call.Input == `{}` {
			form = agents.Collaboration
		}
		d := dispatcher(form, f)
		if result := d.Dispatch(t.Context(), []tools.Call{call})[0]; result.Output != want || result.Failed {
			t.Errorf("got %+v, want %s", result, want)
		}
	}
}

func TestTeamFaultFailsCall(t *testing.T) {
	f := stand()
	f.fault = errors.New("the disk is full")
	d := dispatcher(agents.Direct, f)
	for _, call := range []tools.Call{
		{Name: "resume_agent", Input: `{"id":"busy"}`},
		{Name: "wait_agent", Input: `{"targets":["busy"]}`},
		{Name: "close_agent", Input: `{"target":"busy"}`},
		{Name: "send_input", Input: `{"target":"busy","message":"a"}`},
	} {
		want := call.Name + " failed: the disk is full"
		if result := d.Dispatch(t.Context(), []tools.Call{call})[0]; result.Output != want || !result.Failed {
			t.Errorf("got %+v, want %s", result, want)
		}
	}
}

func TestWaitForAnyMergesAll(t *testing.T) {
	f := stand()
	f.unmerged = []string{"/root/a"}
	d := dispatcher(agents.Collaboration, f)
	result := d.Dispatch(t.Context(), []tools.Call{{ID: "w", Number: 1, Name: "collaboration.wait", Input: `{}`}})[0]
	must.Same(t, `{"message":"Wait completed.","timed_out":false,"merged":{"/root/a":"Took over a.go of /root/a."}}`, result.Output)
}

// TestCloseKeepsUnmergedAgentOpen closes a subagent whose change conflicts: it stays open until it is
// closed once more.
func TestCloseKeepsUnmergedAgentOpen(t *testing.T) {
	f := stand()
	f.unmerged = []string{"done"}
	f.merge = func(string) (tools.Result, error) { return tools.Refuse("a.go conflicts."), nil }
	d := dispatcher(agents.Direct, f)
	shut := []tools.Call{{ID: "c", Number: 1, Name: "close_agent", Input: `{"target":"done"}`}}
	first := d.Dispatch(t.Context(), shut)[0]
	if want := "close_agent: done is still open, since its change is not taken over: a.go conflicts.\n"; !first.Failed || !strings.HasPrefix(first.Output, want) {
		t.Errorf("got %+v, want %s", first, want)
	}
	second := d.Dispatch(t.Context(), shut)[0]
	if want := `{"previous_status":{"completed":"It is <b>done</b>."},"merged":{"done":"a.go conflicts."}}`; second.Failed || second.Output != want {
		t.Errorf("got %+v, want %s", second, want)
	}
	must.Same(t, []string{"merge done", "merge done", "close done"}, f.asked)
}

// TestScriptsCannotCallAgentTools has a script of another tool call those of agents.
func TestScriptsCannotCallAgentTools(t *testing.T) {
	f := stand()
	var refused []string
	script := tools.Tool{
		Spec: tools.Spec{Name: "exec", Grammar: "start: /.+/"}, Scripts: true,
		Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			for _, tool := range agents.Collaboration(agents.Setup{Team: f}) {
				done := make(chan tools.Result, 1)
				tools.ScriptCallsOf(ctx).Start(ctx, tools.Call{Name: tool.Spec.Name, Input: `{}`}, func(r tools.Result) { done <- r })
				refused = append(refused, (<-done).Output)
			}
			return tools.Result{}, nil
		},
	}
	d := &tools.Dispatcher{Registry: tools.New(append(agents.Collaboration(agents.Setup{Team: f}), script)...), Outputs: new(tools.Outputs)}
	d.Dispatch(t.Context(), []tools.Call{{ID: "1", Number: 1, Name: "exec", Input: "x", Form: tools.Freeform}})
	must.Same(t, 7, len(refused), "calls were answered; the team was asked", f.asked)
	must.None(t, f.asked, len(refused), "calls were answered; the team was asked")
	for _, words := range refused {
		must.Same(t, true, strings.HasSuffix(words, dialect.NotFromScript), "a script is told", words)
	}
}

// TestEveryToolIsKnown holds the names of the tools together, wherever they are listed.
func TestEveryToolIsKnown(t *testing.T) {
	for _, form := range []func(agents.Setup) []tools.Tool{agents.Direct, agents.Collaboration} {
		for _, tool := range form(agents.Setup{Team: stand(), Roles: roles, MaxAgents: 4}) {
			name := tool.Spec.Name
			if tools.OwnToolNamed(name) != name || !dialect.Is(name, dialect.Leads) {
				t.Errorf("%s is not among the names of tools", name)
			}
			if tool.Spec.Namespace.Name == "" || tool.Spec.Description == "" || !json.Valid(tool.Spec.Parameters) {
				t.Errorf("%s is told of as %+v", name, tool.Spec)
			}
			if tool.Mutates == tool.Scripts {
				t.Errorf("%s: a call either has a place among those that change something, or makes such", name)
			}
		}
	}
}
