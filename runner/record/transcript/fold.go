package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// FoldWithEntries folds a log into a view. Its Entries have excerpts within limits c, so a long run needs
// little memory. If the last line is incomplete, the view's Torn is set.
func FoldWithEntries(r io.Reader, c ExcerptLimits) (*View, error) {
	return (&fold{keepEntries: true, limits: c}).foldLog(r)
}

// FoldEvents folds a log into a view without Entries. It calls visit with each folded event and the view so
// far, and returns its first error. visit may be nil.
func FoldEvents(r io.Reader, visit func(*View, Event) error) (*View, error) {
	return (&fold{visit: visit}).foldLog(r)
}

// RestoreFollower returns a follower with the events of a log, up to an incomplete last line.
func RestoreFollower(r io.Reader) (*Follower, error) {
	f := new(Follower)
	_, err := f.fold.foldLog(r)
	return f, err
}

// foldLog folds a whole log into a new view. Before an incomplete last line it stops and sets Torn.
func (f *fold) foldLog(r io.Reader) (*View, error) {
	f.view = &View{LogState: LogState{Head: eventlog.Genesis}}
	for line, err := range eventlog.Lines(r) {
		if torn := (*eventlog.TornError)(nil); errors.As(err, &torn) {
			f.view.Torn = true
			break
		}
		if err != nil {
			return nil, err
		}
		if err := f.foldLine(line); err != nil {
			return nil, err
		}
	}
	return f.view, nil
}

// fold is the state of folding events into a view.
type fold struct {
	view        *View
	visit       func(*View, Event) error // may be nil
	keepEntries bool                     // Entries are made, with excerpts within cut
	limits      ExcerptLimits
	calls       OpenCalls[*Call]
	answered    bool // the last request of the run's own agent was answered
	calledTool  bool // the run's own agent called a tool since its last request
	mainTurns   int  // turns of the run's own agent
}

// Follower folds events into a view while they are written. The view has no Entries.
type Follower struct{ fold fold }

// NewFollower returns a follower for a new or resumed run. Its view begins with the plan, models, usage and
// agents of the view known.
func NewFollower(known *View) *Follower {
	view := &View{
		Started: known.Started, Conversation: Conversation{Plan: known.Plan}, Counts: Counts{Turns: known.Turns},
		ModelState: ModelState{Usage: known.Usage, Models: slices.Clone(known.Models)}, Lifetime: known.Lifetime,
	}
	for _, a := range known.Agents {
		copied := *a // others keep reading a
		view.Agents = append(view.Agents, &copied)
	}
	f := &Follower{fold{view: view, mainTurns: known.Turns}}
	for _, a := range known.Agents {
		f.fold.mainTurns -= a.Turns
	}
	return f
}

// Apply folds an event that this process wrote.
func (f *Follower) Apply(e Event) error { return f.fold.apply(e) }

// View returns the current view. The next Apply changes that view.
func (f *Follower) View() *View { return f.fold.view }

// foldLine folds a line and advances the view's head.
func (f *fold) foldLine(l eventlog.Line) error {
	err := f.foldEvent(l)
	f.view.EventCount++
	f.view.Head = l.Digest()
	return err
}

// foldEvent folds the event of a line. Without visit it uses Envelope, which is fast, but may return data
// that is invalid JSON. Then, and with visit, it parses the whole line.
func (f *fold) foldEvent(l eventlog.Line) error {
	if e, ok := l.Envelope(); ok && f.visit == nil && decoders[e.Type] != nil {
		err := f.apply(e)
		isBroken := errors.As(err, new(*json.SyntaxError)) // the real end of the data may be later
		if !isBroken {
			return err
		}
	}
	e, err := l.Event()
	if err != nil {
		return err
	}
	if err := f.apply(e); err != nil {
		return err
	}
	if f.visit == nil {
		return nil
	}
	return f.visit(f.view, e)
}

// apply folds an event.
func (f *fold) apply(e Event) error {
	data, err := Decode(e)
	if err != nil {
		return err
	}
	f.add(e, data)
	if f.view.ResumedAt.IsZero() {
		f.view.ResumedAt = e.Time
	}
	f.view.LastEventAt = e.Time
	return nil
}

// add changes the view by an event with decoded data. Events of other types change nothing.
func (f *fold) add(e Event, data any) {
	v := f.view
	switch d := data.(type) {
	case RunStarted:
		f.runStarted(e, d)
	case RunResumed:
		f.runResumed(e, d)
	case RunFinished:
		v.Finished = &d
	case Task:
		v.Task = d
	case Workspace:
		v.Workspace = d
	case Policy:
		v.Policy = d
	case Setup:
		v.Setup = append(v.Setup, d)
	case HostRequest:
		f.network(d)
	case SecretUsed:
		f.secretUsed(d)
	case Warning:
		v.Warnings = append(v.Warnings, d)
	case MCPServer:
		f.mcpServer(d)
	case Hooks:
		v.Hooks = NewHookUses(d.Hooks, v.Hooks)
	case HookAnswer:
		f.hook(d)
	case Skills:
		v.Skills = d
	case Plan:
		v.Plan = d
	case Verify:
		f.verify(d)
	case Change:
		f.change(d)
	case Inspection:
		v.Inspection = d
	case Publish:
		f.publish(d)
	case Memory:
		v.Memory = &d
	case Lesson:
		f.lesson(d)
	case Lessons:
		v.Lessons = &d
	case ModelRequest:
		f.modelRequest(e, d)
	case ModelResponse:
		f.modelResponse(e, d)
	case ModelRetry:
		v.Retries++
		f.addUsage(e, d.Usage)
	case ModelFailure:
		f.addUsage(e, d.Usage)
	case ModelFallback:
		f.modelFallback(e, d)
	case Compaction:
		if d.Reason != RefusedItems {
			v.Compactions++
		}
		f.addUsage(e, d.Usage)
	case AgentStarted:
		f.agentStarted(e, d)
	case AgentFinished:
		f.agentFinished(e, d)
	case ToolStarted:
		f.toolStarted(e, d)
	case ToolFinished:
		f.toolFinished(e, d)
	}
}

// runStarted sets the settings and the price of the first model.
func (f *fold) runStarted(e Event, d RunStarted) {
	f.view.StartedAt, f.view.Started = e.Time, d
	f.view.Models = []ModelUse{{Price: d.Price}} // the first request has its name
}

// runResumed begins another lifetime of the run. The event has the length of the lifetimes before, including
// time without events.
func (f *fold) runResumed(e Event, d RunResumed) {
	v := f.view
	v.Resumed, v.Finished = &d, nil
	v.markUsesIncomplete()
	if d.WorkTree != "" {
		v.Policy.WorkTree, v.Policy.NoOverlay = d.WorkTree, ""
	}
	v.EarlierLifetime = max(v.EarlierLifetime+v.LastEventAt.Sub(v.ResumedAt), time.Duration(d.Seconds*float64(time.Second)))
	v.ResumedAt, v.LastEventAt = e.Time, e.Time
}

// verify sets the last verification table. A table of attempt 0 is the baseline. A table for a moved base
// does not belong to Work.
func (f *fold) verify(d Verify) {
	v := f.view
	v.Verify = &d
	if d.Attempt == 0 {
		v.Baseline = &d
	}
	if !v.ChangeMoved() {
		v.Work.Verify = &d
	}
}

// change sets the last change. A change on a moved base does not belong to Work.
func (f *fold) change(d Change) {
	v := f.view
	v.Work.Done = f.answered && !f.calledTool
	v.Change = &d
	if !v.ChangeMoved() {
		v.Work.Change = &d
	}
}

// publish adds a publishing step.
func (f *fold) publish(d Publish) {
	if d.Operation == PublishBegun {
		return // it may not have been made
	}
	if d.About != "" {
		f.view.OtherPublishSteps = append(f.view.OtherPublishSteps, d)
		return
	}
	f.view.PublishSteps = append(f.view.PublishSteps, d)
	f.view.Work.LastPublishStep = d.Step
}

// modelRequest records a request of the run's own agent.
func (f *fold) modelRequest(e Event, d ModelRequest) {
	if f.agentOf(e) != nil {
		return
	}
	f.view.Model, f.view.RequestedTurns = d.Model, max(f.view.RequestedTurns, d.Turn)
	if len(f.view.Models) == 0 { // the beginning of the record is missing
		f.view.Models = []ModelUse{{}}
	}
	if first := &f.view.Models[0]; first.Model == "" {
		first.Model = d.Model
	}
	f.view.Work.Done, f.view.Work.LastPublishStep = false, ""
	f.answered, f.calledTool = false, false
}

// modelResponse counts a response's usage and turn. It adds the response's messages before the
// calls of the same turn.
func (f *fold) modelResponse(e Event, d ModelResponse) {
	f.addUsage(e, &d.Usage)
	f.countHosted(e, d.Output)
	f.countTurn(e, d.Turn)
	if e.Agent == MainAgent {
		f.answered = true
	}
	if f.view.Verify != nil {
		f.view.Work.VerifyAttempts = f.view.Verify.Attempt
	}
	index := f.messageIndex(e.Agent, d.Turn)
	for _, item := range d.Output {
		text := messageText(item)
		if strings.TrimSpace(text) == "" {
			continue
		}
		if e.Agent == MainAgent && !d.Internal {
			f.view.LastMessage = text
		}
		if f.keepEntries {
			f.view.Entries = slices.Insert(f.view.Entries, index, Entry{Agent: e.Agent, Name: f.view.AgentName(e.Agent), Message: f.limits.excerpt(text, f.limits.MessageLines)})
			index++
		}
	}
}

// countHosted counts the calls of the run's own agent that the API ran. These calls have no events.
func (f *fold) countHosted(e Event, output []json.RawMessage) {
	for _, item := range output {
		var responseItem ResponseItem
		if e.Agent == MainAgent && json.Unmarshal(item, &responseItem) == nil && responseItem.IsHosted() {
			f.view.HostedCalls++
		}
	}
}

// ResponseItem has the fields of a response's item that tell who runs its call.
type ResponseItem struct {
	Type        string `json:"type"`
	Execution   string `json:"execution"` // of a tool_search_call: server or client
	Environment *struct {
		Type string `json:"type"`
	} `json:"environment"`
}

// hostedCalls lists the item types of calls that only the API runs.
var hostedCalls = []string{"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "image_generation_call"}

// IsHosted reports whether the API runs the item's call. A shell in the API's container counts.
func (i ResponseItem) IsHosted() bool {
	switch i.Type {
	case "shell_call":
		return i.Environment != nil && i.Environment.Type != "local"
	case "tool_search_call":
		return i.Execution == "server"
	}
	return slices.Contains(hostedCalls, i.Type)
}

// countTurn updates the number of turns of an agent and of the run.
func (f *fold) countTurn(e Event, turn int) {
	turns := &f.mainTurns
	if a := f.agentOf(e); a != nil {
		turns = &a.Turns
	}
	f.view.Turns += max(0, turn-*turns)
	*turns = max(*turns, turn)
}

// modelFallback adds the new model of an agent.
func (f *fold) modelFallback(e Event, d ModelFallback) {
	f.view.Fallbacks = append(f.view.Fallbacks, d)
	if a := f.agentOf(e); a != nil {
		a.Models = append(a.Models, ModelUse{Model: d.To, Price: d.Price})
		return
	}
	f.view.Models = append(f.view.Models, ModelUse{Model: d.To, Price: d.Price})
}

// messageIndex returns the index in Entries for a response's message: before the calls of that turn, which
// may have started earlier.
func (f *fold) messageIndex(agent string, turn int) int {
	index := len(f.view.Entries)
	for i, e := range slices.Backward(f.view.Entries) {
		if e.Agent != agent {
			continue
		}
		isOfTurn := e.Call != nil && e.Call.Turn == turn
		ofEarlierScript := e.Call != nil && e.Call.Script != nil && !isOfTurn
		switch {
		case isOfTurn:
			index = i
		case !ofEarlierScript: // a script of an earlier turn may still call
			return index
		}
	}
	return index
}

// messageText returns the text of a message item, or "" for another item.
func messageText(item json.RawMessage) string {
	var message struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(item, &message) != nil || message.Type != "message" {
		return ""
	}
	return PartsText(message.Content)
}

// PartsText returns the text of a message's parts, or "" for other content.
func PartsText(content json.RawMessage) string {
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		if text := part.Text + part.Refusal; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// toolStarted opens a call.
func (f *fold) toolStarted(e Event, d ToolStarted) {
	call := f.startCall(e, d)
	f.calledTool = f.calledTool || d.Caller == 0 && e.Agent == MainAgent // a script may call while the model continues
	if f.keepEntries {
		call.Topic = d.Topic()
		call.Input = f.limits.excerpt(ReadableArguments(d.ReadableInput()), f.limits.Lines)
	}
}

// startCall opens a call and counts it. With entries, it adds an entry. If a script made the call,
// the call refers to that script's call.
func (f *fold) startCall(e Event, d ToolStarted) *Call {
	call := &Call{Turn: d.Turn, ID: d.CallID, Tool: d.Tool}
	call.Script = f.calls.Add(d, call)
	f.view.Calls++
	if a := f.agentOf(e); a != nil {
		a.Calls++
	}
	if f.keepEntries {
		f.view.Entries = append(f.view.Entries, Entry{Agent: e.Agent, Name: f.view.AgentName(e.Agent), Call: call})
	}
	return call
}

// toolFinished ends a call.
func (f *fold) toolFinished(e Event, d ToolFinished) {
	if d.Uncounted() {
		f.view.UncountedCalls++
	}
	f.skillLoaded(d)
	call := f.calls.Take(e, d, f.startCall)
	if f.keepEntries {
		call.setResult(d, f.limits)
	}
}

// setResult sets the result of a call.
func (c *Call) setResult(finished ToolFinished, limits ExcerptLimits) {
	c.Finished = true
	c.Failed = finished.Failed
	c.Result = finished.DescribeResult()
	c.Output = limits.excerpt(ReadableOutput(finished.Output), limits.Lines)
	c.OutputFile = finished.File
	c.OutputBytes = finished.Bytes
	c.Seconds = finished.Seconds
	c.Changed = listsChangedFiles(finished.Detail)
	c.Topic = cmp.Or(c.Topic, finished.Files())
}

// listsChangedFiles reports whether the detail of a call, or of a command in it, lists changed files.
func listsChangedFiles(detail map[string]any) bool {
	files, _ := detail["files"].([]any)
	commands, _ := detail["commands"].([]any)
	return len(files) > 0 || slices.ContainsFunc(commands, func(command any) bool {
		commandDetail, _ := command.(map[string]any)
		return listsChangedFiles(commandDetail)
	})
}
