package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// convertAnswer converts an answer for the model: its texts, its images, and a line for each other item. It adds the
// numbers of items and images to detail.
func (s *Session) convertAnswer(answer *sdk.CallToolResult, detail map[string]any) tools.Result {
	s.imageLock.Lock()
	defer s.imageLock.Unlock()
	var o resultParts
	for _, content := range answer.Content {
		o.add(content)
	}
	if answer.StructuredContent != nil && !repeatsStructured(o.texts, answer.StructuredContent) {
		o.parts = append(o.parts, jsonLine(answer.StructuredContent))
	}
	detail["kinds"] = o.kinds
	maps.Copy(detail, o.images.Detail())
	text := strings.Join(o.parts, "\n")
	if text == "" {
		text = "The tool answered nothing."
	}
	return tools.Result{Output: text, Images: o.images.Added, Failed: answer.IsError, Detail: detail}
}

// repeatsStructured reports whether a result's texts repeat its structured content. The protocol asks
// servers to repeat the content as JSON text for older clients. If the content has a single key, such as
// FastMCP's {"result": …}, some servers only write its value, or one text per element of a list.
func repeatsStructured(texts []string, structured any) bool {
	if expressedByTexts(texts, structured) {
		return true
	}
	object, isObject := structured.(map[string]any)
	if !isObject || len(object) != 1 {
		return false
	}
	for _, value := range object {
		return expressedByTexts(texts, value)
	}
	return false
}

// expressedByTexts reports whether the texts contain the value: as one of the texts, as all of them together, or
// with one text per element of a list.
func expressedByTexts(texts []string, value any) bool {
	for _, text := range append(slices.Clone(texts), strings.Join(texts, "\n")) {
		if expressesValue(text, value) {
			return true
		}
	}
	elements, isList := value.([]any)
	return isList && len(elements) > 0 && slices.EqualFunc(texts, elements, expressesValue)
}

// expressesValue reports whether a text is the value, plain or as JSON.
func expressesValue(text string, value any) bool {
	text = strings.TrimSpace(text)
	if plain, isString := value.(string); isString && strings.TrimSpace(plain) == text {
		return true
	}
	var decoded any
	return json.Unmarshal([]byte(text), &decoded) == nil && reflect.DeepEqual(decoded, value)
}

// jsonLine returns a value as JSON in one line, without escapes of <, > and &, or a placeholder if that fails.
func jsonLine(value any) string {
	text, err := plainjson.Marshal(value)
	if err != nil {
		return "[structured content, can't be shown: " + oneLine(err.Error()) + "]"
	}
	return string(text)
}

// returns is the schema of the value that a script gets for a call: the server's answer.
var returns = json.RawMessage(`{"type":"object","properties":{` +
	`"content":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"text":{"type":"string"},"data":{"type":"string"},"mimeType":{"type":"string"}},"required":["type"],"additionalProperties":true}},` +
	`"structuredContent":{"type":"object"},` +
	`"isError":{"type":"boolean"}` +
	`},"required":["content"],"additionalProperties":true}`)

// jsonObject converts an answer to a JSON value for a script. It returns nil if that fails.
func jsonObject(answer *sdk.CallToolResult) (object any) {
	raw, err := json.Marshal(answer)
	if err != nil || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// resultParts gathers the parts of a result.
type resultParts struct {
	parts  []string
	texts  []string // the parts that are text of the server
	images tools.Images
	kinds  map[string]int // number of items by kind
}

// countKind counts an item of a kind.
func (o *resultParts) countKind(kind string) {
	if o.kinds == nil {
		o.kinds = map[string]int{}
	}
	o.kinds[kind]++
}

// add adds one item of a result. The model gets a placeholder for an item that cannot be shown.
func (o *resultParts) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		o.countKind("text")
		o.addText(c.Text)
	case *sdk.ImageContent:
		o.addImage(c.MIMEType, c.Data, "image")
	case *sdk.AudioContent:
		o.countKind("audio")
		o.addPlaceholder("audio", "", c.MIMEType, len(c.Data), "it can't be heard here")
	case *sdk.ResourceLink:
		o.countKind("resource_link")
		size := -1
		if c.Size != nil {
			size = int(*c.Size)
		}
		o.addPlaceholder("resource", c.URI, c.MIMEType, size, oneLine(c.Name))
	case *sdk.EmbeddedResource:
		o.addResource(c.Resource)
	default:
		o.countKind("other")
		o.parts = append(o.parts, "[content of a kind that is not known here]")
	}
}

// addText adds text of the server.
func (o *resultParts) addText(text string) {
	o.texts = append(o.texts, text)
	o.parts = append(o.parts, text)
}

// addPlaceholder adds a line for an item that is not shown. The line leaves out empty texts and a negative size.
func (o *resultParts) addPlaceholder(kind, uri, mediaType string, size int, remark string) {
	words := []string{kind}
	if uri != "" {
		words = append(words, oneLine(uri))
	}
	if mediaType != "" {
		words = append(words, oneLine(mediaType))
	}
	if size >= 0 {
		words = append(words, fmt.Sprintf("%d bytes", size))
	}
	if remark != "" {
		words = append(words, remark)
	}
	o.parts = append(o.parts, "["+strings.Join(words, ", ")+"]")
}

// addImage adds an image after a line with its name, or a placeholder if data is no valid image.
func (o *resultParts) addImage(mediaType string, data []byte, name string) {
	o.countKind("image")
	description, err := o.images.Add(context.Background(), data)
	if err != nil {
		o.addPlaceholder(name, "", mediaType, len(data), "can't be shown: "+err.Error())
		return
	}
	o.parts = append(o.parts, "["+name+": "+description+"]")
}

// addResource adds a resource's text or image after a line with its name. It adds a placeholder for other data, and
// nothing for nil.
func (o *resultParts) addResource(r *sdk.ResourceContents) {
	if r == nil {
		return
	}
	switch {
	case len(r.Blob) > 0 && strings.HasPrefix(r.MIMEType, "image/"):
		o.addImage(r.MIMEType, r.Blob, "resource "+oneLine(r.URI))
	case len(r.Blob) > 0:
		o.countKind("resource")
		o.addPlaceholder("resource", r.URI, r.MIMEType, len(r.Blob), "it is no text")
	default:
		o.countKind("resource")
		o.addPlaceholder("resource", r.URI, r.MIMEType, len(r.Text), "")
		o.addText(r.Text)
	}
}
