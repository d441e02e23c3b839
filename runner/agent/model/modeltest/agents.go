package modeltest

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// agentOf finds in a request which agent asks that another one started: it is told before its task.
var agentOf = regexp.MustCompile(`You are the agent ([^ ]+)\. The agent `)

// scripts are those of the agents that have asked so far.
type scripts struct {
	mu sync.Mutex
	by map[string]*agentScript
}

// agentScript is asked by one request at a time.
type agentScript struct {
	mu     sync.Mutex
	script *model.Script
}

// scriptOf is the script of the agent that a request is of, where another one started it; nil for
// the one of the run.
func (s *Server) scriptOf(raw []byte) *agentScript {
	all := agentOf.FindAllSubmatchIndex(raw, -1)
	if all == nil {
		return nil
	}
	last := all[len(all)-1]
	id := string(raw[last[2]:last[3]])
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	if s.agents.by == nil {
		s.agents.by = map[string]*agentScript{}
	}
	if s.agents.by[id] == nil {
		s.agents.by[id] = &agentScript{script: s.script.Of(string(bytes.ReplaceAll(raw[last[1]:], []byte(`\n`), []byte("\n"))))}
	}
	return s.agents.by[id]
}
