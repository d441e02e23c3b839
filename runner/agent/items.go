package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// inputMessage is an item that the runner puts into the conversation.
type inputMessage struct {
	Type    string      `json:"type"`
	Role    string      `json:"role"`
	Content []inputText `json:"content"`
}

type inputText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func message(role, text string) inputMessage {
	return inputMessage{"message", role, []inputText{{"input_text", text}}}
}

// outputItem has the fields of the model's items that the loop reads. All
// others stay in the raw item.
type outputItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Operation json.RawMessage `json:"operation"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// answer is what a response asks for and says.
type answer struct {
	calls   []tools.Call
	text    string
	refusal string // what the model said in refusing; it may have said more
}

// read takes the calls and the words out of a response's items. Kinds that it
// doesn't know are none of its business: they stay in the history.
func read(items []json.RawMessage) (answer, error) {
	var a answer
	var said, refused []string
	for _, raw := range items {
		var item outputItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return answer{}, fmt.Errorf("read output item: %w", err)
		}
		switch item.Type {
		case "function_call":
			a.calls = append(a.calls, tools.Call{ID: item.CallID, Name: item.Name, Input: item.Arguments})
		case "custom_tool_call":
			a.calls = append(a.calls, tools.Call{ID: item.CallID, Name: item.Name, Input: item.Input, Form: tools.Freeform})
		case "apply_patch_call":
			a.calls = append(a.calls, tools.Call{ID: item.CallID, Name: "apply_patch", Input: string(item.Operation), Form: tools.Operation})
		case "message":
			text, refusal := "", ""
			for _, part := range item.Content {
				text, refusal = text+part.Text, refusal+part.Refusal
			}
			said, refused = append(said, strings.TrimSpace(text)), append(refused, refusal)
		}
	}
	a.text = strings.TrimSpace(strings.Join(said, "\n\n"))
	a.refusal = strings.TrimSpace(strings.Join(refused, "\n\n"))
	return a, nil
}

// callOutput answers one call in the form in which it was made. Output is text,
// or a list of inputText and inputImage.
type callOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

type inputImage struct {
	Type     string `json:"type"`
	ImageURL string `json:"image_url"`
	Detail   string `json:"detail"`
}

// operationOutput answers an item of the API's own.
type operationOutput struct {
	callOutput
	Status string `json:"status"`
}

func outputOf(call tools.Call, result tools.Result) (json.RawMessage, error) {
	switch call.Form {
	case tools.Operation:
		status := "completed"
		if result.Failed {
			status = "failed"
		}
		return encode(operationOutput{callOutput{"apply_patch_call_output", call.ID, result.Output}, status})
	case tools.Freeform:
		return encode(callOutput{"custom_tool_call_output", call.ID, content(result)})
	}
	return encode(callOutput{"function_call_output", call.ID, content(result)})
}

// content is a result's text, with its images in a list.
func content(result tools.Result) any {
	if len(result.Images) == 0 {
		return result.Output
	}
	list := []any{inputText{"input_text", result.Output}}
	for _, image := range result.Images {
		url := "data:" + image.MediaType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
		list = append(list, inputImage{"input_image", url, "auto"})
	}
	return list
}

// functionTool, customTool and builtinTool are tool definitions in wire form.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      bool            `json:"strict"`
	Parameters  json.RawMessage `json:"parameters"`
}

type customTool struct {
	Type        string       `json:"type"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Format      customFormat `json:"format"`
}

type builtinTool struct {
	Type string `json:"type"`
}

type customFormat struct {
	Type       string `json:"type"`
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// Definitions are the specs in the form in which a request carries them.
func Definitions(specs []tools.Spec) ([]json.RawMessage, error) {
	definitions := make([]json.RawMessage, 0, len(specs))
	for _, spec := range specs {
		raw, err := encode(definition(spec))
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}

func definition(spec tools.Spec) any {
	switch {
	case spec.Builtin != "":
		return builtinTool{spec.Builtin}
	case spec.Grammar != nil:
		return customTool{"custom", spec.Name, spec.Description, customFormat{"grammar", spec.Grammar.Syntax, spec.Grammar.Definition}}
	}
	return functionTool{"function", spec.Name, spec.Description, spec.Strict, spec.Parameters}
}

func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode item: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
