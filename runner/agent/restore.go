package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// Past is the state for resuming a conversation, from its transcript's events: items, open calls
// and compactions. The View has the used tokens.
type Past struct {
	// CallLimit is limits.tool_calls at the time of the next event; 0 for none.
	CallLimit int
	// OthersCalls is other agents' part of CallLimit then.
	OthersCalls int
	// Written is the Conversation's Written at the next event.
	Written Writing

	state
	ended   bool              // the model has said its last words, and nobody has answered
	open    []tools.Call      // of the last answer, without an output in the history
	handed  int               // of these, the first ones, which the tools were to run
	unrun   string            // why those behind them were not
	denials []json.RawMessage // that the last answer is owed too
	aside   []json.RawMessage // outputs of calls in an answer that was to be words alone
	// beforeOrder is the conversation before a requested summary, until that replaces it; nil
	// without a request.
	beforeOrder *position
	fellTo      string // the model that the run had come to; empty for its first
	started     map[transcript.CallRef]start
	finished    map[transcript.CallRef]transcript.ToolFinished
	nested      int // calls that scripts made
}

func refOf(call tools.Call) transcript.CallRef { return transcript.CallRef(call.Ref()) }

// start is the beginning of a call.
type start struct {
	transcript.ToolStarted
	seq int64 // of the event that told of it
}

// Turns is how many requests were sent.
func (p *Past) Turns() int { return p.spent.Turns }

// Ended reports whether the agent ended by itself, and returns its last words.
func (p *Past) Ended() (string, bool) { return p.said, p.ended }

// Has reports whether an item contains these words. They must need no JSON escapes.
func (p *Past) Has(words string) bool {
	return slices.ContainsFunc(p.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(words)) })
}

// Take adds the next event. It skips types outside the conversation.
func (p *Past) Take(e transcript.Event) error {
	take, known := takes[e.Type]
	if !known {
		return nil
	}
	if p.started == nil {
		p.started, p.finished = map[transcript.CallRef]start{}, map[transcript.CallRef]transcript.ToolFinished{}
	}
	return take(p, e)
}

// takes maps event types to their handlers.
var takes = map[transcript.Type]func(*Past, transcript.Event) error{
	transcript.TypeModelRequest:  taking((*Past).request),
	transcript.TypeModelResponse: taking((*Past).response),
	transcript.TypeCompaction:    taking((*Past).compaction),
	transcript.TypeModelFallback: taking((*Past).fallback),
	transcript.TypeRunFinished:   taking((*Past).finish),
	transcript.TypeToolStarted:   (*Past).toolStarted,
	transcript.TypeToolFinished:  taking((*Past).toolFinished),
}

func taking[T any](take func(*Past, T) error) func(*Past, transcript.Event) error {
	return func(p *Past, e transcript.Event) error {
		var data T
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		return take(p, data)
	}
}

func (p *Past) toolStarted(e transcript.Event) error {
	began := start{seq: e.Seq}
	if err := json.Unmarshal(e.Data, &began.ToolStarted); err != nil {
		return err
	}
	if began.Caller > 0 {
		p.nested++
	}
	p.started[began.Ref()] = began
	return nil
}

func (p *Past) toolFinished(d transcript.ToolFinished) error {
	if d.Uncounted() {
		p.nested--
	}
	p.finished[d.Ref()] = d
	return nil
}

func (p *Past) request(d transcript.ModelRequest) error {
	p.spent.Turns = max(p.spent.Turns, d.Turn)
	p.settle()
	p.beforeOrder = p.withoutOrder(d)
	p.add(rawitem.WithLostImages(d.Input))
	p.logged = len(p.history)
	if d.Settings != nil {
		p.recorded = d.Settings
	}
	p.ended = p.ended && d.Aside && p.beforeOrder == nil // a summary is asked for before a turn
	p.lastTold = lastTold(d.Input)
	p.aside = nil // each has its output in the input of this request
	return nil
}

// settle marks every call of the last answer as answered. Calls of scripts may continue.
func (p *Past) settle() {
	for _, call := range p.open {
		if done, ok := p.finished[refOf(call)]; ok {
			p.took(call, tools.Result{Found: foundBy(done), Failed: done.Failed})
		}
	}
	p.open, p.denials = nil, nil
	p.numbered = p.begun()
	maps.DeleteFunc(p.started, func(ref transcript.CallRef, _ start) bool { return ref.Caller == 0 || p.finished[ref].Number > 0 })
	clear(p.finished)
}

// begun returns the number of the last call, even of a lost answer.
func (p *Past) begun() int {
	last := p.numbered
	for ref := range p.started {
		if ref.Caller == 0 {
			last = max(last, ref.Number)
		}
	}
	return last
}

// withoutOrder returns the conversation without the final order of a summary; nil for other
// requests.
func (p *Past) withoutOrder(d transcript.ModelRequest) *position {
	last := len(d.Input) - 1
	if !d.Aside || last < 0 || rawitem.WordsOf(d.Input[last]) != summaryOrder {
		return nil
	}
	before := p.position
	before.history = append(slices.Clone(p.history), rawitem.WithLostImages(d.Input[:last])...)
	before.logged = len(before.history)
	return &before
}

// finish handles a run's end. A resumed run has a larger budget after an exhausted one, and a model
// with failed edits starts anew.
func (p *Past) finish(d transcript.RunFinished) error {
	if d.Outcome == string(outcome.BudgetExceeded) {
		p.lastTold = ""
	}
	p.tries = 0
	return nil
}

// lastTold returns a request's message about the last turn.
func lastTold(items []json.RawMessage) string {
	for _, item := range items {
		if words := rawitem.WordsOf(item); strings.HasPrefix(words, lastWords) {
			return words
		}
	}
	return ""
}

func (p *Past) response(d transcript.ModelResponse) error {
	usage := new(model.Usage(d.Usage))
	if d.Status == transcript.Incomplete {
		usage = nil
	}
	p.answered(d.Output, usage)
	said, err := p.read(d.Output)
	if err != nil {
		return err
	}
	if d.Aside {
		p.count(0, 0, said.Hosted)
		refuse := func(int, tools.Call) tools.Result { return tools.Refuse(speakingWords) }
		p.aside, err = callitem.Outputs(said.Calls, nil, refuse)
		return err
	}
	if d.Status != transcript.Incomplete {
		p.write(&said)
	}
	p.owe(said)
	return nil
}

// write adds the calls written in an answer's words.
func (p *Past) write(said *callitem.Answer) {
	for _, call := range p.Written.written(*said) {
		said.Calls = append(said.Calls, call)
		p.hand(said)
	}
}

// hand takes the last call of an answer so far.
func (p *Past) hand(said *callitem.Answer) {
	switch {
	case p.unrun != "":
	case said.Cut:
		p.unrun = cutWords
	case p.CallLimit > 0 && p.spent.Calls+p.nested+said.Hosted+p.handed+p.OthersCalls >= p.CallLimit:
		p.unrun = limitWords
	default:
		p.handed++
	}
}

// read parses an answer's items as on arrival: the calls to run, and why others were not run.
func (p *Past) read(items []json.RawMessage) (callitem.Answer, error) {
	var said callitem.Answer
	p.handed, p.unrun = 0, ""
	for _, item := range items {
		before := len(said.Calls)
		if err := said.Add(item); err != nil {
			return said, err
		}
		if len(said.Calls) > before {
			p.hand(&said)
		}
	}
	return said, nil
}

// owe records an answer's calls and words.
func (p *Past) owe(said callitem.Answer) {
	if text := said.LastWords(); text != "" {
		p.said = text
	}
	p.ended = !said.Asks() && said.Text() != "" && !said.RemarksOnly()
	p.open, p.denials = said.Calls, said.Denials
	for i := range p.open {
		p.open[i] = numbered(p.open[i], p.numbered+i+1, p.spent.Turns, "")
	}
	p.count(len(p.open), p.handed, said.Hosted)
}

func (p *Past) compaction(d transcript.Compaction) error {
	if p.beforeOrder != nil {
		p.position = *p.beforeOrder
	}
	p.beforeOrder, p.aside = nil, nil
	p.settle()
	p.replace(rawitem.WithLostImages(d.Items), d.Reason)
	return nil
}

func (p *Past) fallback(d transcript.ModelFallback) error {
	p.fellTo = d.To
	p.leaveOut(d.LeftOut)
	return nil
}

// Restore sets the conversation to the end of its past, with its models' usage. begin is the number
// of pinned items at the start. Resume finishes the last answer.
func (c *Conversation) Restore(p *Past, used []transcript.ModelUse, begin int) {
	c.goOnWith(p.fellTo)
	c.state, c.pinned = p.state, min(begin, len(p.history))
	c.spent.Models = slices.Clone(used)
	for _, one := range used {
		c.spent.Usage = c.spent.Usage.Add(model.Usage(one.Usage))
	}
	c.counted.restore(c.spent.Calls, p.nested)
	if len(p.open)+len(p.denials) == 0 { // the request has no answer, or one that waits for nothing
		c.lastTold = ""
	}
	c.foundOut(p.recorded)
	if !additional(p.recorded) {
		c.Settings.Additional, c.Settings.Context = false, ""
	}
	c.Settings.Flat = c.Settings.Flat || p.recorded != nil && rawitem.Grouped(c.Settings.Tools) && !grouped(p.recorded)
	c.Add(p.aside...)
}

// foundOut restores facts learned from requests: a missing flex tier, the endpoint's differences.
func (c *Conversation) foundOut(settings json.RawMessage) {
	var s struct {
		Tier string        `json:"service_tier"`
		Chat []model.Quirk `json:"chat"`
	}
	known := json.Unmarshal(settings, &s) == nil && settings != nil
	if known && c.Settings.ServiceTier == model.FlexTier {
		c.Settings.ServiceTier = s.Tier
	}
	if len(s.Chat) > 0 {
		c.Settings.Chat = s.Chat
	}
}

// additional reports whether tools and instructions were in the input. A run stops doing so after a
// refusal by the endpoint.
func additional(settings json.RawMessage) bool {
	var s struct {
		Input []json.RawMessage `json:"input"`
	}
	return json.Unmarshal(settings, &s) == nil && len(s.Input) > 0
}

// grouped reports whether tools were in namespaces, apart from the one for all tools in the input.
func grouped(settings json.RawMessage) bool {
	var s struct {
		Tools []json.RawMessage `json:"tools"`
		Input []struct {
			Tools []struct{ Name string } `json:"tools"`
		} `json:"input"`
	}
	if json.Unmarshal(settings, &s) != nil {
		return false
	}
	return rawitem.Grouped(s.Tools) || len(s.Input) > 0 &&
		slices.ContainsFunc(s.Input[0].Tools, func(group struct{ Name string }) bool { return group.Name != rawitem.FunctionsNamespace })
}

// left splits the last answer's calls into those with a result and those to run. interrupted
// provides the result of a call started but not finished.
func (p *Past) left(interrupted Interrupted) (results map[int]tools.Result, fresh []tools.Call) {
	results = map[int]tools.Result{}
	for i, call := range p.open {
		if done, ok := p.finished[refOf(call)]; ok {
			results[call.Number] = tools.Result{Output: done.Output, Failed: done.Failed, Found: foundBy(done)}
			continue
		}
		if began, ok := p.started[refOf(call)]; ok {
			named := call
			named.Name = began.Tool
			result := interrupted(named)
			result.Output += p.wordsOfScript("\n\nThe calls that it made", func(ref transcript.CallRef) bool { return ref.Caller == call.Number })
			results[call.Number] = result
			continue
		}
		if i >= p.handed {
			results[call.Number] = tools.Refuse(p.unrun)
			continue
		}
		fresh = append(fresh, call)
	}
	return results, fresh
}

// Interrupted returns the result of an interrupted call.
type Interrupted func(call tools.Call) tools.Result

// Resume finishes the past's last answer: it returns existing outputs, answers interrupted calls by
// interrupted, and runs the rest with c's tools.
func (c *Conversation) Resume(ctx context.Context, p *Past, interrupted Interrupted) error {
	if err := c.dropSummary(p); err != nil {
		return err
	}
	c.endScripts(p, interrupted)
	if len(p.open)+len(p.denials) == 0 {
		return cmp.Or(c.tellStarted(p), c.tellCallsOfScripts(p))
	}
	results, fresh := p.left(interrupted)
	for _, call := range p.open {
		if p.started[refOf(call)].seq > 0 && p.finished[refOf(call)].Number == 0 {
			c.Finished(tools.Finished{Call: call, Tool: call.Name, Result: results[call.Number]})
		}
	}
	for i, result := range c.runLeft(ctx, p, fresh, results) {
		results[fresh[i].Number] = result
	}
	outputs, err := callitem.Outputs(p.open, c.definitions, func(_ int, call tools.Call) tools.Result { return results[call.Number] })
	if err != nil {
		return err
	}
	c.Add(append(outputs, p.denials...)...)
	for _, call := range p.open[:p.handed] {
		c.took(call, results[call.Number])
	}
	err = c.tellCallsOfScripts(p)
	p.open, p.denials = nil, nil
	return cmp.Or(err, ctx.Err())
}

// runLeft runs an answer's calls not started yet, written ones after the others. results are those
// of earlier calls.
func (c *Conversation) runLeft(ctx context.Context, p *Past, fresh []tools.Call, results map[int]tools.Result) []tools.Result {
	written := slices.IndexFunc(fresh, func(call tools.Call) bool { return call.Form == tools.Written })
	if written < 0 {
		return c.Tools.Dispatch(ctx, fresh)
	}
	unedited := slices.ContainsFunc(p.open, func(call tools.Call) bool { return isEdit(call) && results[call.Number].Failed })
	return append(c.Tools.Dispatch(ctx, fresh[:written]), c.inTurn(ctx, fresh[written:], unedited)...)
}

// dropSummary removes an unfinished summary's order and answer from a stopped conversation. The
// order to call nothing would otherwise remain.
func (c *Conversation) dropSummary(p *Past) error {
	if p.beforeOrder == nil {
		return nil
	}
	c.position = *p.beforeOrder
	err := c.adopt(&compaction{method: "none", items: c.history, before: c.tokens()}, reasonInterrupted)
	c.measure, c.settled = p.beforeOrder.measure, 0 // it is as long as before, and to be made shorter at once
	return err
}

// tellStarted reports calls of a lost answer to the model: the history has no items for them.
func (c *Conversation) tellStarted(p *Past) error {
	lost := p.startedInOrder(func(ref transcript.CallRef) bool { return ref.Caller == 0 })
	if len(lost) == 0 {
		return nil
	}
	words := "The runner was killed while your answer was on its way, and was started again. These calls of the answer had begun, and their outputs are lost:"
	for _, began := range lost {
		words += fmt.Sprintf("\n- %s: %s", began.Tool, began.Input)
	}
	c.numbered = p.begun()
	return c.Tell(words + "\nA command may have had some of its effects and not others: look at what is there before you repeat it.")
}
