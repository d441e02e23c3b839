package modeltest

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
)

// agentOf finds the name of a started agent in its request. The name is before its task.
var agentOf = regexp.MustCompile(`You are the agent ([^ ]+)\. The agent `)

// scripts are those of the agents seen so far.
type scripts struct {
	mu      sync.Mutex
	byAgent map[string]*agentScript
}

// agentScript is asked by one request at a time.
type agentScript struct {
	mu     sync.Mutex
	script *scripted.Script
}

// scriptOf returns the script of the started agent behind a request; nil for the run's own agent.
func (s *Server) scriptOf(raw []byte) *agentScript {
	all := agentOf.FindAllSubmatchIndex(raw, -1)
	if all == nil {
		return nil
	}
	last := all[len(all)-1]
	id := string(raw[last[2]:last[3]])
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	if s.agents.byAgent == nil {
		s.agents.byAgent = map[string]*agentScript{}
	}
	if s.agents.byAgent[id] == nil {
		s.agents.byAgent[id] = &agentScript{script: s.script.ForAgent(string(bytes.ReplaceAll(raw[last[1]:], []byte(`\n`), []byte("\n"))))}
	}
	return s.agents.byAgent[id]
}
