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

// mostItems is how many bytes a list of items may have, as JSON.
const mostItems = 16 << 20

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

// itemsIn are those of a text that is a JSON list and nothing else, one of which is an item.
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

// resultOf is what a model gets of items: the texts, one below the other, and behind them the
// images, in whose place stand words. What is no item is left out, in words.
func resultOf(ctx context.Context, items []json.RawMessage) tools.Result {
	var lines []string
	var images tools.Images
	for _, raw := range items {
		var i item
		err := json.Unmarshal(raw, &i)
		switch {
		case err == nil && i.Type == textItem && i.Text != nil:
			lines = append(lines, strings.TrimSuffix(*i.Text, "\n"))
		case err == nil && i.Type == imageItem && i.Image != nil:
			lines = append(lines, shown(ctx, &images, *i.Image))
		default:
			lines = append(lines, "[An item is left out: it is neither "+textItem+" with text nor "+imageItem+" with image_url.]")
		}
	}
	return tools.Result{Output: strings.Join(lines, "\n"), Images: images.Shown, Detail: images.Detail()}
}

// shown adds the image in a data URL, and gives words that stand for it.
func shown(ctx context.Context, images *tools.Images, url string) string {
	words, err := images.AddURL(ctx, url)
	if err != nil {
		return fmt.Sprintf("[An image is left out: %v]", err)
	}
	return "[Image: " + words + "]"
}

// taken is what a program prints. What may be a list of items is held until its end; all else
// goes to the capture as it comes.
type taken struct {
	capture *tools.Capture
	held    []byte
	text    bool
}

func (t *taken) Write(p []byte) (int, error) {
	if t.text {
		return t.capture.Write(p)
	}
	t.held = append(t.held, p...)
	begin := bytes.TrimLeft(t.held, " \t\r\n")
	if len(begin) > 0 && begin[0] != '[' || len(t.held) > mostItems {
		t.release()
	}
	return len(p), nil
}

// release says that what was held is text.
func (t *taken) release() {
	_, _ = t.capture.Write(t.held) // it can't fail
	t.held, t.text = nil, true
}

// items are those that were printed, if that is what was printed.
func (t *taken) items() ([]json.RawMessage, bool) {
	items, are := itemsIn(t.held)
	if !are {
		t.release()
	}
	return items, are
}
