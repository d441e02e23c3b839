package transcript

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// AgentStarted reports that an agent started another one. The new agent's events have its id.
type AgentStarted struct {
	Name      string   `json:"name"`
	Role      string   `json:"role"`
	StartedBy string   `json:"asked_by"` // the agent that started it
	Number    int      `json:"number"`   // position among the agents of the run, in the order of their starts, from 1
	Model     string   `json:"model"`
	Effort    string   `json:"effort,omitempty"`
	Writes    string   `json:"writes"`          // none, own, shared
	Paths     []string `json:"paths,omitempty"` // that it may change; empty means all
	Forked    bool     `json:"forked,omitempty"`
	// The share of the run's budget that the agent gets; 0 means no limit.
	Turns     int     `json:"turns,omitempty"`
	ToolCalls int     `json:"tool_calls,omitempty"`
	Tokens    int64   `json:"tokens,omitempty"`
	CostUSD   float64 `json:"cost_usd,omitempty"`

	Price *price.List `json:"price,omitempty"` // of its model; missing if unknown
}

// AgentFinished reports the end of an agent's turn. The agent may get another turn.
type AgentFinished struct {
	Status string `json:"status"`           // completed, errored, interrupted, shutdown
	Reason string `json:"reason,omitempty"` // of errored and shutdown, in snake_case
	Text   string `json:"text,omitempty"`   // its last message, or the error
}

// Subagent is an agent that another agent started.
type Subagent struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Status    string     `json:"status"`
	Reason    string     `json:"reason,omitempty"`
	Turns     int        `json:"turns"`
	Calls     int        `json:"calls"`
	Usage     Usage      `json:"usage"`
	CostUSD   *float64   `json:"cost_usd"` // null: a price is unknown
	StartedBy string     `json:"asked_by"`
	Number    int        `json:"-"` // in the order of starts
	Writes    string     `json:"-"`
	Text      string     `json:"-"` // its last message, or the error
	Models    []ModelUse `json:"-"`
	MaxUSD    float64    `json:"-"` // its maximum cost; 0 means no limit
	MaxCalls  int        `json:"-"` // its maximum number of calls, including its own agents; 0 means no limit
}

// AgentRunning is the status of a subagent whose end is not recorded.
const AgentRunning = "running"

// SubagentByID returns the subagent with an id, or nil for the run's own agent and unknown ones.
func (v *View) SubagentByID(id string) *Subagent {
	for _, a := range v.Subagents {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// AgentName returns the name of an agent for people, given its id.
func (v *View) AgentName(id string) string {
	if a := v.SubagentByID(id); a != nil {
		return a.Name
	}
	return id
}

// Describe returns a line about a subagent: its starter, status and usage.
func (a *Subagent) Describe(v *View) string {
	words := fmt.Sprintf("%s (%s, asked by %s): %s", a.Name, a.Role, v.AgentName(a.StartedBy), a.Status)
	if a.Reason != "" {
		words += ", " + a.Reason
	}
	words += fmt.Sprintf("; %s, %s, %s tokens in, %s out", CountNoun(a.Turns, "turn"), CountNoun(a.Calls, "tool call"), GroupThousands(a.Usage.Input), GroupThousands(a.Usage.Output))
	if a.CostUSD != nil {
		words += fmt.Sprintf(", $%.4f", *a.CostUSD)
	}
	return words
}

// AllModels returns the models that all agents used.
func (v *View) AllModels() []ModelUse {
	all := append([]ModelUse(nil), v.Models...)
	for _, a := range v.Subagents {
		all = append(all, a.Models...)
	}
	return all
}

// CallsOfSubagents returns how many calls of subagents count for the run's limit. A running subagent counts
// with its whole share, because it may still use that.
func (v *View) CallsOfSubagents() (calls int) {
	for _, a := range v.Subagents {
		switch {
		case v.hasRunningStarter(a): // that agent's share includes this one
		case a.Status == AgentRunning:
			calls += a.MaxCalls
		default:
			calls += a.Calls
		}
	}
	return calls
}

// hasRunningStarter reports whether a subagent above this one is running.
func (v *View) hasRunningStarter(a *Subagent) bool {
	starter := v.SubagentByID(a.StartedBy)
	for starter != nil {
		if starter.Status == AgentRunning {
			return true
		}
		starter = v.SubagentByID(starter.StartedBy)
	}
	return false
}

// subagentOf returns the subagent of an event, or nil for the run's own agent. It adds an unknown one to the
// view.
func (f *Folder) subagentOf(e Event) *Subagent {
	if e.Subagent() == "" {
		return nil
	}
	a := f.view.SubagentByID(e.Agent)
	if a == nil { // the beginning of the record is missing
		a = &Subagent{ID: e.Agent, Name: e.Agent, Status: AgentRunning}
		f.view.Subagents = append(f.view.Subagents, a)
	}
	return a
}

// agentStarted adds a subagent, or restarts it with its new settings.
func (f *Folder) agentStarted(e Event, d AgentStarted) {
	a := f.subagentOf(e)
	if a == nil {
		return
	}
	a.Name, a.Role, a.StartedBy, a.Number, a.Writes = d.Name, d.Role, d.StartedBy, d.Number, d.Writes
	a.Status, a.Reason, a.Text = AgentRunning, "", ""
	a.MaxUSD, a.MaxCalls = d.CostUSD, d.ToolCalls
	if len(a.Models) == 0 {
		a.Models = []ModelUse{{Model: d.Model, Price: d.Price}}
	}
}

// agentFinished sets the final status of a subagent's turn.
func (f *Folder) agentFinished(e Event, d AgentFinished) {
	if a := f.subagentOf(e); a != nil {
		a.Status, a.Reason, a.Text = d.Status, d.Reason, d.Text
	}
}

// addUsage adds the usage of an event's agent to the agent and the run. added is nil if the event has none.
func (f *Folder) addUsage(e Event, added *Usage) {
	if added == nil {
		added = &Usage{}
	}
	f.view.Usage = f.view.Usage.Add(*added)
	a := f.subagentOf(e)
	if a == nil {
		f.view.Models = CountForLast(f.view.Models, *added)
		return
	}
	a.Usage = a.Usage.Add(*added)
	a.Models = CountForLast(a.Models, *added)
	a.CostUSD = nil // the price of a fallback model may be unknown
	if cost, known := CostOf(a.Models); known {
		a.CostUSD = &cost
	}
}
