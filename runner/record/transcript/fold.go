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

// FoldWithEntries folds a log into a view whose Entries have excerpts, so that a long run needs little memory.
func FoldWithEntries(r io.Reader) (*View, error) {
	f := NewFolder()
	f.keepEntries = true
	return f.view, f.foldLog(r, nil)
}

// FoldWithTexts folds a log into a view whose Entries have whole texts.
func FoldWithTexts(r io.Reader) (*View, error) {
	f := NewFolder()
	f.keepEntries, f.whole = true, true
	return f.view, f.foldLog(r, nil)
}

// FoldEvents folds a log into a view without Entries. It calls visit with each folded event and the view so
// far, and returns its first error.
func FoldEvents(r io.Reader, visit func(*View, Event) error) (*View, error) {
	f := NewFolder()
	return f.view, f.foldLog(r, visit)
}

// foldLog folds the events of a log and calls visit with them, which may be nil. Before an incomplete last
// line it stops and sets Torn.
func (f *Folder) foldLog(r io.Reader, visit func(*View, Event) error) error {
	f.view.Head = eventlog.Genesis
	for line, err := range eventlog.Lines(r) {
		if errors.As(err, new(*eventlog.TornError)) {
			f.view.Torn = true
			break
		}
		if err != nil {
			return err
		}
		e, err := decodeLine(line)
		if err != nil {
			return err
		}
		f.Apply(e)
		f.view.EventCount++
		f.view.Head = line.Digest()
		if visit == nil {
			continue
		}
		if err := visit(f.view, e); err != nil {
			return err
		}
	}
	return nil
}

// Folder folds events into a view.
type Folder struct {
	view        *View
	keepEntries bool // Entries are made
	whole       bool // with whole texts, instead of excerpts
	calls       OpenCalls[*Call]
	answered    bool // the last request of the run's own agent was answered
	calledTool  bool // the run's own agent called a tool since its last request
	mainTurns   int  // turns of the run's own agent
}

// NewFolder returns a folder for a new run.
func NewFolder() *Folder { return &Folder{view: &View{}} }

// RestoreFolder returns a folder that has folded the events of a log, up to an incomplete last line.
func RestoreFolder(r io.Reader) (*Folder, error) {
	f := NewFolder()
	return f, f.foldLog(r, nil)
}

// View returns the current view. The next Apply changes that view.
func (f *Folder) View() *View { return f.view }

// Apply folds an event. Of a damaged event it takes what is readable, and sets the view's Damage.
func (f *Folder) Apply(e Event) {
	v := f.view
	v.Damage = cmp.Or(v.Damage, e.Damage)
	f.add(e)
	if v.ResumedAt.IsZero() {
		v.ResumedAt = e.Time
	}
	v.LastEventAt = e.Time
}

// add changes the view by an event. Events of other types change nothing.
func (f *Folder) add(e Event) {
	v := f.view
	switch d := e.Content.(type) {
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
		v.Hooks = newHookUses(d.Hooks, v.Hooks)
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
func (f *Folder) runStarted(e Event, d RunStarted) {
	f.view.StartedAt, f.view.Started = e.Time, d
	f.view.Models = []ModelUse{{Price: d.Price}} // the first request has its name
}

// runResumed begins another lifetime of the run. The event has the length of the earlier lifetimes, including time
// after their last events. The longer of that and the time between events counts.
func (f *Folder) runResumed(e Event, d RunResumed) {
	v := f.view
	v.Finished = nil
	v.markUsesIncomplete()
	if d.WorkTree != "" {
		v.Policy.WorkTree, v.Policy.NoOverlay = d.WorkTree, ""
	}
	betweenEvents := v.EarlierLifetime + v.LastEventAt.Sub(v.ResumedAt)
	recorded := time.Duration(d.Seconds * float64(time.Second))
	v.EarlierLifetime = max(betweenEvents, recorded)
	v.ResumedAt, v.LastEventAt = e.Time, e.Time
}

// verify sets the last verification table. A table of attempt 0 is the baseline. A table for a moved base
// does not belong to Work.
func (f *Folder) verify(d Verify) {
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
func (f *Folder) change(d Change) {
	v := f.view
	v.Work.Done = f.answered && !f.calledTool
	v.Change = &d
	if !v.ChangeMoved() {
		v.Work.Change = &d
	}
}

// publish adds a publishing step.
func (f *Folder) publish(d Publish) {
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
func (f *Folder) modelRequest(e Event, d ModelRequest) {
	if f.subagentOf(e) != nil {
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
func (f *Folder) modelResponse(e Event, d ModelResponse) {
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
			f.view.Entries = slices.Insert(f.view.Entries, index, Entry{Agent: e.Agent, Name: f.view.AgentName(e.Agent), Message: f.excerpt(text, messageLines)})
			index++
		}
	}
}

// countHosted counts the calls of the run's own agent that the API ran. These calls have no events.
func (f *Folder) countHosted(e Event, output []json.RawMessage) {
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
func (f *Folder) countTurn(e Event, turn int) {
	turns := &f.mainTurns
	if a := f.subagentOf(e); a != nil {
		turns = &a.Turns
	}
	f.view.Turns += max(0, turn-*turns)
	*turns = max(*turns, turn)
}

// modelFallback adds the new model of an agent.
func (f *Folder) modelFallback(e Event, d ModelFallback) {
	f.view.Fallbacks = append(f.view.Fallbacks, d)
	if a := f.subagentOf(e); a != nil {
		a.Models = append(a.Models, ModelUse{Model: d.To, Price: d.Price})
		return
	}
	f.view.Models = append(f.view.Models, ModelUse{Model: d.To, Price: d.Price})
}

// messageIndex returns the index in Entries for a response's message: before the calls of that turn, which
// may have started earlier.
func (f *Folder) messageIndex(agent string, turn int) int {
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

// toolStarted adds a call that has started.
func (f *Folder) toolStarted(e Event, d ToolStarted) {
	call := f.startCall(e, d)
	if byScript := d.Caller != 0; e.Agent == MainAgent && !byScript { // scripts may still call after the model's last answer
		f.calledTool = true
	}
	if f.keepEntries {
		call.Topic = d.Topic()
		call.Input = f.excerpt(ReadableArguments(d.ReadableInput()), excerptLines)
	}
}

// startCall adds a call and counts it. With entries, it adds an entry. If a script made the call,
// the call refers to that script's call.
func (f *Folder) startCall(e Event, d ToolStarted) *Call {
	call := &Call{Turn: d.Turn, ID: d.CallID, Tool: d.Tool}
	call.Script = f.calls.Add(d, call)
	f.view.Calls++
	if a := f.subagentOf(e); a != nil {
		a.Calls++
	}
	if f.keepEntries {
		f.view.Entries = append(f.view.Entries, Entry{Agent: e.Agent, Name: f.view.AgentName(e.Agent), Call: call})
	}
	return call
}

// toolFinished ends a call.
func (f *Folder) toolFinished(e Event, d ToolFinished) {
	if d.Uncounted() {
		f.view.UncountedCalls++
	}
	f.skillLoaded(d)
	call := f.calls.Take(e, d, f.startCall)
	if f.keepEntries {
		call.Finished = true
		call.Failed = d.Failed
		call.Result = d.DescribeResult()
		call.Output = f.excerpt(ReadableOutput(d.Output), excerptLines)
		call.OutputFile = d.File
		call.OutputBytes = d.Bytes
		call.Seconds = d.Seconds
		call.Changed = listsChangedFiles(d.Detail)
		call.Topic = cmp.Or(call.Topic, d.Files())
	}
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
