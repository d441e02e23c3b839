package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// toolbox answers every call by its name and keeps what it was asked.
type toolbox struct {
	answers map[string]tools.Result
	hold    func(context.Context) // each call until it returns; may be nil

	mu    sync.Mutex
	asked []tools.Call
}

// dispatcher is over a tool for each name: apply is freeform, apply_patch and
// shell are built in.
func (b *toolbox) dispatcher(observer tools.Observer) *tools.Dispatcher {
	object := json.RawMessage(`{"type":"object"}`)
	return &tools.Dispatcher{Observer: observer, Outputs: new(tools.Outputs), Registry: tools.New(
		b.tool(tools.Spec{Name: "read_file", Parameters: object}),
		b.tool(tools.Spec{Name: "broken", Parameters: object}),
		b.tool(tools.Spec{Name: "view_image", Parameters: object}),
		b.tool(tools.Spec{Name: "apply", Grammar: "start: /x/"}),
		b.tool(tools.Spec{Name: "apply_patch", Builtin: "apply_patch"}),
		b.tool(tools.Spec{Name: "shell", Builtin: "shell"}),
	)}
}

func (b *toolbox) tool(spec tools.Spec) tools.Tool {
	return tools.Tool{Spec: spec, Mutates: spec.Name == "apply_patch", Run: b.run}
}

func (b *toolbox) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if b.hold != nil {
		b.hold(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, call)
	slices.SortFunc(b.asked, func(a, b tools.Call) int { return a.Number - b.Number })
	result := b.answers[call.Name]
	result.Commands = slices.Clone(result.Commands)
	return result, nil
}

// recorder keeps each request's body on its way to a script.
type recorder struct {
	next   model.Responder
	bodies []string
}

func (r *recorder) Respond(ctx context.Context, request model.Request, o model.Observer) (*model.Response, error) {
	body, err := model.BodyFor(nil, request)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	return r.next.Respond(ctx, request, o)
}

type fixture struct {
	*agent.Conversation
	box      *toolbox
	requests *recorder
	log      string
}

func converse(t *testing.T, session string) fixture {
	t.Helper()
	script := must.Get(scripted.Read("session.yml", strings.NewReader(session)))(t)
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	log := must.Get(eventlog.Create(path, eventlog.Options{}))(t)
	t.Cleanup(func() {
		must.Is(t, nil, log.Close())
	})
	f := fixture{box: &toolbox{answers: map[string]tools.Result{
		"read_file": {Output: "hello"},
		"broken":    tools.Refuse("no such thing"),
	}}, requests: &recorder{next: script}, log: path}
	f.Conversation = &agent.Conversation{
		Model: f.requests, Log: log, Settings: model.Settings{Model: "scripted", Instructions: "Work."},
		Surroundings: agent.Surroundings{
			Plan: func() string { return "" }, KeptTexts: func() []string { return nil }, MustStop: func() error { return nil },
			BeforeCompaction: func(context.Context, string) error { return nil }, Warn: func(string, string, ...any) {},
		},
	}
	f.Tools = f.box.dispatcher(nil)
	return f
}

// events are those of a log.
func (f fixture) events(t *testing.T) []transcript.Event {
	t.Helper()
	file := must.Get(os.Open(f.log))(t)
	defer file.Close()
	var events []transcript.Event
	for event, err := range transcript.Read(file) {
		must.Do(t, err)
		events = append(events, event)
	}
	return events
}

// decoded returns the data of a log's events of one type.
func decoded[T any](t *testing.T, f fixture, of transcript.Type) (all []T) {
	t.Helper()
	for _, event := range f.events(t) {
		if event.Type != of {
			continue
		}
		var data T
		must.Do(t, json.Unmarshal(event.Data, &data))
		all = append(all, data)
	}
	return all
}

func (f fixture) mustTell(t *testing.T, words string) {
	t.Helper()
	must.Do(t, f.Tell(words))
}

func (f fixture) mustRun(t *testing.T) {
	t.Helper()
	must.Get(f.Run(t.Context()))(t)
}

// mustSay runs the conversation to its end, which has these last words.
func (f fixture) mustSay(t *testing.T, words string) {
	t.Helper()
	if said, err := f.Run(t.Context()); err != nil || said != words {
		t.Fatalf("Run = %q, %v", said, err)
	}
}

// mustResume restores a past, of which so many items are pinned, and resumes it.
func (f fixture) mustResume(t *testing.T, p *agent.ResumeState, pinned int, used ...transcript.ModelUse) {
	t.Helper()
	f.Restore(p, used, pinned)
	must.Do(t, f.Resume(t.Context(), p, nil))
}

// types lists the kinds of the events of a log.
func (f fixture) types(t *testing.T) []string {
	t.Helper()
	var types []string
	for _, event := range f.events(t) {
		types = append(types, string(event.Type))
	}
	return types
}

func TestRunContinuesUntilModelIsDone(t *testing.T) {
	t.Parallel()
	f := converse(t, `
version: 1
turns:
  - output:
      - say: Looking.
      - {call: read_file, id: one, arguments: {file_path: a}}
      - {call: apply, id: two, input: "*** Begin Patch"}
      - item: {type: reasoning, id: rs_1, summary: [], encrypted_content: opaque}
    usage: {input: 10, cached: 4, output: 3, reasoning: 1}
  - expect: [hello]
    output: [{say: Done.}]
    usage: {input: 20, output: 2}
`)
	f.mustTell(t, "Go on.")
	said, err := f.Run(t.Context())
	if err != nil || said != "Done." {
		t.Fatalf("Run = %q, %v", said, err)
	}
	want := []tools.Call{{ID: "one", Number: 1, Turn: 1, Name: "read_file", Input: `{"file_path":"a"}`}, {ID: "two", Number: 2, Turn: 1, Name: "apply", Input: "*** Begin Patch", Form: tools.Freeform}}
	must.Same(t, want, f.box.asked, "calls")
	second := f.requests.bodies[1]
	must.Contain(t, second,
		`"encrypted_content":"opaque"`,
		`{"type":"function_call_output","call_id":"one","output":"hello"}`,
		`{"type":"custom_tool_call_output","call_id":"two","output":""}`,
	)
	if prefix := strings.TrimSuffix(f.requests.bodies[0], "]}"); !strings.HasPrefix(second, prefix) {
		t.Errorf("the second request does not begin with the bytes of the first:\n%s\n%s", prefix, second)
	}
	spent := agent.Spent{Turns: 2, Calls: 2, Usage: model.Usage{Input: 30, Cached: 4, Output: 5, Reasoning: 1}}
	spent.Models = []transcript.ModelUse{{Usage: transcript.Usage(spent.Usage)}}
	must.Same(t, spent, f.Spent(), "spent")
	events := []string{"model.request", "model.response", "model.request", "model.response"}
	must.Same(t, events, f.types(t), "events")
}

// TestCommentaryDoesNotEndRun gives messages with a phase, as newer models do.
func TestCommentaryDoesNotEndRun(t *testing.T) {
	t.Parallel()
	message := func(phase, text string) string {
		return fmt.Sprintf("{item: {type: message, role: assistant, phase: %s, content: [{type: output_text, text: %s, annotations: []}]}}", phase, text)
	}
	remark := "  - output: [" + message("commentary", "On it.") + "]\n"
	final := "  - output: [" + message("commentary", "On it.") + ", " + message("final_answer", "Done.") + "]\n"
	for name, c := range map[string]struct {
		session string
		limits  agent.Limits
		said    string
		turns   int
	}{
		"alone it is pointed out once":             {remark + final, agent.Limits{}, "Done.", 2},
		"twice it is the end":                      {remark + remark, agent.Limits{}, "On it.", 2},
		"before a last word it is no part of that": {final, agent.Limits{}, "Done.", 1},
		"in the last turn it is the end":           {remark, agent.Limits{Turns: 1}, "On it.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := converse(t, "version: 1\nturns:\n"+c.session)
			f.Limits = c.limits
			said, err := f.Run(t.Context())
			if err != nil || said != c.said || f.Spent().Turns != c.turns {
				t.Fatalf("Run = %q, %v after %d turns", said, err, f.Spent().Turns)
			}
			must.Same(t, c.turns > 1, strings.Contains(f.requests.bodies[c.turns-1], "was commentary and called nothing"), "the last request is", f.requests.bodies[c.turns-1])
		})
	}
}

func TestEncodesToolDefinitions(t *testing.T) {
	t.Parallel()
	definitions := must.Get(callitem.Definitions([]tools.Spec{
		{Name: "look", Description: "Looks.", Parameters: json.RawMessage(`{"type":"object"}`)},
		{Name: "write", Description: "Writes.", Grammar: "start: /<x>/"},
		{Name: "apply_patch", Builtin: "apply_patch"},
		{Name: "shell", Builtin: "shell"},
		{Name: "shell", Builtin: "local_shell"},
	}))(t)
	want := []string{
		`{"type":"function","name":"look","description":"Looks.","strict":false,"parameters":{"type":"object"}}`,
		`{"type":"custom","name":"write","description":"Writes.","format":{"type":"grammar","syntax":"lark","definition":"start: /<x>/"}}`,
		`{"type":"apply_patch"}`,
		`{"type":"shell","environment":{"type":"local"}}`,
		`{"type":"local_shell"}`,
	}
	got := make([]string, len(definitions))
	for i, definition := range definitions {
		got[i] = string(definition)
	}
	must.Same(t, want, got)
}

func TestEndsWhenModelFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		session string
		want    string
		told    string // words that the last request must have
	}{
		"when a failing call is repeated": {"version: 1\nturns:\n" + strings.Repeat("  - output: [{call: broken, arguments: {a: 1}}]\n", 6), "model_failed/stuck_loop", "3 times in a row"},
		"after two empty answers":         {"version: 1\nturns:\n  - output: []\n  - output: []\n", "model_failed/empty_answer", "Your last answer was empty"},
		"when the model refuses": {
			"version: 1\nturns:\n  - output: [{item: {type: message, role: assistant, content: [{type: refusal, refusal: I will not}]}}]\n", "model_failed/refused", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := converse(t, c.session)
			outcometest.Want(t, must.Err(f.Run(t.Context())), c.want)
			must.Contain(t, f.requests.bodies[len(f.requests.bodies)-1], c.told)
		})
	}
}

func TestDifferingFailuresDoNotEndRun(t *testing.T) {
	t.Parallel()
	var s strings.Builder
	s.WriteString("version: 1\nturns:\n")
	for i := range 8 {
		fmt.Fprintf(&s, "  - output: [{call: broken, arguments: {a: %d}}]\n", i/4)
		if i == 3 {
			s.WriteString("  - output: [{call: read_file, arguments: {}}]\n")
		}
	}
	s.WriteString("  - output: [{say: Gave up.}]\n")
	f := converse(t, s.String())
	f.mustSay(t, "Gave up.")
}

func TestRunsNoCallBeyondLimit(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns:\n  - output: [{call: read_file, arguments: {a: 1}}, {call: read_file, arguments: {a: 2}}, {call: read_file, arguments: {a: 3}}]\n")
	f.Limits.Calls = 2
	_, err := f.Run(t.Context())
	must.Same(t, "tool_calls", outcometest.Reason(err), "Run ended in", err, "calls, want tool_calls after 2")
	must.Same(t, 2, len(f.box.asked), "Run ended in", err, "calls, want tool_calls after 2")
}

func TestCountsRepeatsInOneAnswerOnce(t *testing.T) {
	t.Parallel()
	six := strings.Repeat("{call: broken, arguments: {a: 1}}, ", 6)
	f := converse(t, "version: 1\nturns:\n  - output: ["+six+"]\n  - output: [{say: Gave up.}]\n")
	f.mustSay(t, "Gave up.")
}

// text is the whole log.
func (f fixture) text(t *testing.T) string {
	t.Helper()
	raw := must.Get(os.ReadFile(f.log))(t)
	return string(raw)
}

func dollarForToken() *price.List { return &price.List{Rates: price.Rates{Input: 1e6, Output: 1e6}} }

// TestRecordsNoImageBytes sends an image over HTTP to a server that
// holds requests against the API's description.
func TestRecordsNoImageBytes(t *testing.T) {
	t.Parallel()
	f, server := talk(t, session("{call: view_image, id: one, arguments: {path: a.png}}", "{say: Seen.}"), modeltest.Options{})
	f.box.answers["view_image"] = tools.Result{Output: "a.png: 1×1", Images: []tools.Image{{MediaType: "image/png", Data: []byte("pixels")}}}
	f.mustRun(t)
	noFaults(t, server)
	want := `{"type":"function_call_output","call_id":"one","output":[{"type":"input_text","text":"a.png: 1×1"},` +
		`{"type":"input_image","image_url":"data:image/png;base64,cGl4ZWxz","detail":"auto"}]}`
	must.Contain(t, string(server.Requests()[1].Body), want)
	log := f.text(t)
	kept := fmt.Sprintf(`"image_url":"sha256:%x (image/png, 6 bytes)"`, sha256.Sum256([]byte("pixels")))
	if strings.Contains(log, "cGl4ZWxz") || !strings.Contains(log, kept) {
		t.Errorf("the transcript has the image, or lacks %s:\n%s", kept, log)
	}
}
