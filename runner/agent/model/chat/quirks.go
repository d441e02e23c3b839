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
	// fieldName matches the name of a field. The quirk is recognized if the refusal also says that a field is unknown. It may
	// be nil.
	fieldName func() *regexp.Regexp
	// refusalWords matches words that reveal the quirk alone. It may be nil.
	refusalWords func() *regexp.Regexp
	adapt        func(*chatBody)
}

// quirks lists all quirks, in the order in which they adapt requests.
var quirks = []quirk{
	{name: "no_stream_options", fieldName: field(`stream_options|include_usage`), adapt: func(b *chatBody) { b.StreamOptions = nil }},
	{
		name: noStream,
		refusalWords: refusalPattern(`\bstream(?:ing|s)?\b.{0,40}\b(?:not (?:supported|allowed|enabled|available|permitted)|unsupported|disabled|must be false|does not support true)\b|` +
			`(?:not|n't) support stream(?:ing|s)?\b|(?:unknown|unrecognized|unsupported|unexpected) (?:parameter|field|property|argument|name)\W{1,4}stream\b|verified to stream\b`),
		adapt: func(b *chatBody) { b.Stream, b.StreamOptions = false, nil },
	},
	{
		name: "no_reasoning_effort", fieldName: field(`reasoning_effort|reasoning\.effort|think value`), refusalWords: refusalPattern(`does not support (?:thinking|reasoning)`),
		adapt: func(b *chatBody) { b.Effort = "" },
	},
	{name: "no_tool_choice", fieldName: field(`tool_choice`), adapt: func(b *chatBody) { b.ToolChoice = "" }},
	{name: "no_response_format", fieldName: field(`response_format|json_schema`), adapt: func(b *chatBody) { b.Format = nil }},
	{
		name: "max_tokens", fieldName: field(`max_completion_tokens`),
		adapt: func(b *chatBody) { b.MaxTokens, b.MaxOutputTokens = max(b.MaxTokens, b.MaxOutputTokens), 0 },
	},
	{name: "no_additional_properties", fieldName: field(`additionalProperties|\$schema`), adapt: openSchemas},
	{name: "no_thoughts", fieldName: field(`reasoning|reasoning_content`), adapt: removeThoughts},
	{
		name: "object_arguments", refusalWords: refusalPattern(`cannot unmarshal string into .*arguments|arguments.{0,60}\b(?:object|dict|dictionary|mapping)\b|only get item pairs from a mapping`),
		adapt: useObjectArguments,
	},
	{
		name: "no_null", refusalWords: refusalPattern(`\bcontent\b.{0,60}\b(?:null|nil|none|required|string)\b|NoneType|content type: <nil>|missing.{0,20}\bcontent\b`),
		adapt: useEmptyContent,
	},
	{
		name: "single_calls", refusalWords: refusalPattern(`single tool[- ]calls?\b|parallel (?:tool|function) call(?:s|ing)? (?:is|are) not|one tool[- ]call (?:at|per)`),
		adapt: func(b *chatBody) { b.Messages = splitParallelCalls(b.Messages) },
	},
	{
		name: "no_system", refusalWords: refusalPattern(`\b(?:system|developer) (?:role|message|prompt|instruction)s?\b.{0,20}\bnot (?:supported|enabled|allowed)|` +
			`not support '?(?:system|developer)\b|unexpected role '?(?:system|developer)`),
		adapt: func(b *chatBody) { b.Messages = moveSystemToUser(b.Messages) },
	},
	{
		name: "alternate", refusalWords: refusalPattern(`roles must alternate|unexpected role|expected (?:the )?last role|message_order|after the optional system message`),
		adapt: func(b *chatBody) { b.Messages = alternateRoles(b.Messages) },
	},
	{name: TextCalls, adapt: func(*chatBody) {}},
}

// Quirks returns the names of all quirks.
func Quirks() (names []string) {
	for _, q := range quirks {
		names = append(names, string(q.name))
	}
	return names
}

// field returns an expression that matches a field name. names are alternatives, separated by |.
func field(names string) func() *regexp.Regexp {
	return lazyregexp.New(`(?:\b|\B\$)(?:` + names + `)\b`)
}

// refusalPattern returns an expression for the words of a refusal. It ignores case and matches across lines.
func refusalPattern(pattern string) func() *regexp.Regexp { return lazyregexp.New(`(?is)` + pattern) }

// unknownField matches words that call a field unknown or unsupported.
var unknownField = lazyregexp.New(`(?i)\bunknown\b|unrecognized|unexpected|unavailable|extra_forbidden|unsupported (?:parameter|field|property|argument)|` +
	`(?:is|are) unsupported|(?:is|are) not supported|not (?:permitted|allowed)|additional properties|cannot find field|doesn't support|does not support (?:the )?(?:parameter|field)`)

// isRevealedBy reports whether a refusal reveals the quirk.
func (q quirk) isRevealedBy(refusal string) bool {
	if q.refusalWords != nil && q.refusalWords().MatchString(refusal) {
		return true
	}
	return q.fieldName != nil && q.fieldName().MatchString(refusal) && unknownField().MatchString(refusal)
}

// quirkIn returns the quirk that the refusal of request r reveals, or "". It ignores quirks that would not change the
// request.
func quirkIn(message string, r model.Request) model.Quirk {
	sent, err := model.BodyFor(new(Client), r)
	if err != nil {
		return ""
	}
	for _, q := range quirks {
		isKnown := slices.Contains(r.Settings.ChatQuirks, q.name)
		if isKnown || !q.isRevealedBy(message) {
			continue
		}
		adapted := model.Request{Settings: r.Settings, History: r.History}
		adapted.Settings.ChatQuirks = append(slices.Clip(r.Settings.ChatQuirks), q.name)
		if adaptedBody, err := model.BodyFor(new(Client), adapted); err == nil && string(adaptedBody) != string(sent) {
			return q.name
		}
	}
	return ""
}

// removeThoughts removes reasoning from all messages.
func removeThoughts(b *chatBody) {
	for i := range b.Messages {
		b.Messages[i].Thought, b.Messages[i].Reasoning = "", ""
	}
}

// useEmptyContent replaces missing content of messages by "".
func useEmptyContent(b *chatBody) {
	for i := range b.Messages {
		if b.Messages[i].Content == nil {
			b.Messages[i].Content = ""
		}
	}
}

// useObjectArguments converts the arguments of calls from JSON strings to objects.
func useObjectArguments(b *chatBody) {
	for i := range b.Messages {
		for n := range b.Messages[i].Calls {
			arguments := &b.Messages[i].Calls[n].Function.Arguments
			if text := exchange.TextOf(*arguments); json.Valid([]byte(text)) {
				*arguments = json.RawMessage(text)
			}
		}
	}
}

// splitParallelCalls puts each call into its own message, followed by its output.
func splitParallelCalls(messages []chatMessage) (result []chatMessage) {
	for len(messages) > 0 {
		m := messages[0]
		messages = messages[1:]
		if len(m.Calls) < 2 {
			result = append(result, m)
			continue
		}
		outputs := messages[:leadingOutputs(messages)]
		messages = messages[len(outputs):]
		for n, call := range m.Calls {
			single := chatMessage{Role: m.Role}
			if n == 0 {
				single = m
			}
			single.Calls = []chatCall{call}
			result = append(result, single)
			if n < len(outputs) { // outputs are in the order of the calls
				result = append(result, outputs[n])
			}
		}
	}
	return result
}

// leadingOutputs returns the number of outputs of calls at the start of messages.
func leadingOutputs(messages []chatMessage) int {
	end := slices.IndexFunc(messages, func(m chatMessage) bool { return m.Role != "tool" })
	if end < 0 {
		return len(messages)
	}
	return end
}

// moveSystemToUser makes the system message a user message, joined with the user message after it.
func moveSystemToUser(messages []chatMessage) []chatMessage {
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

// alternateRoles makes user and assistant messages alternate, ending with the user. It joins neighbours with the same
// role, and adds placeholders for missing messages. Outputs of calls count as user messages.
func alternateRoles(messages []chatMessage) (result []chatMessage) {
	for _, m := range messages {
		if len(result) == 0 {
			result = append(result, m)
			continue
		}
		last := &result[len(result)-1]
		switch {
		case last.Role == m.Role && m.Role != "tool" && len(last.Calls) == 0:
			last.join(m)
			continue
		case last.Role == "tool" && m.Role == "user":
			result = append(result, chatMessage{Role: "assistant", Content: outputsRead})
		case last.Role == "system" && m.Role == "assistant":
			result = append(result, chatMessage{Role: "user", Content: goOn})
		}
		result = append(result, m)
	}
	if role := result[len(result)-1].Role; role == "system" || role == "assistant" {
		result = append(result, chatMessage{Role: "user", Content: goOn})
	}
	return result
}

// join appends another message of the same role to m.
func (m *chatMessage) join(other chatMessage) {
	m.Calls, m.Thought, m.Reasoning = slices.Concat(m.Calls, other.Calls), m.Thought+other.Thought, m.Reasoning+other.Reasoning
	ownText, isText := m.Content.(string)
	otherText, otherIsText := other.Content.(string)
	switch {
	case other.Content == nil: // nothing to append
	case m.Content == nil:
		m.Content = other.Content
	case isText && otherIsText:
		m.Content = strings.Join([]string{ownText, otherText}, "\n\n")
	default:
		m.Content = slices.Concat(partsOf(m.Content), partsOf(other.Content))
	}
}

// partsOf returns a message's content as a list of parts.
func partsOf(content any) []chatPart {
	if text, isText := content.(string); isText {
		return []chatPart{{Type: "text", Text: text}}
	}
	parts, _ := content.([]chatPart)
	return parts
}

// openSchemas removes additionalProperties and $schema from all schemas in a request. agent-ci checks arguments itself.
func openSchemas(b *chatBody) {
	for _, tool := range b.Tools {
		tool.Function["parameters"] = openSchema(tool.Function["parameters"])
	}
	if b.Format != nil {
		b.Format.Schema["schema"] = openSchema(b.Format.Schema["schema"])
	}
}

// openSchema returns a json.RawMessage schema, decoded, without additionalProperties and $schema. It returns invalid
// JSON unchanged.
func openSchema(schema any) any {
	raw, _ := schema.(json.RawMessage)
	var decoded any
	if json.Unmarshal(raw, &decoded) != nil {
		return schema
	}
	return withoutAdditionalProperties(decoded)
}

// withoutAdditionalProperties removes additionalProperties and $schema from a decoded schema and the schemas in it.
func withoutAdditionalProperties(schema any) any {
	switch schema := schema.(type) {
	case []any:
		for i, element := range schema {
			schema[i] = withoutAdditionalProperties(element)
		}
	case map[string]any:
		delete(schema, "additionalProperties")
		delete(schema, "$schema")
		for keyword, value := range schema {
			named, isObject := value.(map[string]any)
			hasNames := keyword == "properties" || keyword == "$defs"
			if !isObject || !hasNames {
				schema[keyword] = withoutAdditionalProperties(value)
				continue
			}
			for name, element := range named { // a property may be called like a keyword, so keep all names
				named[name] = withoutAdditionalProperties(element)
			}
		}
	}
	return schema
}
