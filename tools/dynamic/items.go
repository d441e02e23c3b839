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

// maxItems is how many bytes a list of items may have, as JSON.
const maxItems = 16 << 20

// item is a part of an answer: text, or an image by a data URL.
type item struct {
	Type  string  `json:"type"` // textItem, imageItem
	Text  *string `json:"text"`
	Image *string `json:"image_url"`
}

const (
	textItem  = "input_text"
	imageItem = "input_image"
)

// itemsIn returns the items of a text that is exactly a JSON list with at least one item.
func itemsIn(text []byte) ([]json.RawMessage, bool) {
	var items []json.RawMessage
	if json.Unmarshal(text, &items) != nil {
		return nil, false
	}
	return items, slices.ContainsFunc(items, func(raw json.RawMessage) bool {
		var i struct{ Type any }
		return json.Unmarshal(raw, &i) == nil && (i.Type == textItem || i.Type == imageItem)
	})
}

// itemsResult converts items for a model: the texts, then the images, each replaced by a line. It
// mentions invalid items.
func itemsResult(ctx context.Context, items []json.RawMessage) tools.Result {
	var lines []string
	var images tools.Images
	for _, raw := range items {
		var i item
		err := json.Unmarshal(raw, &i)
		switch {
		case err == nil && i.Type == textItem && i.Text != nil:
			lines = append(lines, strings.TrimSuffix(*i.Text, "\n"))
		case err == nil && i.Type == imageItem && i.Image != nil:
			lines = append(lines, addImage(ctx, &images, *i.Image))
		default:
			lines = append(lines, "[An item is left out: it is neither "+textItem+" with text nor "+imageItem+" with image_url.]")
		}
	}
	return tools.Result{Output: strings.Join(lines, "\n"), Images: images.Added, Detail: images.Detail()}
}

// addImage adds the image of a data URL and describes it.
func addImage(ctx context.Context, images *tools.Images, url string) string {
	words, err := images.AddURL(ctx, url)
	if err != nil {
		return fmt.Sprintf("[An image is left out: %v]", err)
	}
	return "[Image: " + words + "]"
}

// output collects a program's output. It holds a possible list of items to its end and captures
// anything else at once.
type output struct {
	capture *tools.Capture
	pending []byte
	isText  bool
}

func (t *output) Write(p []byte) (int, error) {
	if t.isText {
		return t.capture.Write(p)
	}
	t.pending = append(t.pending, p...)
	begin := bytes.TrimLeft(t.pending, " \t\r\n")
	if len(begin) > 0 && begin[0] != '[' || len(t.pending) > maxItems {
		t.release()
	}
	return len(p), nil
}

// release treats held output as text.
func (t *output) release() {
	_, _ = t.capture.Write(t.pending) // it can't fail
	t.pending, t.isText = nil, true
}

// items returns the printed items, if any.
func (t *output) items() ([]json.RawMessage, bool) {
	items, ok := itemsIn(t.pending)
	if !ok {
		t.release()
	}
	return items, ok
}
