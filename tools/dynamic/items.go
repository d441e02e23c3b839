package dynamic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/picture"
)

// What a list of items may have: the rest is left out, in words.
const (
	mostItems  = 16 << 20 // bytes of a list, as JSON
	mostImages = 8
)

// item is a part of an answer: text, or an image by a data URL.
type item struct {
	Type  string `json:"type"` // input_text, input_image
	Text  string `json:"text"`
	Image string `json:"image_url"`
}

// itemsIn are those of a text that is a JSON list of items and nothing else.
func itemsIn(text []byte) ([]item, bool) {
	var items []item
	if json.Unmarshal(text, &items) != nil || len(items) == 0 {
		return nil, false
	}
	known := func(i item) bool { return i.Type == "input_text" || i.Type == "input_image" }
	return items, !slices.ContainsFunc(items, func(i item) bool { return !known(i) })
}

// resultOf is what a model gets of items: the texts, one below the other, and behind them the
// images, in whose place stand words.
func resultOf(items []item) tools.Result {
	var lines []string
	var images []tools.Image
	for _, i := range items {
		switch {
		case i.Type == "input_text":
			lines = append(lines, strings.TrimSuffix(i.Text, "\n"))
		case i.Type != "input_image":
			lines = append(lines, "[An item is left out: its type is neither input_text nor input_image.]")
		case len(images) == mostImages:
			lines = append(lines, fmt.Sprintf("[An image is left out: there are more than %d.]", mostImages))
		default:
			image, words := shown(i.Image)
			if lines = append(lines, words); image != nil {
				images = append(images, *image)
			}
		}
	}
	return tools.Result{Output: strings.Join(lines, "\n"), Images: images}
}

// shown is the image in a data URL, with words that stand for it; nil where there is none.
func shown(url string) (*tools.Image, string) {
	head, data, found := strings.Cut(url, ",")
	if !found || !strings.HasPrefix(head, "data:image/") || !strings.HasSuffix(head, ";base64") {
		return nil, "[An image is left out: image_url has to be a data URL with base64, data:image/png;base64,…]"
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, fmt.Sprintf("[An image is left out: its base64 is broken: %v]", err)
	}
	p, err := picture.Fit(raw)
	if err != nil {
		return nil, fmt.Sprintf("[An image is left out: %v]", err)
	}
	words := fmt.Sprintf("[Image: %d×%d, %s, %d bytes]", p.Width, p.Height, strings.TrimPrefix(p.MediaType, "image/"), len(p.Data))
	return &tools.Image{MediaType: p.MediaType, Data: p.Data}, words
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
func (t *taken) items() ([]item, bool) {
	items, are := itemsIn(t.held)
	if !are {
		t.release()
	}
	return items, are
}
