package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/access"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Endpoint is the result of probing a model's endpoint.
type Endpoint struct {
	Capabilities []Capability   `json:"capabilities"`
	Settings     map[string]any `json:"settings"` // keys of model that a job should set, with their values
	Requests     int            `json:"requests"`
	Tokens       int64          `json:"tokens"`
	CostUSD      *float64       `json:"cost_usd"` // null where the price is not known
}

// Capability is an ability of an endpoint.
type Capability struct {
	Name  string `json:"name"`
	Works bool   `json:"works"`
	Note  string `json:"note,omitempty"`
}

// What the trials of an endpoint may take.
const (
	mostRequests  = 24
	mostTokens    = 2048 // of an answer, thoughts included
	mostTrialTime = 3 * time.Minute
	mostSilence   = time.Minute
)

// trials sends test requests to an endpoint. Later requests use what earlier ones found out.
type trials struct {
	at             model.Endpoint
	api            model.Responder
	wire           string
	settings       model.Settings
	found          Endpoint
	used           model.Usage
	usageEstimated bool                // tokens were estimated
	redact         func(string) string // secrets out of what an endpoint says
}

// newTrials returns trials with the job's settings.
func newTrials(at model.Endpoint, m job.Model, profile catalog.Profile, redact func(string) string) *trials {
	t := &trials{at: at, redact: redact, settings: model.Settings{
		Model: m.Name, Instructions: "You are being tried out. Do what is asked, and nothing else.",
		ServiceTier: m.ServiceTier, MaxOutputTokens: mostTokens, NoStream: !m.Stream, NoTools: m.WritesTextOnly(),
	}}
	t.found = Endpoint{Capabilities: []Capability{}, Settings: map[string]any{}}
	if profile.Reasoning {
		t.settings.Effort = m.ReasoningEffort
	}
	for _, name := range m.Chat {
		t.settings.ChatQuirks = append(t.settings.ChatQuirks, model.Quirk(name))
	}
	return t
}

// examineEndpoint sends test requests to the model's endpoint, and reports its capabilities and the settings for a
// job.
func (d *Diagnosis) examineEndpoint(ctx context.Context, p *sandboxcommand.Prepared, at model.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, mostTrialTime)
	defer cancel()
	m := p.Job.Model
	profile := catalog.ProfileAt(m.Name, at.BaseURL)
	at.Headers, at.IdleLimit, at.UserAgent = m.Headers, mostSilence, "agent-ci/"+d.AgentCI
	t := newTrials(at, m, profile, p.Record.Redact)
	if err := t.useWire(m.Wire); err != nil {
		return // a mistake of the configuration, which examineReadiness reports
	}
	d.Model.Endpoint = &t.found
	if failure := t.findWorkingProtocol(ctx); failure != nil {
		d.addError("model", t.redact(failure.Stop().Message), "docs/reference/model.md#endpoints says what endpoints need.")
	} else {
		t.probeCapabilities(ctx)
		if !t.hasCapability("tools") && !t.settings.NoTools {
			d.addWarning("model", "The model called no tool when it was asked to, and a run lives by calls.",
				"Try again; if it stays, docs/reference/model.md#endpoints tells what a server needs to give tools to its model. With model.tools: aider-diff a model needs none.")
		}
	}
	t.proposeSettings(p, len(m.Chat))
	t.found.Tokens = t.used.Total()
	if list := profile.Price; list != nil {
		cost := t.used.Cost(list)
		t.found.CostUSD = &cost
	}
}

// proposeSettings notes settings that differ from the job's. The job lists configuredQuirks quirks.
func (t *trials) proposeSettings(p *sandboxcommand.Prepared, configuredQuirks int) {
	m := p.Job.Model
	if t.wire != m.Wire {
		t.found.Settings["wire"] = t.wire
	}
	if streams := !t.settings.NoStream; streams != m.Stream {
		t.found.Settings["stream"] = streams
	}
	if t.settings.NoTools && !m.WritesTextOnly() {
		t.found.Settings["tools"] = "aider-diff"
	}
	if len(t.settings.ChatQuirks) > configuredQuirks {
		t.found.Settings["chat"] = t.settings.ChatQuirks
	}
}

// useWire makes the client of a wire.
func (t *trials) useWire(wire string) (err error) {
	t.wire = wire
	t.api, err = access.NewClient(wire, t.at)
	return err
}

// ask sends a request. If the endpoint refuses it because of a known quirk, ask stores the quirk and sends
// the adapted request. One of the two results is nil. The trials together send up to mostRequests requests.
func (t *trials) ask(ctx context.Context, settings model.Settings, history []json.RawMessage) (*model.Response, *model.Failure) {
	for t.found.Requests < mostRequests {
		t.found.Requests++
		settings.ChatQuirks = t.settings.ChatQuirks // what was found out since
		answer, err := t.api.Respond(ctx, model.Request{Settings: settings, History: history}, model.NoObserver{})
		if err == nil {
			t.used, t.usageEstimated = t.used.Add(answer.Usage), t.usageEstimated || answer.EstimatedUsage
			return answer, nil
		}
		failure, is := errors.AsType[*model.Failure](err)
		if !is {
			return nil, &model.Failure{Kind: model.Silent, Message: "the trials took too long", Cause: err}
		}
		t.used = t.used.Add(failure.Usage)
		if failure.Quirk == "" {
			return nil, failure
		}
		t.settings.ChatQuirks = append(slices.Clip(t.settings.ChatQuirks), failure.Quirk)
	}
	return nil, &model.Failure{Kind: model.InvalidRequest, Message: "the trials have used up their requests"}
}

// addCapability adds the capability called name. If works is false, why says why it is missing.
func (t *trials) addCapability(name string, works bool, why string) {
	if works {
		why = ""
	}
	t.found.Capabilities = append(t.found.Capabilities, Capability{name, works, t.redact(why)})
}

// probe sends a request, and adds a capability that works if the endpoint answers. It returns the failure, or nil.
func (t *trials) probe(ctx context.Context, name string, settings model.Settings, history []json.RawMessage) *model.Failure {
	_, failure := t.ask(ctx, settings, history)
	t.addCapability(name, hasAnswer(failure), failureReason(failure))
	return failure
}

func (t *trials) hasCapability(name string) bool {
	return slices.ContainsFunc(t.found.Capabilities, func(c Capability) bool { return c.Name == name && c.Works })
}

// hasAnswer reports whether there is an answer, complete or cut at its token limit.
func hasAnswer(failure *model.Failure) bool {
	return failure == nil || failure.Kind == model.Incomplete
}

func failureReason(failure *model.Failure) string {
	if failure == nil {
		return ""
	}
	return failure.Error()
}

// findWorkingProtocol changes the settings until the endpoint answers at all: Chat Completions instead of
// the Responses API, no streaming, no tools. It returns the first failure if nothing works, else nil.
func (t *trials) findWorkingProtocol(ctx context.Context) *model.Failure {
	history := userMessage("Answer with the word yes.")
	_, first := t.ask(ctx, t.settings, history)
	failure := first
	if t.wire == "responses" && !hasAnswer(failure) && mayLackResponsesAPI(failure) {
		failure = t.askByChat(ctx, history, first)
	}
	refusesStream := !hasAnswer(failure) && failure.Kind == model.InvalidRequest && strings.Contains(failure.Message, "stream")
	if refusesStream && !t.settings.NoStream {
		t.settings.NoStream = true
		_, failure = t.ask(ctx, t.settings, history)
	}
	if !hasAnswer(failure) && failure.RefusesTools() { // it refuses even the empty fields about tools
		t.settings.NoTools = true
		_, failure = t.ask(ctx, t.settings, history)
	}
	t.addCapability("answers", hasAnswer(failure), failureReason(first))
	if !hasAnswer(failure) {
		return first
	}
	t.addCapability("streaming", !t.settings.NoStream && !slices.Contains(t.settings.ChatQuirks, "no_stream"), "answers are asked for in one piece")
	return nil
}

// mayLackResponsesAPI reports whether the endpoint may not know the Responses API.
func mayLackResponsesAPI(failure *model.Failure) bool {
	return failure.Kind == model.NotFound || failure.Kind == model.InvalidRequest
}

// askByChat repeats a failed request by Chat Completions. If that fails too, it goes back to the Responses
// API and returns the original failure.
func (t *trials) askByChat(ctx context.Context, history []json.RawMessage, failure *model.Failure) *model.Failure {
	if t.useWire("chat") != nil {
		return failure
	}
	_, chatFailure := t.ask(ctx, t.settings, history)
	if hasAnswer(chatFailure) {
		return chatFailure
	}
	_ = t.useWire("responses") // as before
	return failure
}

// probeCapabilities adds the capabilities that runs use: tool calls, outputs, schemas, kinds of tools, usage.
func (t *trials) probeCapabilities(ctx context.Context) {
	history := userMessage(`Call the tool report twice, both times in this one answer: with the value "one", and with the value "two".`)
	withTools := t.settings
	withTools.Tools = []json.RawMessage{json.RawMessage(report)}
	var called []json.RawMessage
	if !t.settings.NoTools {
		called = t.probeToolCalls(ctx, withTools, history)
	}
	withTools.NoTools = t.settings.NoTools // probeToolCalls may have set it
	if len(called) > 0 {
		t.probe(ctx, "outputs", withTools, slices.Concat(history, called, userMessage("Now answer with the word yes.")))
	}
	withSchema := withTools
	withSchema.WordsOnly, withSchema.Schema = true, json.RawMessage(okSchema)
	t.probe(ctx, "answers by a schema", withSchema, userMessage(`Answer with the JSON object {"ok": true}.`))
	if t.wire == "responses" && !t.settings.NoTools {
		t.probeToolKinds(ctx)
	}
	t.addCapability("usage", !t.usageEstimated, "it is not told, and estimated")
}

// Tools and an output schema that the probes send.
const (
	report = `{"type":"function","name":"report","description":"Notes a value.","strict":false,` +
		`"parameters":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}}`
	freeform = `{"type":"custom","name":"note","description":"Notes a text."}`
	okSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`
)

// probeToolCalls asks the model to call a tool twice. It returns the calls with outputs, as a continuation
// of the conversation, or nil without a call. It sets NoTools if the endpoint answers only without tools.
func (t *trials) probeToolCalls(ctx context.Context, settings model.Settings, history []json.RawMessage) []json.RawMessage {
	answer, failure := t.askForCalls(ctx, settings, history)
	why := "the model answered without a call"
	if failure != nil {
		why = failure.Error()
	}
	mayRefuseTools := failure != nil && (failure.RefusesTools() || failure.Kind == model.InvalidRequest)
	if mayRefuseTools {
		withoutTools := t.settings
		withoutTools.NoTools = true
		_, failureWithout := t.ask(ctx, withoutTools, userMessage("Answer with the word yes."))
		t.settings.NoTools = hasAnswer(failureWithout)
	}
	calls := callIDs(answer)
	t.addCapability("tools", len(calls) > 0, why)
	if len(calls) == 0 {
		return nil
	}
	t.addCapability("parallel calls", len(calls) > 1, "the model made one call when it was asked for two")
	items, err := answerCalls(answer.Output)
	if err != nil {
		return nil
	}
	return items
}

// askForCalls asks for tool calls. If the model writes calls as text, it asks again with that quirk, and keeps the
// quirk for later requests if the model then makes calls.
func (t *trials) askForCalls(ctx context.Context, settings model.Settings, history []json.RawMessage) (*model.Response, *model.Failure) {
	answer, failure := t.ask(ctx, settings, history)
	writesText := t.wire == "chat" && failure == nil && len(callIDs(answer)) == 0 && hasTextCalls(answer)
	if !writesText {
		return answer, failure
	}
	oldQuirks := t.settings.ChatQuirks
	t.settings.ChatQuirks = append(slices.Clip(oldQuirks), chat.TextCalls) // ask sends them
	answer, failure = t.ask(ctx, settings, history)
	if madeNoCalls := len(callIDs(answer)) == 0; madeNoCalls {
		t.settings.ChatQuirks = oldQuirks
	}
	return answer, failure
}

// hasTextCalls reports whether an answer contains tool calls as plain text.
func hasTextCalls(answer *model.Response) bool {
	return slices.ContainsFunc(answer.Output, func(item json.RawMessage) bool { return strings.Contains(string(item), "<tool_call>") })
}

// answerCalls returns the items of an answer with unique call ids, followed by an output for each call.
func answerCalls(answer []json.RawMessage) ([]json.RawMessage, error) {
	var ids rawitem.CallIDs
	items := slices.Clone(answer)
	for i, raw := range items {
		if rawitem.FieldsOf(raw).Type != "function_call" {
			continue
		}
		var err error
		if items[i], err = ids.MakeUnique(raw, 0, i); err != nil {
			return nil, err
		}
	}
	for _, id := range callIDs(&model.Response{Output: items}) {
		output, err := rawitem.Encode(map[string]string{"type": "function_call_output", "call_id": id, "output": "Noted."})
		if err != nil {
			return nil, err
		}
		items = append(slices.Clip(items), output)
	}
	return items, nil
}

// callIDs returns the ids of an answer's calls; the answer may be nil.
func callIDs(answer *model.Response) (ids []string) {
	if answer == nil {
		return nil
	}
	for _, raw := range answer.Output {
		if item := rawitem.FieldsOf(raw); item.Type == "function_call" {
			ids = append(ids, item.CallID)
		}
	}
	return ids
}

// probeToolKinds adds whether the endpoint accepts the Responses API's own kinds of tools: freeform,
// namespaces, and tools in the input.
func (t *trials) probeToolKinds(ctx context.Context) {
	history := userMessage("Answer with the word yes.")
	settings := t.settings
	settings.Tools = []json.RawMessage{json.RawMessage(freeform)}
	if failure := t.probe(ctx, "freeform tools", settings, history); !hasAnswer(failure) && failure.Kind == model.InvalidRequest {
		t.found.Settings["tools"] = "function"
	}
	group, err := rawitem.Namespace("reports", "Tools that note.", []json.RawMessage{json.RawMessage(report)})
	if err != nil {
		return
	}
	settings.Tools = []json.RawMessage{group}
	t.probe(ctx, "namespaces", settings, history)
	settings.Tools, settings.ToolsInInput = []json.RawMessage{json.RawMessage(report)}, true
	t.probe(ctx, "tools in the input", settings, history)
}

// userMessage returns a conversation with a user's message.
func userMessage(text string) []json.RawMessage {
	raw, err := rawitem.TextMessage("user", text)
	if err != nil {
		return nil
	}
	return []json.RawMessage{raw}
}
