package transcript

import "sync"

// ScriptCalls finds calls of a script by their content. When a script runs again, its calls may
// come in another order. It is safe for concurrent use.
type ScriptCalls struct {
	mu     sync.Mutex
	unused map[scriptCall][]CallRef
}

type scriptCall struct {
	agent       string
	caller      int
	tool, input string
}

// Add adds a started call, if a script made it.
func (n *ScriptCalls) Add(started ToolStarted) {
	if started.Caller == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unused == nil {
		n.unused = map[scriptCall][]CallRef{}
	}
	call := scriptCall{started.Agent, started.Caller, started.Tool, started.Input}
	n.unused[call] = append(n.unused[call], started.Ref())
}

// TakeEqual returns the first unused call of the same script that equals started, and marks it as used.
// found is false if there is none.
func (n *ScriptCalls) TakeEqual(started ToolStarted) (ref CallRef, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	call := scriptCall{started.Agent, started.Caller, started.Tool, started.Input}
	if len(n.unused[call]) == 0 {
		return ref, false
	}
	ref, n.unused[call] = n.unused[call][0], n.unused[call][1:]
	return ref, true
}
