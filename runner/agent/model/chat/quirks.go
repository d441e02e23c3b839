package chat

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
)

// Quirks that change more than the form of a request.
const (
	// TextCalls means that the model writes its calls into the text of answers. No refusal reveals it, so only the job
	// can set it.
	TextCalls model.Quirk = "text_calls"
	noStream  model.Quirk = "no_stream" // answers come in one piece
)

// quirk describes a Quirk: how to recognize it in a refusal, and how to adapt requests.
type quirk struct {
	name model.Quirk
	// named matches the name of a field. The quirk is recognized if the refusal also says that a field is unknown. It may
	// be nil.
	named func() *regexp.Regexp
	// said matches words that reveal the quirk alone. It may be nil.
	said func() *regexp.Regexp
	fit  func(*chatBody)
}

// quirks lists all quirks, in the order in which they adapt requests.
var quirks = []quirk{
	{name: "no_stream_options", named: field(`stream_options|include_usage`), fit: func(b *chatBody) { b.StreamOptions = nil }},
	{
		name: noStream,
		said: words(`\bstream(?:ing|s)?\b.{0,40}\b(?:not (?:supported|allowed|enabled|available|permitted)|unsupported|disabled|must be false|does not support true)\b|` +
			`(?:not|n't) support stream(?:ing|s)?\b|(?:unknown|unrecognized|unsupported|unexpected) (?:parameter|field|property|argument|name)\W{1,4}stream\b|verified to stream\b`),
		fit: func(b *chatBody) { b.Stream, b.StreamOptions = false, nil },
	},
	{
		name: "no_reasoning_effort", named: field(`reasoning_effort|reasoning\.effort|think value`), said: words(`does not support (?:thinking|reasoning)`),
		fit: func(b *chatBody) { b.Effort = "" },
	},
	{name: "no_tool_choice", named: field(`tool_choice`), fit: func(b *chatBody) { b.ToolChoice = "" }},
	{name: "no_response_format", named: field(`response_format|json_schema`), fit: func(b *chatBody) { b.Format = nil }},
	{
		name: "max_tokens", named: field(`max_completion_tokens`),
		fit: func(b *chatBody) { b.MaxTokens, b.MaxOutputTokens = max(b.MaxTokens, b.MaxOutputTokens), 0 },
	},
	{name: "no_additional_properties", named: field(`additionalProperties|\$schema`), fit: withOpenSchemas},
	{name: "no_thoughts", named: field(`reasoning|reasoning_content`), fit: withoutThoughts},
	{
		name: "object_arguments", said: words(`cannot unmarshal string into .*arguments|arguments.{0,60}\b(?:object|dict|dictionary|mapping)\b|only get item pairs from a mapping`),
		fit: withObjects,
	},
	{
		name: "no_null", said: words(`\bcontent\b.{0,60}\b(?:null|nil|none|required|string)\b|NoneType|content type: <nil>|missing.{0,20}\bcontent\b`),
		fit: withoutNull,
	},
	{
		name: "single_calls", said: words(`single tool[- ]calls?\b|parallel (?:tool|function) call(?:s|ing)? (?:is|are) not|one tool[- ]call (?:at|per)`),
		fit: func(b *chatBody) { b.Messages = oneByOne(b.Messages) },
	},
	{
		name: "no_system", said: words(`\b(?:system|developer) (?:role|message|prompt|instruction)s?\b.{0,20}\bnot (?:supported|enabled|allowed)|` +
			`not support '?(?:system|developer)\b|unexpected role '?(?:system|developer)`),
		fit: func(b *chatBody) { b.Messages = withoutSystem(b.Messages) },
	},
	{
		name: "alternate", said: words(`roles must alternate|unexpected role|expected (?:the )?last role|message_order|after the optional system message`),
		fit: func(b *chatBody) { b.Messages = alternating(b.Messages) },
	},
	{name: TextCalls, fit: func(*chatBody) {}},
}

// Quirks returns the names of all quirks.
func Quirks() []string {
	var names []string
	for _, q := range quirks {
		names = append(names, string(q.name))
	}
	return names
}

// field returns an expression that matches one of the names of fields.
func field(names string) func() *regexp.Regexp {
	return lazyregexp.New(`(?:\b|\B\$)(?:` + names + `)\b`)
}

// words returns an expression for the words of a refusal.
func words(said string) func() *regexp.Regexp { return lazyregexp.New(`(?is)` + said) }

// unknownField matches words that call a field unknown or unsupported.
var unknownField = lazyregexp.New(`(?i)\bunknown\b|unrecognized|unexpected|unavailable|extra_forbidden|unsupported (?:parameter|field|property|argument)|` +
	`(?:is|are) unsupported|(?:is|are) not supported|not (?:permitted|allowed)|additional properties|cannot find field|doesn't support|does not support (?:the )?(?:parameter|field)`)

// isIn reports whether a refusal reveals the quirk.
func (q quirk) isIn(refusal string) bool {
	return q.named != nil && q.named().MatchString(refusal) && unknownField().MatchString(refusal) || q.said != nil && q.said().MatchString(refusal)
}

// quirkIn returns the quirk that a refusal reveals, or "". It ignores quirks that would not change the request.
func quirkIn(message string, r model.Request) model.Quirk {
	sent, err := bodyOf(r)
	if err != nil {
		return ""
	}
	for _, q := range quirks {
		if slices.Contains(r.Settings.ChatQuirks, q.name) || !q.isIn(message) {
			continue
		}
		fitting := r
		fitting.Settings.ChatQuirks = append(slices.Clip(r.Settings.ChatQuirks), q.name)
		if other, err := bodyOf(fitting); err == nil && string(other) != string(sent) {
			return q.name
		}
	}
	return ""
}

// fit adapts a request to the quirks of an endpoint.
func (b *chatBody) fit(has []model.Quirk) {
	for _, q := range quirks {
		if slices.Contains(has, q.name) {
			q.fit(b)
		}
	}
}

func withoutThoughts(b *chatBody) {
	for i := range b.Messages {
		b.Messages[i].Thought, b.Messages[i].Reasoning = "", ""
	}
}

func withoutNull(b *chatBody) {
	for i := range b.Messages {
		if b.Messages[i].Content == nil {
			b.Messages[i].Content = ""
		}
	}
}

// withObjects converts the arguments of calls from JSON strings to objects.
func withObjects(b *chatBody) {
	for i := range b.Messages {
		for n := range b.Messages[i].Calls {
			arguments := &b.Messages[i].Calls[n].Function.Arguments
			if text := exchange.TextOf(*arguments); json.Valid([]byte(text)) {
				*arguments = json.RawMessage(text)
			}
		}
	}
}

// oneByOne puts each call into its own message, followed by its output.
func oneByOne(messages []chatMessage) []chatMessage {
	var kept []chatMessage
	for len(messages) > 0 {
		m := messages[0]
		messages = messages[1:]
		if len(m.Calls) < 2 {
			kept = append(kept, m)
			continue
		}
		outputs := messages[:endOfOutputs(messages)]
		messages = messages[len(outputs):]
		for n, call := range m.Calls {
			one := chatMessage{Role: m.Role}
			if n == 0 {
				one = m
			}
			one.Calls = []chatCall{call}
			kept = append(kept, one)
			if n < len(outputs) { // outputs are in the order of the calls
				kept = append(kept, outputs[n])
			}
		}
	}
	return kept
}

// endOfOutputs returns the number of outputs at the start of messages.
func endOfOutputs(messages []chatMessage) int {
	end := slices.IndexFunc(messages, func(m chatMessage) bool { return m.Role != "tool" })
	if end < 0 {
		return len(messages)
	}
	return end
}

// withoutSystem moves the instructions into the first user message.
func withoutSystem(messages []chatMessage) []chatMessage {
	if messages[0].Role != "system" {
		return messages
	}
	messages[0].Role = "user"
	if len(messages) > 1 && messages[1].Role == "user" {
		messages[0].join(messages[1])
		messages = slices.Delete(messages, 1, 2)
	}
	return messages
}

// Placeholder texts for endpoints that demand a message between others.
const (
	outputsRead = "I have read the outputs."
	goOn        = runnerWords + "Go on."
)

// alternating makes user and assistant messages alternate. It joins neighbours of one role, and adds placeholders where a
// message is missing. Outputs count as the user's. The conversation begins and ends with the user.
func alternating(messages []chatMessage) []chatMessage {
	var kept []chatMessage
	for _, m := range messages {
		if len(kept) == 0 {
			kept = append(kept, m)
			continue
		}
		last := &kept[len(kept)-1]
		switch {
		case last.Role == m.Role && m.Role != "tool" && len(last.Calls) == 0:
			last.join(m)
			continue
		case last.Role == "tool" && m.Role == "user":
			kept = append(kept, chatMessage{Role: "assistant", Content: outputsRead})
		case last.Role == "system" && m.Role == "assistant":
			kept = append(kept, chatMessage{Role: "user", Content: goOn})
		}
		kept = append(kept, m)
	}
	if role := kept[len(kept)-1].Role; role == "system" || role == "assistant" {
		kept = append(kept, chatMessage{Role: "user", Content: goOn})
	}
	return kept
}

// join appends another message of the same role to m.
func (m *chatMessage) join(other chatMessage) {
	m.Calls, m.Thought, m.Reasoning = slices.Concat(m.Calls, other.Calls), m.Thought+other.Thought, m.Reasoning+other.Reasoning
	mine, text := m.Content.(string)
	theirs, alsoText := other.Content.(string)
	switch {
	case other.Content == nil:
	case m.Content == nil:
		m.Content = other.Content
	case text && alsoText:
		m.Content = strings.Join([]string{mine, theirs}, "\n\n")
	default:
		m.Content = slices.Concat(partsOf(m.Content), partsOf(other.Content))
	}
}

func partsOf(content any) []chatPart {
	if text, is := content.(string); is {
		return []chatPart{{Type: "text", Text: text}}
	}
	parts, _ := content.([]chatPart)
	return parts
}

// withOpenSchemas removes additionalProperties and $schema from schemas. agent-ci checks the arguments anyway.
func withOpenSchemas(b *chatBody) {
	for _, tool := range b.Tools {
		tool.Function["parameters"] = withOpenSchema(tool.Function["parameters"])
	}
	if b.Format != nil {
		b.Format.Schema["schema"] = withOpenSchema(b.Format.Schema["schema"])
	}
}

// withOpenSchema returns a schema without additionalProperties and $schema. Invalid JSON stays unchanged.
func withOpenSchema(schema any) any {
	raw, _ := schema.(json.RawMessage)
	var read any
	if json.Unmarshal(raw, &read) != nil {
		return schema
	}
	return withoutClosing(read)
}

// withoutClosing returns a schema, and those below it, without additionalProperties and $schema.
func withoutClosing(schema any) any {
	switch schema := schema.(type) {
	case []any:
		for i, one := range schema {
			schema[i] = withoutClosing(one)
		}
	case map[string]any:
		delete(schema, "additionalProperties")
		delete(schema, "$schema")
		for keyword, value := range schema {
			named, is := value.(map[string]any)
			if !is || keyword != "properties" && keyword != "$defs" {
				schema[keyword] = withoutClosing(value)
				continue
			}
			for name, one := range named { // a property may be called like a keyword, so keep all names
				named[name] = withoutClosing(one)
			}
		}
	}
	return schema
}
