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

// ResumeState is the state of a conversation that its transcript's events give, for resuming it. It does
// not count used tokens, which the transcript's View does.
type ResumeState struct {
	// CallLimit is limits.tool_calls at the time of the next event; 0 for none.
	CallLimit int
	// SubagentCalls is how many calls of CallLimit subagents had used at that time.
	SubagentCalls int
	// ParseWritten is the Conversation's ParseWritten at the next event.
	ParseWritten WrittenParser

	state
	ended              bool              // the model gave its last message, and no request followed
	openAnswer         admittedAnswer    // the last answer, if its calls have no output in the history yet
	outputsOfWordsOnly []json.RawMessage // outputs of refused calls, in an answer that should have been text only
	// beforeSummary is the conversation before the request for a summary. It is nil unless the summary was
	// requested but has not yet replaced the conversation.
	beforeSummary *position
	fallbackModel string // the latest fallback, or ""
	started       map[transcript.CallRef]startedCall
	finished      map[transcript.CallRef]transcript.ToolFinished
	scriptCalls   int // number of calls by scripts that count
}

func refOf(call tools.Call) transcript.CallRef { return transcript.CallRef(call.Ref()) }

// startedCall is the beginning of a call.
type startedCall struct {
	transcript.ToolStarted
	eventSeq int64 // sequence number of the event
}

// Turns returns the number of requests sent.
func (p *ResumeState) Turns() int { return p.spent.Turns }

// Ended reports whether the agent ended on its own, and returns its last message.
func (p *ResumeState) Ended() (lastWords string, ended bool) { return p.lastWords, p.ended }

// HasText reports whether an item contains text. Items are raw JSON, so text must need no JSON escapes.
func (p *ResumeState) HasText(text string) bool {
	return slices.ContainsFunc(p.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(text)) })
}

// Apply applies the next event of the transcript. It skips events that do not concern the conversation.
func (p *ResumeState) Apply(e transcript.Event) error {
	if p.started == nil {
		p.started, p.finished = map[transcript.CallRef]startedCall{}, map[transcript.CallRef]transcript.ToolFinished{}
	}
	switch d := e.Content.(type) {
	case transcript.ModelRequest:
		p.applyRequest(d)
	case transcript.ModelResponse:
		return p.applyResponse(d)
	case transcript.Compaction:
		p.applyCompaction(d)
	case transcript.ModelFallback: // its model cannot read some items
		p.fallbackModel = d.To
		p.removeItems(d.OmittedItems)
	case transcript.RunFinished: // the resumed run may have a larger budget, so no turn is its last one yet
		if d.Outcome == string(outcome.BudgetExceeded) {
			p.lastTurnMessage = ""
		}
		p.editFailures = 0
	case transcript.ToolStarted:
		if d.Caller > 0 {
			p.scriptCalls++
		}
		p.started[d.Ref()] = startedCall{d, e.Seq}
	case transcript.ToolFinished:
		if d.Uncounted() {
			p.scriptCalls--
		}
		p.finished[d.Ref()] = d
	}
	return nil
}

// applyRequest adds the new items of a recorded request to the history.
func (p *ResumeState) applyRequest(d transcript.ModelRequest) {
	p.spent.Turns = max(p.spent.Turns, d.Turn)
	p.markAllAnswered()
	p.beforeSummary = p.positionBeforeSummary(d)
	p.add(rawitem.ReplaceLostImages(d.Input))
	p.loggedItems = len(p.history)
	if d.Settings != nil {
		p.recordedSettings = d.Settings
	}
	// An internal request follows the agent's end, except for a summary, which precedes another turn.
	p.ended = p.ended && d.Internal && p.beforeSummary == nil
	p.lastTurnMessage = lastTurnMessage(d.Input)
	p.outputsOfWordsOnly = nil // the input of this request contains them
}

// markAllAnswered notes the results of the open calls and forgets the calls, since a later request or compaction
// contains their outputs. It keeps unfinished calls of scripts, which can outlast a request.
func (p *ResumeState) markAllAnswered() {
	for _, call := range p.openAnswer.Calls {
		if finished, isFinished := p.finished[refOf(call)]; isFinished {
			p.noteResult(call, tools.Result{Found: toolsFoundBy(finished), Failed: finished.Failed})
		}
	}
	p.openAnswer = admittedAnswer{}
	p.callNumber = p.lastCallNumber()
	maps.DeleteFunc(p.started, func(ref transcript.CallRef, _ startedCall) bool { return ref.Caller == 0 || p.hasFinished(ref) })
	clear(p.finished)
}

// hasFinished reports whether a call has a recorded result.
func (p *ResumeState) hasFinished(ref transcript.CallRef) bool {
	_, found := p.finished[ref]
	return found
}

// lastCallNumber returns the number of the model's last call. It includes calls that started before their
// answer was lost.
func (p *ResumeState) lastCallNumber() int {
	last := p.callNumber
	for ref := range p.started {
		if ref.Caller == 0 {
			last = max(last, ref.Number)
		}
	}
	return last
}

// positionBeforeSummary returns the conversation before the order to write a summary, if d is the request for
// one. It returns nil for other requests.
func (p *ResumeState) positionBeforeSummary(d transcript.ModelRequest) *position {
	last := len(d.Input) - 1
	if !d.Internal || last < 0 || rawitem.MessageText(d.Input[last]) != summaryRequest {
		return nil
	}
	before := p.position
	before.history = append(slices.Clone(p.history), rawitem.ReplaceLostImages(d.Input[:last])...)
	before.loggedItems = len(before.history)
	return &before
}

// lastTurnMessage returns the message among items that announces the last turn, or "".
func lastTurnMessage(items []json.RawMessage) string {
	for _, item := range items {
		if text := rawitem.MessageText(item); strings.HasPrefix(text, lastTurnHead) {
			return text
		}
	}
	return ""
}

// applyResponse adds a recorded answer to the history and sets openAnswer to it. If the request asked for text only,
// the answer's calls are refused, and no answer stays open.
func (p *ResumeState) applyResponse(d transcript.ModelResponse) error {
	usage := new(model.Usage(d.Usage))
	if d.Status == transcript.IncompleteStatus {
		usage = nil
	}
	p.addAnswerItems(d.Output, usage)
	if err := p.parseAnswer(d); err != nil {
		return err
	}
	answer := &p.openAnswer
	if d.Internal { // the request asked for text only
		p.countCalls(0, answer.Hosted)
		outputs, err := callitem.Outputs(answer.Calls, nil, func(int, tools.Call) tools.Result { return tools.Refuse(wordsOnlyRefusal) })
		p.outputsOfWordsOnly, p.openAnswer = outputs, admittedAnswer{}
		return err
	}
	if text := answer.LastWords(); text != "" {
		p.lastWords = text
	}
	p.ended = !answer.NeedsReply() && answer.Text() != "" && !answer.RemarksOnly()
	for i := range answer.Calls {
		answer.Calls[i] = withNumber(answer.Calls[i], p.callNumber+i+1, p.spent.Turns, "")
	}
	p.countCalls(len(answer.Calls), answer.admitted+answer.Hosted)
	return nil
}

// admitLastOpenCall decides whether the last call of the open answer runs, as the interrupted run did.
func (p *ResumeState) admitLastOpenCall() {
	p.openAnswer.admitLastCall(func() bool {
		callsSoFar := p.spent.Calls + p.scriptCalls + p.openAnswer.Hosted + p.openAnswer.admitted + p.SubagentCalls
		return p.CallLimit == 0 || callsSoFar < p.CallLimit
	})
}

// parseAnswer sets openAnswer to a recorded answer and decides which of its calls run, as answerIntake does while
// an answer arrives. It ignores calls written in the text of an incomplete answer.
func (p *ResumeState) parseAnswer(d transcript.ModelResponse) error {
	p.openAnswer = admittedAnswer{}
	for _, item := range d.Output {
		before := len(p.openAnswer.Calls)
		if err := p.openAnswer.Add(item); err != nil {
			return err
		}
		if len(p.openAnswer.Calls) > before {
			p.admitLastOpenCall()
		}
	}
	if d.Internal || d.Status == transcript.IncompleteStatus {
		return nil
	}
	for _, call := range p.ParseWritten.callsIn(p.openAnswer.Answer) {
		p.openAnswer.Calls = append(p.openAnswer.Calls, call)
		p.admitLastOpenCall()
	}
	return nil
}

// applyCompaction replaces the history by the items of a recorded compaction. The request for a summary, if there was
// one, is undone first.
func (p *ResumeState) applyCompaction(d transcript.Compaction) {
	if p.beforeSummary != nil {
		p.position = *p.beforeSummary
	}
	p.beforeSummary, p.outputsOfWordsOnly = nil, nil
	p.markAllAnswered()
	p.replace(rawitem.ReplaceLostImages(d.Items), d.Reason)
}

// Restore sets the conversation to the state p, with the usage of its models. pinnedItems is the number of
// first items that compaction keeps. Call Resume next, which finishes the last answer.
func (c *Conversation) Restore(p *ResumeState, used []transcript.ModelUse, pinnedItems int) {
	c.selectModel(p.fallbackModel)
	c.state, c.pinnedItems = p.state, min(pinnedItems, len(p.history))
	c.spent.Models = slices.Clone(used)
	for _, use := range used {
		c.spent.Usage = c.spent.Usage.Add(model.Usage(use.Usage))
	}
	c.callCount.direct, c.callCount.scripts = c.spent.Calls, p.scriptCalls
	if !p.openAnswer.NeedsReply() { // no call is open, so the last turn has not happened or may be repeated
		c.lastTurnMessage = ""
	}
	c.restoreSettings(p.recordedSettings)
	c.AddItems(p.outputsOfWordsOnly...)
}

// restoreSettings restores what the run learned about its endpoint from the settings of its last request: whether
// it has a flex tier, how it differs from Chat Completions, and whether it accepts tools in the input and in
// namespaces. recorded is nil before the first request.
func (c *Conversation) restoreSettings(recorded json.RawMessage) {
	var last struct {
		Tier  string            `json:"service_tier"`
		Chat  []model.Quirk     `json:"chat"`
		Tools []json.RawMessage `json:"tools"`
		Input []struct {
			Tools []struct{ Name string } `json:"tools"`
		} `json:"input"`
	}
	if json.Unmarshal(recorded, &last) == nil && c.Settings.ServiceTier == model.FlexTier {
		c.Settings.ServiceTier = last.Tier
	}
	if len(last.Chat) > 0 {
		c.Settings.ChatQuirks = last.Chat
	}
	usedNamespaces := rawitem.HasNamespace(last.Tools)
	if len(last.Input) == 0 { // the endpoint got no tools in the input
		c.Settings.ToolsInInput, c.Settings.Context = false, ""
	} else if !usedNamespaces { // in the input, tools without a namespace of their own are in FunctionsNamespace
		usedNamespaces = slices.ContainsFunc(last.Input[0].Tools, func(group struct{ Name string }) bool { return group.Name != rawitem.FunctionsNamespace })
	}
	if recorded != nil && rawitem.HasNamespace(c.Settings.Tools) && !usedNamespaces {
		c.Settings.FlatNamespaces = true
	}
}

// splitCalls splits the calls of the last answer into those with a result, keyed by call number, and those that
// still have to run. interrupted gives the result of a call that started but did not finish.
func (p *ResumeState) splitCalls(interrupted Interrupted) (results map[int]tools.Result, unstarted []tools.Call) {
	results = map[int]tools.Result{}
	for i, call := range p.openAnswer.Calls {
		if finished, isFinished := p.finished[refOf(call)]; isFinished {
			results[call.Number] = tools.Result{Output: finished.Output, Failed: finished.Failed, Found: toolsFoundBy(finished)}
			continue
		}
		if started, isStarted := p.started[refOf(call)]; isStarted {
			asRecorded := call
			asRecorded.Name = started.Tool
			result := interrupted(asRecorded)
			result.Output += p.describeScriptCalls("\n\nThe calls that it made", func(ref transcript.CallRef) bool { return ref.Caller == call.Number })
			results[call.Number] = result
			continue
		}
		if i >= p.openAnswer.admitted {
			results[call.Number] = tools.Refuse(p.openAnswer.whyNotRun)
			continue
		}
		unstarted = append(unstarted, call)
	}
	return results, unstarted
}

// Interrupted returns the result for a call that started but did not finish.
type Interrupted func(call tools.Call) tools.Result

// Resume finishes the last answer of p: it adds an output for each call. A finished call has its recorded result. A call
// that had only started gets its result from interrupted. The other calls run now.
func (c *Conversation) Resume(ctx context.Context, p *ResumeState, interrupted Interrupted) error {
	if err := c.undoSummaryRequest(p); err != nil {
		return err
	}
	c.finishScriptCalls(p, interrupted)
	if !p.openAnswer.NeedsReply() {
		return cmp.Or(c.reportLostCalls(p), c.reportScriptCalls(p))
	}
	results, unstarted := p.splitCalls(interrupted)
	for _, call := range p.openAnswer.Calls {
		_, started := p.started[refOf(call)]
		if started && !p.hasFinished(refOf(call)) { // record that it has ended
			c.Finished(tools.Finished{Call: call, Tool: call.Name, Result: results[call.Number]})
		}
	}
	for i, result := range c.runUnstarted(ctx, p, unstarted, results) {
		results[unstarted[i].Number] = result
	}
	outputs, err := callitem.Outputs(p.openAnswer.Calls, c.definitions, func(_ int, call tools.Call) tools.Result { return results[call.Number] })
	if err != nil {
		return err
	}
	c.AddItems(append(outputs, p.openAnswer.Denials...)...)
	for _, call := range p.openAnswer.Calls[:p.openAnswer.admitted] {
		c.noteResult(call, results[call.Number])
	}
	err = c.reportScriptCalls(p)
	p.openAnswer = admittedAnswer{}
	return cmp.Or(err, ctx.Err())
}

// runUnstarted runs the calls of an answer that have not started, and returns their results. Calls in the
// model's text run last. results are those of earlier calls.
func (c *Conversation) runUnstarted(ctx context.Context, p *ResumeState, unstarted []tools.Call, results map[int]tools.Result) []tools.Result {
	firstWritten := slices.IndexFunc(unstarted, func(call tools.Call) bool { return call.Form == tools.Written })
	if firstWritten < 0 {
		return c.Tools.Dispatch(ctx, unstarted)
	}
	editFailed := slices.ContainsFunc(p.openAnswer.Calls, func(call tools.Call) bool { return isEdit(call) && results[call.Number].Failed })
	return append(c.Tools.Dispatch(ctx, unstarted[:firstWritten]), c.runWrittenCalls(ctx, unstarted[firstWritten:], editFailed)...)
}

// undoSummaryRequest removes an order to write a summary, and its answer, if the run was killed before the summary
// replaced the conversation. Otherwise the order to call nothing would remain.
func (c *Conversation) undoSummaryRequest(p *ResumeState) error {
	if p.beforeSummary == nil {
		return nil
	}
	c.position = *p.beforeSummary
	err := c.adoptCompaction(&compaction{method: "none", items: c.history, before: c.tokens()}, reasonInterrupted)
	c.lastCount, c.compactedTokens = p.beforeSummary.lastCount, 0 // it is still too long, so a compaction must follow at once
	return err
}

// reportLostCalls tells the model which calls had started when their answer was lost. The history contains no items
// of that answer.
func (c *Conversation) reportLostCalls(p *ResumeState) error {
	lost := p.startedCalls(func(ref transcript.CallRef) bool { return ref.Caller == 0 })
	if len(lost) == 0 {
		return nil
	}
	words := "The runner was killed while your answer was on its way, and was started again. These calls of the answer had begun, and their outputs are lost:"
	for _, call := range lost {
		words += fmt.Sprintf("\n- %s: %s", call.Tool, call.Input)
	}
	c.callNumber = p.lastCallNumber()
	return c.Tell(words + "\nA command may have had some of its effects and not others: look at what is there before you repeat it.")
}
