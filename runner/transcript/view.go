package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// View is the state of a run, folded from its events. What an event replaces
// (plan, verification, change) is there in its last form only.
type View struct {
	StartedAt time.Time
	Started   RunStarted
	Task      Task
	Workspace Workspace
	Policy    Policy
	Model     string // of the last request
	Setup     []Setup
	Plan      Plan
	Verify    *Verify // nil before the baseline
	Change    *Change // nil when there is none yet
	Publish   []Publish
	Warnings  []Warning
	Entries   []Entry // messages and calls, as they came
	Turns     int
	Calls     int
	Retries   int
	// Compactions is how often the conversation was made shorter.
	Compactions int
	Usage       Usage
	// LastMessage is the last message of the run's own agent, whole.
	LastMessage string
	Finished    *RunFinished // nil while the run goes on, or when it was killed
	Events      int64
	Head        string // of the chain: the SHA-256 in hex of the last event's line
	Torn        bool   // the log's last line was not whole
}

// Entry is a message of an agent or a call that it made; one of the two is set.
type Entry struct {
	Seq     int64 // of the event that began it
	Agent   string
	Message Excerpt
	Call    *Call
}

// Call is one tool call from its start to its end.
type Call struct {
	Turn      int
	ID        string
	Tool      string
	Topic     string // what it was about, in one line: the command, the path, …
	Input     Excerpt
	Output    Excerpt
	Offered   bool
	Finished  bool // else the run ended before the call did
	Failed    bool
	ExitCode  *int
	Truncated bool
	File      string
	Bytes     int64
	Seconds   float64
	Changed   bool // its tool tells of files that it changed
}

// Summary is what the agent said last.
func (v *View) Summary() string {
	if v.Finished != nil && v.Finished.Summary != "" {
		return v.Finished.Summary
	}
	return v.LastMessage
}

// Project folds the events of a log into a view whose Entries have excerpts of
// messages, inputs and outputs, so that a long run takes little memory. A torn last
// line is noted in the view.
func Project(r io.Reader, c Cut) (*View, error) { return newFold(c).all(r) }

// Survey is Project without Entries. Each event is handed on before it is
// folded; an error of visit ends it.
func Survey(r io.Reader, visit func(Event) error) (*View, error) {
	f := newFold(Cut{})
	f.visit = visit
	return f.all(r)
}

func newFold(c Cut) *fold {
	return &fold{view: &View{Head: genesis}, cut: c, open: map[callKey][]*Call{}}
}

func (f *fold) all(r io.Reader) (*View, error) {
	for line, err := range lines(r) {
		if torn := (*TornError)(nil); errors.As(err, &torn) {
			f.view.Torn = true
			break
		}
		if err != nil {
			return nil, err
		}
		if err := f.line(line); err != nil {
			return nil, err
		}
	}
	return f.view, nil
}

// fold builds a view event by event.
type fold struct {
	view *View
	cut  Cut
	// open holds the calls without an end, oldest first: nothing keeps a model
	// from using an id twice.
	open map[callKey][]*Call
	// visit, where it is set, gets the events in place of the view's Entries.
	visit func(Event) error
}

type callKey struct {
	agent, id string
	number    int
}

func (f *fold) line(l line) error {
	err := f.event(l)
	f.view.Events++
	f.view.Head = digest(l.text)
	return err
}

func (f *fold) event(l line) error {
	if e, ok := l.envelope(); ok && f.visit == nil && folds[e.Type] != nil {
		err := f.take(e)
		if broken := (*json.SyntaxError)(nil); !errors.As(err, &broken) {
			return err
		} // the data may only seem to end there
	}
	e, err := l.event()
	if err != nil {
		return err
	}
	if f.visit != nil {
		if err := f.visit(e); err != nil {
			return err
		}
	}
	if folds[e.Type] == nil {
		return nil
	}
	return f.take(e)
}

func (f *fold) take(e Event) error {
	if err := folds[e.Type](f, e); err != nil {
		return fmt.Errorf("transcript event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// folds says what each type of event does to a view; others do nothing. Data that
// are no JSON change nothing.
var folds = map[Type]func(*fold, Event) error{
	TypeRunStarted: func(f *fold, e Event) error {
		f.view.StartedAt = e.Time
		return json.Unmarshal(e.Data, &f.view.Started)
	},
	TypeTask:          func(f *fold, e Event) error { return json.Unmarshal(e.Data, &f.view.Task) },
	TypeWorkspace:     func(f *fold, e Event) error { return json.Unmarshal(e.Data, &f.view.Workspace) },
	TypePolicy:        func(f *fold, e Event) error { return json.Unmarshal(e.Data, &f.view.Policy) },
	TypePlan:          func(f *fold, e Event) error { return replace(&f.view.Plan, e) },
	TypeSetup:         func(f *fold, e Event) error { return appendTo(&f.view.Setup, e) },
	TypePublish:       func(f *fold, e Event) error { return appendTo(&f.view.Publish, e) },
	TypeWarning:       func(f *fold, e Event) error { return appendTo(&f.view.Warnings, e) },
	TypeVerify:        func(f *fold, e Event) error { return point(&f.view.Verify, e) },
	TypeChange:        func(f *fold, e Event) error { return point(&f.view.Change, e) },
	TypeRunResumed:    (*fold).runResumed,
	TypeRunFinished:   func(f *fold, e Event) error { return point(&f.view.Finished, e) },
	TypeModelRequest:  (*fold).modelRequest,
	TypeModelResponse: (*fold).modelResponse,
	TypeModelRetry:    func(f *fold, e Event) error { return counted(&f.view.Retries, f.spent(e)) },
	TypeModelFailure:  (*fold).spent,
	TypeCompaction:    func(f *fold, e Event) error { return counted(&f.view.Compactions, f.spent(e)) },
	TypeToolStarted:   (*fold).toolStarted,
	TypeToolFinished:  (*fold).toolFinished,
}

// replace decodes into a fresh value, so that nothing of the last one stays.
func replace[T any](to *T, e Event) error {
	var fresh T
	if err := json.Unmarshal(e.Data, &fresh); err != nil {
		return err
	}
	*to = fresh
	return nil
}

func point[T any](to **T, e Event) error {
	var fresh T
	if err := json.Unmarshal(e.Data, &fresh); err != nil {
		return err
	}
	*to = &fresh
	return nil
}

func appendTo[T any](to *[]T, e Event) error {
	var one T
	if err := json.Unmarshal(e.Data, &one); err != nil {
		return err
	}
	*to = append(*to, one)
	return nil
}

// counted adds one to what was taken without an error.
func counted(number *int, err error) error {
	if err == nil {
		*number++
	}
	return err
}

func (f *fold) runResumed(e Event) error {
	var data json.RawMessage
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	f.view.Finished = nil
	return nil
}

// spent adds the tokens that an event tells of beside those of a response.
func (f *fold) spent(e Event) error {
	var data struct {
		Usage Usage `json:"usage"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	f.view.Usage.add(data.Usage)
	return nil
}

func (f *fold) modelRequest(e Event) error {
	var request struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(e.Data, &request); err != nil {
		return err
	}
	f.view.Model = request.Model
	return nil
}

func (f *fold) modelResponse(e Event) error {
	var response ModelResponse
	if err := json.Unmarshal(e.Data, &response); err != nil {
		return err
	}
	f.view.Turns = max(f.view.Turns, response.Turn)
	f.view.Usage.add(response.Usage)
	at := f.beforeCalls(e.Agent, response.Turn)
	for _, item := range response.Output {
		text := messageText(item)
		if strings.TrimSpace(text) == "" {
			continue
		}
		if e.Agent == MainAgent && !response.Aside {
			f.view.LastMessage = text
		}
		if f.visit == nil {
			f.view.Entries = slices.Insert(f.view.Entries, at, Entry{Seq: e.Seq, Agent: e.Agent, Message: f.cut.message(text)})
			at++
		}
	}
	return nil
}

// beforeCalls is where the words of a response belong: before its calls, which
// may have started while it was on its way.
func (f *fold) beforeCalls(agent string, turn int) int {
	at := len(f.view.Entries)
	for i, e := range slices.Backward(f.view.Entries) {
		switch {
		case e.Agent != agent:
		case e.Call != nil && e.Call.Turn == turn:
			at = i
		default:
			return at
		}
	}
	return at
}

func (u *Usage) add(more Usage) {
	u.Input += more.Input
	u.Cached += more.Cached
	u.Output += more.Output
	u.Reasoning += more.Reasoning
}

// messageText is the text of an output item that is a message, else "". Items
// come as the API sent them, so that one of a shape that is not known is none.
func messageText(item json.RawMessage) string {
	var message struct {
		Type    string `json:"type"`
		Content []struct {
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		} `json:"content"`
	}
	if err := json.Unmarshal(item, &message); err != nil || message.Type != "message" {
		return ""
	}
	var parts []string
	for _, part := range message.Content {
		if text := part.Text + part.Refusal; text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

func (f *fold) toolStarted(e Event) error {
	var started ToolStarted
	if err := json.Unmarshal(e.Data, &started); err != nil {
		return err
	}
	call := f.begin(e, started.Turn, callKey{e.Agent, started.CallID, started.Number}, started.Tool)
	call.Topic = Topic(started.Input)
	call.Input = f.cut.text(Readable(started.Input))
	call.Offered = started.Offered
	return nil
}

func (f *fold) begin(e Event, turn int, key callKey, tool string) *Call {
	call := &Call{Turn: turn, ID: key.id, Tool: tool}
	f.open[key] = append(f.open[key], call)
	f.view.Calls++
	f.enter(Entry{Seq: e.Seq, Agent: e.Agent, Call: call})
	return call
}

func (f *fold) enter(e Entry) {
	if f.visit == nil {
		f.view.Entries = append(f.view.Entries, e)
	}
}

func (f *fold) toolFinished(e Event) error {
	var finished ToolFinished
	if err := json.Unmarshal(e.Data, &finished); err != nil {
		return err
	}
	key := callKey{e.Agent, finished.CallID, finished.Number}
	if len(f.open[key]) == 0 {
		f.begin(e, finished.Turn, key, finished.Tool)
	}
	call := f.open[key][0]
	f.open[key] = f.open[key][1:]
	if len(f.open[key]) == 0 {
		delete(f.open, key)
	}
	call.finish(finished, f.cut)
	return nil
}

func (c *Call) finish(f ToolFinished, cut Cut) {
	c.Finished = true
	c.Failed = f.Failed
	c.Output = cut.text(f.Output)
	c.Truncated = f.Truncated
	c.File = f.File
	c.Bytes = f.Bytes
	c.Seconds = f.Seconds
	c.Changed = tellsOfFiles(f.Detail)
	if code, ok := f.Detail["exit_code"].(float64); ok {
		exit := int(code)
		c.ExitCode = &exit
	}
}

// tellsOfFiles says whether the detail of a call lists files that it changed, or
// that of one of its commands does.
func tellsOfFiles(detail map[string]any) bool {
	files, _ := detail["files"].([]any)
	commands, _ := detail["commands"].([]any)
	return len(files) > 0 || slices.ContainsFunc(commands, func(one any) bool {
		of, _ := one.(map[string]any)
		return tellsOfFiles(of)
	})
}
