package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostName is how many bytes of an address or a type stand in words.
const mostName = 300

// result is what the model gets of an answer: its text as it is, images, and in a line each what
// cannot be shown.
func (s *Session) result(answer *sdk.CallToolResult, detail map[string]any) tools.Result {
	s.showing.Lock()
	defer s.showing.Unlock()
	var o output
	for _, content := range answer.Content {
		o.add(content)
	}
	if !o.text && answer.StructuredContent != nil {
		if raw, err := json.Marshal(answer.StructuredContent); err == nil {
			o.parts = append(o.parts, string(raw))
		}
	}
	detail["kinds"] = o.kinds
	maps.Copy(detail, o.images.Detail())
	text := strings.Join(o.parts, "\n")
	if text == "" {
		text = "The tool answered nothing."
	}
	return tools.Result{Output: text, Images: o.images.Shown, Failed: answer.IsError, Detail: detail}
}

// returns is the schema of what a script gets: an answer as the server gave it.
var returns = json.RawMessage(`{"type":"object","properties":{` +
	`"content":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"text":{"type":"string"},"data":{"type":"string"},"mimeType":{"type":"string"}},"required":["type"],"additionalProperties":true}},` +
	`"structuredContent":{"type":"object"},` +
	`"isError":{"type":"boolean"}` +
	`},"required":["content"],"additionalProperties":true}`)

// object is an answer for a script; nil where it can't be written.
func object(answer *sdk.CallToolResult) (object any) {
	raw, err := json.Marshal(answer)
	if err != nil || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// output gathers the parts of a result.
type output struct {
	parts  []string
	text   bool // a part is text of the server
	images tools.Images
	kinds  map[string]int // how many there are of each kind
}

func (o *output) count(kind string) {
	if o.kinds == nil {
		o.kinds = map[string]int{}
	}
	o.kinds[kind]++
}

func (o *output) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		o.count("text")
		o.text = o.text || strings.TrimSpace(c.Text) != ""
		o.parts = append(o.parts, c.Text)
	case *sdk.ImageContent:
		o.image(c.MIMEType, c.Data, "image")
	case *sdk.AudioContent:
		o.count("audio")
		o.named("audio", "", c.MIMEType, len(c.Data), "it can't be heard here")
	case *sdk.ResourceLink:
		o.count("resource_link")
		o.link(c)
	case *sdk.EmbeddedResource:
		o.resource(c.Resource)
	default:
		o.count("other")
		o.parts = append(o.parts, "[content of a kind that is not known here]")
	}
}

// named puts a line for what is not shown.
func (o *output) named(kind, uri, mediaType string, size int, why string) {
	words := []string{kind}
	if uri != "" {
		words = append(words, word(uri))
	}
	if mediaType != "" {
		words = append(words, word(mediaType))
	}
	if size >= 0 {
		words = append(words, fmt.Sprintf("%d bytes", size))
	}
	if why != "" {
		words = append(words, why)
	}
	o.parts = append(o.parts, "["+strings.Join(words, ", ")+"]")
}

func word(text string) string {
	return strings.Join(strings.Fields(tools.Visible(text, mostName)), " ")
}

func (o *output) link(c *sdk.ResourceLink) {
	size := -1
	if c.Size != nil {
		size = int(*c.Size)
	}
	o.named("resource", c.URI, c.MIMEType, size, word(c.Name))
}

// image shows an image, if it is one.
func (o *output) image(mediaType string, data []byte, name string) {
	o.count("image")
	words, err := o.images.Add(context.Background(), data)
	if err != nil {
		o.named(name, "", mediaType, len(data), "can't be shown: "+err.Error())
		return
	}
	o.parts = append(o.parts, "["+name+": "+words+"]")
}

// resource shows the text or the image that a resource is, behind a line that names it.
func (o *output) resource(r *sdk.ResourceContents) {
	if r == nil {
		return
	}
	switch {
	case len(r.Blob) > 0 && strings.HasPrefix(r.MIMEType, "image/"):
		o.image(r.MIMEType, r.Blob, "resource "+word(r.URI))
	case len(r.Blob) > 0:
		o.count("resource")
		o.named("resource", r.URI, r.MIMEType, len(r.Blob), "it is no text")
	default:
		o.count("resource")
		o.named("resource", r.URI, r.MIMEType, len(r.Text), "")
		o.text = true
		o.parts = append(o.parts, r.Text)
	}
}
