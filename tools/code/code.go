package code

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code/declare"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// EngineCommand is agent-ci's argument for running as a script engine.
const EngineCommand = "code-engine"

// Options configure the tools for scripts.
type Options struct {
	Sandbox *sandbox.Sandbox
	Outputs *tools.Outputs
	// Program is the engine's argument vector in the sandbox: agent-ci with EngineCommand.
	Program []string
	// State is shared with earlier and later Tools of the agent.
	State *State
}

// State is what scripts leave for later ones.
type State struct {
	Cells  int               // number of scripts so far
	Stored map[string]string // values that scripts stored, as JSON
}

// Nested is a tool for scripts.
type Nested struct {
	Spec     tools.Spec
	Deferred bool // the tool is described only in ALL_TOOLS
}

// Tools runs the scripts of a run. Close stops them.
type Tools struct {
	options      Options
	ctx          context.Context // of the run
	cancel       context.CancelFunc
	running      sync.WaitGroup // all goroutines of engines and cells
	untakenBytes atomic.Int64   // bytes of results that no engine has taken yet
	offered      scriptTools

	mu          sync.Mutex
	closed      bool
	cells       []*scriptCell
	spare       func() (*engine, error) // waits for the engine that Warm starts; nil for none
	state       *State
	storedBytes int // bytes of the stored values and their keys
}

// maxCells is the maximum number of cells, including finished ones whose output is unread.
const maxCells = 8

// New returns the tools of a run. The end of ctx, the run's context, cancels the calls of all scripts.
func New(ctx context.Context, o Options) *Tools {
	t := &Tools{options: o, state: o.State, offered: newScriptTools(nil)}
	t.ctx, t.cancel = context.WithCancel(ctx)
	earlier := t.state.Stored
	t.state.Stored = map[string]string{}
	t.storeValues(earlier)
	return t
}

// Offer sets the tools for scripts, which are none before. It must be called before the first script.
func (t *Tools) Offer(all []Nested) { t.offered = newScriptTools(all) }

// All returns the tools exec and wait. The description of exec lists the offered tools.
func (t *Tools) All() []tools.Tool {
	return []tools.Tool{
		{Spec: t.offered.exec, Run: t.exec, Scripts: true},
		{Spec: waitSpec, Run: tools.Decoded(t.wait), Scripts: true},
	}
}

// Close stops all scripts and waits for them. It returns how many were running.
func (t *Tools) Close() (running int) {
	t.mu.Lock()
	t.closed = true
	cells, spare := t.cells, t.spare
	t.cells, t.spare = nil, nil
	t.mu.Unlock()
	for _, c := range cells { // before t.cancel, because some scripts end with their calls
		if !c.hasEnded() {
			running++
		}
	}
	t.cancel()
	for _, c := range cells {
		c.stop()
	}
	if spare != nil {
		if e, err := spare(); err == nil {
			e.end()
		}
	}
	t.running.Wait()
	return running
}

// scriptTools contains the tools for scripts.
type scriptTools struct {
	names        map[string]string // names of tools, by the names in scripts
	descriptions []message.Tool    // sorted by the names in scripts
	exec         tools.Spec        // of the tool exec
}

// newScriptTools returns the names and descriptions of the tools that a script may call, and the spec of exec. The spec
// declares the tools as methods. Only a deferred tool has its declaration in its own description.
func newScriptTools(all []Nested) scriptTools {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.Spec.Name
	}
	scriptNames := declare.Names(names)
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Nested) int { return strings.Compare(scriptNames[a.Spec.Name], scriptNames[b.Spec.Name]) })
	o, hasDeferred := scriptTools{names: make(map[string]string, len(all))}, false
	var declared strings.Builder
	for _, n := range all {
		name, about := scriptNames[n.Spec.Name], clip.Visible(n.Spec.Description, maxAbout)
		if n.Deferred {
			hasDeferred = true
			n.Spec.Description = "" // about has it
			about = strings.TrimSpace(about + "\n" + declare.Method(name, n.Spec))
		} else {
			method := declare.Method(name, n.Spec)
			if declared.Len()+len(method) > maxDeclared {
				method = declare.Method(name, tools.Spec{})
			}
			declared.WriteString(method)
		}
		o.names[name] = n.Spec.Name
		o.descriptions = append(o.descriptions, message.Tool{Name: name, Description: about})
	}
	o.exec = execSpec(declared.String(), hasDeferred)
	return o
}

const maxAbout = 4000 // bytes of a description in ALL_TOOLS

// startScript starts a script in a new cell. problem tells the model why that is impossible now, or is "".
func (t *Tools) startScript(ctx context.Context, source string) (c *scriptCell, problem string, err error) {
	if problem := t.makeRoom(); problem != "" {
		return nil, problem, nil
	}
	e, err := t.takeEngine(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("start the engine of the script: %w", err)
	}
	if c = t.addCell(ctx, e, source); c == nil {
		e.end()
		return nil, "exec: the run is over", nil
	}
	return c, "", nil
}

// addCell adds a cell that runs source in an engine, and starts it. It returns nil after Close.
func (t *Tools) addCell(ctx context.Context, e *engine, source string) *scriptCell {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.state.Cells++
	c := newCell(ctx, t, e, t.state.Cells, t.offered.names)
	t.cells = append(t.cells, c)
	c.start(message.Run{Source: source, Tools: t.offered.descriptions, Stored: maps.Clone(t.state.Stored)})
	return c
}

// makeRoom drops the oldest finished cell if there are maxCells cells. problem tells the model that all are running, or is
// "".
func (t *Tools) makeRoom() (problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.cells) < maxCells {
		return ""
	}
	if i := slices.IndexFunc(t.cells, (*scriptCell).hasEnded); i >= 0 {
		t.cells = slices.Delete(t.cells, i, i+1)
		return ""
	}
	return fmt.Sprintf("exec: %d scripts are running already, cells %s. Wait for one of them, or end it by wait with terminate.", maxCells, joinIDs(t.cells))
}

// findCell returns the cell with an ID, or nil.
func (t *Tools) findCell(id string) *scriptCell {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.cells, func(c *scriptCell) bool { return c.id == id }); i >= 0 {
		return t.cells[i]
	}
	return nil
}

// forgetCell removes a cell.
func (t *Tools) forgetCell(c *scriptCell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells = slices.DeleteFunc(t.cells, func(other *scriptCell) bool { return other == c })
}

// joinIDs returns the IDs of cells, separated by commas.
func joinIDs(cells []*scriptCell) string {
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = c.id
	}
	return strings.Join(all, ", ")
}

// storeValues stores values of scripts. It returns the keys of the values that exceed a limit, which it does not store.
func (t *Tools) storeValues(values map[string]string) (refused []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		newBytes := message.StoredBytes(t.state.Stored, t.storedBytes, key, value)
		if len(value) > message.LargestValue || newBytes > message.MaxStored {
			refused = append(refused, key)
			continue
		}
		t.storedBytes, t.state.Stored[key] = newBytes, value
	}
	return refused
}
