package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/timeline"
)

// assembler makes entries of events. It passes an entry to emit once the entry is complete and all
// earlier entries were passed.
type assembler struct {
	limit textLimit
	emit  func(*entry)
	view  *transcript.View // names the agents and the scripted session
	start time.Time
	// unfinished has the events that begin something without an end. It is nil in the first pass,
	// which finds them.
	unfinished map[int64]bool
	queue      []*entry
	calls      transcript.OpenCalls[*entry]
	turns      map[turnKey]*entry // turns without an answer
	openEvents map[int64]bool     // events that begin calls and turns without an end
}

type turnKey struct {
	agent string
	turn  int
}

// newAssembler returns an assembler that passes complete entries to emit. unfinished has the events that
// begin something without an end; it is nil in the first pass.
func newAssembler(view *transcript.View, limit textLimit, unfinished map[int64]bool, emit func(*entry)) *assembler {
	return &assembler{view: view, limit: limit, emit: emit, unfinished: unfinished, turns: map[turnKey]*entry{}, openEvents: map[int64]bool{}}
}

// add adds an event and passes on complete entries.
func (a *assembler) add(e transcript.Event) {
	if a.start.IsZero() {
		a.start = e.Time
	}
	var n *entry
	switch d := e.Content.(type) {
	case transcript.ModelRequest:
		n = a.modelRequest(e, d)
	case transcript.ModelResponse:
		n = a.modelResponse(e, d)
	case transcript.ToolStarted:
		n = a.toolStarted(e, d)
	case transcript.ToolFinished:
		n = a.toolFinished(e, d)
	default:
		n = a.addNote(e, timeline.Describe(e))
	}
	if isFirstPass := a.unfinished == nil; isFirstPass {
		n.entryTexts = entryTexts{} // the limit has their sizes, and n may wait for a call that never ends
	}
	for len(a.queue) > 0 && !a.queue[0].incomplete {
		first := a.queue[0]
		a.emit(first)
		first.entryTexts = entryTexts{} // a script is kept for its calls, which need no texts
		a.queue = a.queue[1:]
	}
}

// addNote adds and returns an entry for an event on its own, which has a description.
func (a *assembler) addNote(e transcript.Event, description timeline.Entry) *entry {
	n := a.newEntry(e, "note", "")
	n.Line, n.Bad, n.seconds = description.Line, description.Bad, description.Seconds
	n.Topic, n.refused = description.Host, description.RefusedBy
	if description.Texts == nil {
		description.Texts = []timeline.LongText{{Title: "Data", Text: transcript.ReadableArguments(string(e.Data))}}
	}
	for _, t := range description.Texts {
		a.addPart(n, t.Title, t.Text)
	}
	for _, o := range description.Outputs {
		a.addPart(n, o.Title(), o.Tail)
	}
	a.addMessage(n, description.Message)
	return n
}

// releaseAll passes on all entries, complete or not.
func (a *assembler) releaseAll() {
	for _, n := range a.queue {
		a.emit(n)
	}
}

// newEntry begins an entry.
func (a *assembler) newEntry(e transcript.Event, kind, name string) *entry {
	n := &entry{Seq: e.Seq, At: transcript.FormatClock(e.Time.Sub(a.start)), entryLine: entryLine{Kind: kind, Name: name}}
	if e.Agent != transcript.MainAgent {
		n.Agent = cmp.Or(a.view.AgentName(e.Agent), e.Agent)
	}
	a.queue = append(a.queue, n)
	return n
}

// holdBack marks n as incomplete, so that later entries wait for it. An entry that will never be complete
// does not make them wait.
func (a *assembler) holdBack(n *entry) {
	n.incomplete = !a.unfinished[n.Seq]
	a.openEvents[n.Seq] = true
}

// markComplete marks an entry as complete. seq is the event that completed it.
func (a *assembler) markComplete(n *entry, seq int64) {
	n.incomplete = false
	if n.Seq != seq { // otherwise the beginning is missing
		n.Until = seq
	}
	delete(a.openEvents, n.Seq)
}

// addPart adds a titled text to an entry, unless the text is empty.
func (a *assembler) addPart(n *entry, title, text string) {
	if text != "" {
		n.addPart(0, title, plainWeights.cut(a.limit, text))
	}
}

// addMessage adds an agent's message to an entry, unless the message is empty.
func (a *assembler) addMessage(n *entry, text string) {
	if text == "" {
		return
	}
	n.Message = append(n.Message, prose(proseWeights.cut(a.limit, text)))
}

// indentJSON returns indented JSON, or raw itself if it is invalid.
func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// toolStarted begins the entry of a call. Until the call ends, the entry says that it did not.
func (a *assembler) toolStarted(e transcript.Event, started transcript.ToolStarted) *entry {
	n := a.addCall(e, started)
	n.Topic = started.Topic()
	n.End, n.Bad = "did not end", true
	a.holdBack(n)
	if transcript.IsScript(started.Tool) {
		a.addPart(n, "Script", started.Input)
	} else {
		a.addInput(n, started.Tool, started.ReadableInput())
	}
	return n
}

// addCall begins the entry of a call, with a reference to the script that made it.
func (a *assembler) addCall(e transcript.Event, d transcript.ToolStarted) *entry {
	n := a.newEntry(e, "call", d.Tool)
	if script := a.calls.Add(d, n); script != nil {
		n.By = script.Seq
	}
	n.Nested = d.Caller > 0
	return n
}

// addInput adds the arguments of a call. A patch is shown as a diff, and the arguments only if they hold more than it.
func (a *assembler) addInput(n *entry, tool, input string) {
	patch, isWholeInput := patchOf(tool, input)
	if patch != nil {
		n.paths = v4a.Paths(patch)
		n.Parts = append(n.Parts, drawDiff(a.limit, patch))
		n.Open = true
	}
	if !isWholeInput {
		a.addPart(n, "Arguments", transcript.ReadableArguments(input))
	}
}

// toolFinished completes the entry of a call.
func (a *assembler) toolFinished(e transcript.Event, finished transcript.ToolFinished) *entry {
	n := a.calls.Take(e, finished, a.addCall)
	a.markComplete(n, e.Seq)
	n.addResult(a.limit, finished)
	n.Topic = cmp.Or(n.Topic, finished.Files())
	return n
}

// modelRequest begins the entry of a turn, which its response completes.
func (a *assembler) modelRequest(e transcript.Event, request transcript.ModelRequest) *entry {
	n := a.newEntry(e, "turn", fmt.Sprintf("Turn %d", request.Turn))
	n.Topic = request.Model
	if a.view.Started.Scripted != "" {
		n.Topic = "scripted answers"
	}
	n.End, n.Bad = "no answer", true
	a.addSettings(n, request.Settings)
	for _, item := range request.Input {
		a.addPart(n, "Tools offered", offeredInInput(item))
		role, text := sentText(item)
		a.addPart(n, "Sent as "+role, text)
	}
	a.turns[turnKey{e.Agent, request.Turn}] = n
	a.holdBack(n)
	return n
}

// modelResponse completes the entry of a turn. If the request is missing, it adds one.
func (a *assembler) modelResponse(e transcript.Event, response transcript.ModelResponse) *entry {
	key := turnKey{e.Agent, response.Turn}
	n, known := a.turns[key]
	if !known {
		n = a.newEntry(e, "turn", fmt.Sprintf("Turn %d", response.Turn))
	}
	delete(a.turns, key)
	a.markComplete(n, e.Seq)
	n.Bad, n.seconds = response.Status != "completed", response.Seconds
	n.End = fmt.Sprintf("%s · %s in, %s out", transcript.FormatSeconds(response.Seconds), transcript.GroupThousands(response.Usage.Input), transcript.GroupThousands(response.Usage.Output))
	if n.Bad {
		n.End = response.Status + " · " + n.End
	}
	for _, item := range response.Output {
		a.addOutput(n, item)
	}
	return n
}
