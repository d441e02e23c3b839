package transcript

import "sync"

// Nested finds a script's calls by their content, because a repeated script may call in another
// order. It is safe for concurrent use.
type Nested struct {
	mu   sync.Mutex
	left map[nestedCall][]CallRef
}

type nestedCall struct {
	agent       string
	caller      int
	tool, input string
}

// Add adds a started call of a script.
func (n *Nested) Add(d ToolStarted) {
	if d.Caller == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left == nil {
		n.left = map[nestedCall][]CallRef{}
	}
	call := nestedCall{d.Agent, d.Caller, d.Tool, d.Input}
	n.left[call] = append(n.left[call], d.Ref())
}

// Take returns the first unused call equal to d of the same script.
func (n *Nested) Take(d ToolStarted) (ref CallRef, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	call := nestedCall{d.Agent, d.Caller, d.Tool, d.Input}
	if len(n.left[call]) == 0 {
		return ref, false
	}
	ref, n.left[call] = n.left[call][0], n.left[call][1:]
	return ref, true
}
