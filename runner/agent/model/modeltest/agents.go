package modeltest

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
)

// agentOf finds the name of a subagent in its request: "You are the agent NAME. The agent STARTER …". Its task follows.
var agentOf = regexp.MustCompile(`You are the agent ([^ ]+)\. The agent `)

// scripts are the scripts of the agents that have sent requests.
type scripts struct {
	mu      sync.Mutex
	byAgent map[string]*agentScript
}

// agentScript is the script of one agent. Its mutex is held during a request.
type agentScript struct {
	mu     sync.Mutex
	script *scripted.Script
}

// scriptOf returns the script of the agent that sent the request raw, or nil for the run's own agent.
func (s *Server) scriptOf(raw []byte) *agentScript {
	all := agentOf.FindAllSubmatchIndex(raw, -1)
	if all == nil {
		return nil
	}
	last := all[len(all)-1] // the bounds of the match, then those of the name
	id := string(raw[last[2]:last[3]])
	task := bytes.ReplaceAll(raw[last[1]:], []byte(`\n`), []byte("\n")) // JSON escapes the newlines
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	if s.agents.byAgent == nil {
		s.agents.byAgent = map[string]*agentScript{}
	}
	if s.agents.byAgent[id] == nil {
		s.agents.byAgent[id] = &agentScript{script: s.script.ForSubagent(string(task))}
	}
	return s.agents.byAgent[id]
}
