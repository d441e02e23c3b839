package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Past is a conversation as the events of its transcript tell it.
type Past struct {
	position
	spent    Spent
	numbered int
	said     string
	ended    bool // the model has said its last words, and nobody has answered
	settings json.RawMessage
	open     []tools.Call  // of the last answer, without an output in the history
	started  map[int]int64 // by number, the event that told of it
	finished map[int]transcript.ToolFinished
}

// Turns is how many requests were sent.
func (p *Past) Turns() int { return p.spent.Turns }

// Ended says that the agent had ended by itself, with its last words.
func (p *Past) Ended() (string, bool) { return p.said, p.ended }

// Told says whether an item that the runner put into the conversation has these
// words.
func (p *Past) Told(is func(item json.RawMessage) bool) bool {
	return slices.ContainsFunc(p.history, is)
}

// Take adds the next event. Types that are not of the conversation are skipped.
func (p *Past) Take(e transcript.Event) error {
	take, known := map[transcript.Type]func(json.RawMessage) error{
		transcript.TypeModelRequest:  taking(p.request),
		transcript.TypeModelResponse: taking(p.response),
		transcript.TypeModelRetry:    taking(func(d transcript.ModelRetry) error { p.charge(d.Usage); return nil }),
		transcript.TypeModelFailure:  taking(func(d transcript.ModelFailure) error { p.charge(d.Usage); return nil }),
		transcript.TypeCompaction:    taking(p.compaction),
		transcript.TypeToolStarted:   taking(func(d transcript.ToolStarted) error { p.started[d.Number] = e.Seq; return nil }),
		transcript.TypeToolFinished:  taking(func(d transcript.ToolFinished) error { p.finished[d.Number] = d; return nil }),
	}[e.Type]
	if !known {
		return nil
	}
	if p.started == nil {
		p.started, p.finished = map[int]int64{}, map[int]transcript.ToolFinished{}
	}
	if err := take(e.Data); err != nil {
		return fmt.Errorf("read event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

func taking[T any](take func(T) error) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		var data T
		if err := json.Unmarshal(raw, &data); err != nil {
			return err
		}
		return take(data)
	}
}

func (p *Past) charge(u *transcript.Usage) {
	if u != nil {
		p.spent.Usage = p.spent.Usage.Add(model.Usage(*u))
	}
}

func (p *Past) request(d transcript.ModelRequest) error {
	p.spent.Turns = max(p.spent.Turns, d.Turn)
	p.history = append(p.history, d.Input...)
	p.logged = len(p.history)
	if d.Settings != nil {
		p.settings = d.Settings
	}
	p.ended = p.ended && d.Aside
	p.open = nil // each has its output in the input of this request
	clear(p.started)
	clear(p.finished)
	return nil
}

func (p *Past) response(d transcript.ModelResponse) error {
	p.charge(&d.Usage)
	p.measure.lastAnswer = len(p.history)
	p.history = append(p.history, d.Output...)
	p.sent, p.logged, p.previous = len(p.history), len(p.history), d.ID
	p.measure.tokens, p.measure.items = d.Usage.Input+d.Usage.Output, len(p.history)
	if d.Aside {
		return nil
	}
	said, err := read(d.Output)
	if err != nil {
		return err
	}
	if said.text != "" {
		p.said = said.text
	}
	p.ended = len(said.calls) == 0 && said.text != ""
	p.open = said.calls
	for i := range p.open {
		p.open[i].Number = p.numbered + i + 1
	}
	p.numbered += len(p.open)
	p.spent.Calls += len(p.open)
	return nil
}

func (p *Past) compaction(d transcript.Compaction) error {
	p.charge(d.Usage)
	p.position = position{history: d.Items, logged: len(d.Items), measure: measure{lastAnswer: len(d.Items)}}
	return nil
}

// Restore puts the conversation where its past ended. begin is how many items
// at its start stay word for word. What its last answer asked for is finished
// by Resume.
func (c *Conversation) Restore(p *Past, begin int) {
	c.position, c.pinned = p.position, min(begin, len(p.history))
	c.spent, c.numbered, c.said, c.recorded = p.spent, p.numbered, p.said, p.settings
	c.Settings.Stored = c.Settings.Stored && stored(p.settings)
}

// stored says whether requests left the conversation to the provider: a run
// that found it gone there does so no more.
func stored(settings json.RawMessage) bool {
	var s struct {
		Store bool `json:"store"`
	}
	return json.Unmarshal(settings, &s) == nil && s.Store
}

// left splits the calls of the last answer into those that have a result and
// those that are still to be run. A call that had begun and not ended gets what
// interrupted says of it.
func (p *Past) left(interrupted Interrupted) (results map[int]tools.Result, fresh []tools.Call) {
	results = map[int]tools.Result{}
	for _, call := range p.open {
		if done, ok := p.finished[call.Number]; ok {
			results[call.Number] = tools.Result{Output: done.Output, Failed: done.Failed}
			continue
		}
		if began := p.started[call.Number]; began > 0 {
			results[call.Number] = interrupted(call, began)
			continue
		}
		fresh = append(fresh, call)
	}
	return results, fresh
}

// Interrupted says what became of a call that was broken off; began is the
// number of the event that told of its start.
type Interrupted func(call tools.Call, began int64) tools.Result

// Resume finishes what the last answer of the past asked for, as far as the
// tools of c have not done it: outputs that are there are given back, calls that
// were broken off are answered by interrupted, calls that had not begun are run.
func (c *Conversation) Resume(ctx context.Context, p *Past, interrupted Interrupted) error {
	if len(p.open) == 0 {
		return nil
	}
	results, fresh := p.left(interrupted)
	for _, call := range p.open {
		if p.started[call.Number] > 0 && p.finished[call.Number].Number == 0 {
			c.Finished(tools.Finished{Call: call, Tool: call.Name, Result: results[call.Number]})
		}
	}
	for i, result := range c.Tools.Dispatch(ctx, fresh) {
		results[fresh[i].Number] = result
	}
	for _, call := range p.open {
		raw, err := outputOf(call, results[call.Number])
		if err != nil {
			return err
		}
		c.Add(raw)
	}
	p.open = nil
	return ctx.Err()
}
