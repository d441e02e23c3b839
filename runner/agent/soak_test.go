package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/tools"
)

// tireless is a model that calls so many times before it is done, and reports
// to watch at each turn. It can write a summary.
type tireless struct {
	turns, asked int
	watch        func(turn int)
}

func (m *tireless) Respond(_ context.Context, r model.Request, o model.Observer) (*model.Response, error) {
	bytes := 0
	for _, item := range r.History {
		bytes += len(item)
	}
	item := map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "Done."}}}
	if !r.Settings.WordsOnly && m.asked < m.turns {
		m.asked++
		m.watch(m.asked)
		item = map[string]any{"type": "function_call", "call_id": fmt.Sprintf("call_%d", m.asked), "name": "read_file", "arguments": `{"path":"a"}`}
	}
	raw, err := json.Marshal(item)
	if err != nil {
		return nil, err
	}
	o.TakeItem(raw)
	return &model.Response{ID: "r", Status: "completed", Output: []json.RawMessage{raw}, Usage: model.Usage{Input: int64(bytes / 4), Output: 10}}, nil
}

// TestSoak takes 1,000 turns with compaction; neither the conversation nor the
// heap may grow with them. The heap is that of all tests, so that none runs beside it.
func TestSoak(t *testing.T) {
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	heap := map[int]uint64{}
	most := 0
	m := &tireless{turns: 1000, watch: func(turn int) {
		most = max(most, f.ItemCount())
		if turn%250 != 0 {
			return
		}
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		heap[turn] = stats.HeapAlloc
	}}
	f.Model, f.Window = m, 20_000
	f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("0123456789", 300)}
	f.mustTell(t, "The task.")
	f.Begin()
	f.mustSay(t, "Done.")
	if most > 60 {
		t.Errorf("the conversation grew to %d items; so many do not fit into the window", most)
	}
	if n := len(f.compactions(t)); n < 20 {
		t.Errorf("there were %d compactions", n)
	}
	const slack = 2 << 20
	if heap[1000] > heap[250]+slack {
		t.Errorf("the heap was %d bytes after 250 turns and %d after 1,000", heap[250], heap[1000])
	}
	t.Logf("heap after 250, 500, 750, 1000 turns: %d, %d, %d, %d", heap[250], heap[500], heap[750], heap[1000])
}
