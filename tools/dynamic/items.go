package dynamic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// maxItems is the maximum size of a list of items as JSON, in bytes.
const maxItems = 16 << 20

// item is a part of a program's output: a text, or an image as a data URL.
type item struct {
	Type  string  `json:"type"` // textItem, imageItem
	Text  *string `json:"text"`
	Image *string `json:"image_url"`
}

const (
	textItem  = "input_text"
	imageItem = "input_image"
)

// itemsIn returns the elements of a JSON list. areItems is false if text is no list, or no element has the type of an
// item.
func itemsIn(text []byte) (items []json.RawMessage, areItems bool) {
	if json.Unmarshal(text, &items) != nil {
		return nil, false
	}
	return items, slices.ContainsFunc(items, func(raw json.RawMessage) bool {
		var i struct{ Type any }
		return json.Unmarshal(raw, &i) == nil && (i.Type == textItem || i.Type == imageItem)
	})
}

// itemsResult converts items to a result: a line for each item, and the images after them. An invalid item gives a line
// that says so.
func itemsResult(ctx context.Context, items []json.RawMessage) tools.Result {
	var lines []string
	var images tools.Images
	for _, raw := range items {
		var i item
		isValid := json.Unmarshal(raw, &i) == nil
		switch {
		case isValid && i.Type == textItem && i.Text != nil:
			lines = append(lines, strings.TrimSuffix(*i.Text, "\n"))
		case isValid && i.Type == imageItem && i.Image != nil:
			lines = append(lines, addImage(ctx, &images, *i.Image))
		default:
			lines = append(lines, "[An item is left out: it is neither "+textItem+" with text nor "+imageItem+" with image_url.]")
		}
	}
	return tools.Result{Output: strings.Join(lines, "\n"), Images: images.Added, Detail: images.Detail()}
}

// addImage adds the image in a data URL, and returns a line that describes it or says why it is left out.
func addImage(ctx context.Context, images *tools.Images, url string) string {
	description, err := images.AddURL(ctx, url)
	if err != nil {
		return fmt.Sprintf("[An image is left out: %v]", err)
	}
	return "[Image: " + description + "]"
}

// output collects a program's standard output. It holds back a text that may be a list of items until the end, and
// captures any other text at once.
type output struct {
	capture *tools.Capture
	pending []byte // output that may be a list of items
	isText  bool   // the output is no list of items
}

// Write adds p to the output.
func (t *output) Write(p []byte) (int, error) {
	if t.isText {
		return t.capture.Write(p)
	}
	t.pending = append(t.pending, p...)
	trimmed := bytes.TrimLeft(t.pending, " \t\r\n")
	isList := len(trimmed) == 0 || trimmed[0] == '['
	if !isList || len(t.pending) > maxItems {
		t.release()
	}
	return len(p), nil
}

// release captures the output held back as text.
func (t *output) release() {
	_, _ = t.capture.Write(t.pending) // it can't fail
	t.pending, t.isText = nil, true
}

// items returns the items that the program printed. If it printed something else, areItems is false, and the output is
// captured as text.
func (t *output) items() (items []json.RawMessage, areItems bool) {
	items, areItems = itemsIn(t.pending)
	if !areItems {
		t.release()
	}
	return items, areItems
}
