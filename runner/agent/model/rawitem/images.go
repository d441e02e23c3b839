package rawitem

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
)

// dataURL is an image in an item. In the text of an item its quotes would be
// escaped.
var dataURL = regexp.MustCompile(`"image_url":"data:([a-z]+/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=]*)"`)

func hasImage(item json.RawMessage) bool {
	return bytes.Contains(item, []byte(`"image_url":"data:`))
}

// WithoutImages gives items as the transcript keeps them: of an image its kind,
// its size and its digest.
func WithoutImages(items []json.RawMessage) []json.RawMessage {
	kept := make([]json.RawMessage, len(items))
	for i, item := range items {
		kept[i] = item
		if hasImage(item) {
			kept[i] = dataURL.ReplaceAllFunc(item, withDigest)
		}
	}
	return kept
}

func withDigest(url []byte) []byte {
	parts := dataURL.FindSubmatch(url)
	data, err := base64.StdEncoding.DecodeString(string(parts[2]))
	if err != nil {
		data = parts[2]
	}
	return fmt.Appendf(nil, `"image_url":"sha256:%x (%s, %d bytes)"`, sha256.Sum256(data), parts[1], len(data))
}

// recordedImage is an image as it stands in the transcript.
var recordedImage = regexp.MustCompile(`\{"type":"input_image","image_url":"sha256:[0-9a-f]{64} \([^"]*\)","detail":"[a-z]*"\}`)

// lostImage replaces an image missing from the transcript.
const lostImage = `{"type":"input_text","text":"[The image is gone: the runner was started again. Look at it again if you need it.]"}`

// WithLostImages gives items of a transcript as they can be sent.
func WithLostImages(items []json.RawMessage) []json.RawMessage {
	sent := make([]json.RawMessage, len(items))
	for i, item := range items {
		sent[i] = recordedImage.ReplaceAllLiteral(item, []byte(lostImage))
	}
	return sent
}

// BytesInToken is the Estimate for uncounted tokens.
const BytesInToken = 4

// Estimate returns about how many tokens items have.
func Estimate(items []json.RawMessage) int64 {
	bytes := 0
	for _, item := range items {
		bytes += Weight(item)
	}
	return int64(bytes) / BytesInToken
}

// tokensInImage is the Estimate for an image of any size.
const tokensInImage = 1500

// Weight is how many bytes an item counts as.
func Weight(item json.RawMessage) int {
	bytes := len(item)
	if hasImage(item) {
		for _, image := range dataURL.FindAll(item, -1) {
			bytes += tokensInImage*BytesInToken - len(image)
		}
	}
	return bytes
}

// WordsOf returns the words of a message not from the model.
func WordsOf(item json.RawMessage) string {
	if message := FieldsOf(item); message.Type == "message" && message.Role != "assistant" {
		return message.Content.Text()
	}
	return ""
}
