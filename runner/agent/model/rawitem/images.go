package rawitem

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// dataURL matches an image in an item's JSON. It does not match in a text, where the quotes are escaped.
var dataURL = lazyregexp.New(`"image_url":"data:([a-z]+/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=]*)"`)

// hasImage reports whether an item may contain an image.
func hasImage(item json.RawMessage) bool {
	return bytes.Contains(item, []byte(`"image_url":"data:`))
}

// WithImageDigests returns items for the transcript, with each image replaced by its digest, type and size.
func WithImageDigests(items []json.RawMessage) []json.RawMessage {
	recorded := make([]json.RawMessage, len(items))
	for i, item := range items {
		recorded[i] = item
		if hasImage(item) {
			recorded[i] = dataURL().ReplaceAllFunc(item, withDigest)
		}
	}
	return recorded
}

// withDigest returns the replacement for an image that dataURL matches.
func withDigest(url []byte) []byte {
	parts := dataURL().FindSubmatch(url)
	data, err := base64.StdEncoding.DecodeString(string(parts[2]))
	if err != nil {
		data = parts[2]
	}
	return fmt.Appendf(nil, `"image_url":"sha256:%x (%s, %d bytes)"`, sha256.Sum256(data), parts[1], len(data))
}

// recordedImage matches an image as the transcript contains it.
var recordedImage = lazyregexp.New(`\{"type":"input_image","image_url":"sha256:[0-9a-f]{64} \([^"]*\)","detail":"[a-z]*"\}`)

// lostImage replaces an image missing from the transcript.
const lostImage = `{"type":"input_text","text":"[The image is gone: the runner was started again. Look at it again if you need it.]"}`

// ReplaceLostImages returns a transcript's items with each image replaced by a note to the model.
func ReplaceLostImages(items []json.RawMessage) []json.RawMessage {
	replaced := make([]json.RawMessage, len(items))
	for i, item := range items {
		replaced[i] = recordedImage().ReplaceAllLiteral(item, []byte(lostImage))
	}
	return replaced
}

// BytesInToken is the assumed number of bytes in a token.
const BytesInToken = 4

// EstimateTokens returns the estimated number of tokens in items.
func EstimateTokens(items []json.RawMessage) int64 {
	bytes := 0
	for _, item := range items {
		bytes += EstimateBytes(item)
	}
	return int64(bytes) / BytesInToken
}

// tokensInImage is the assumed number of tokens in an image of any size.
const tokensInImage = 1500

// EstimateBytes returns the size of an item for estimating its tokens. Each image counts as tokensInImage tokens.
func EstimateBytes(item json.RawMessage) int {
	bytes := len(item)
	if hasImage(item) {
		for _, image := range dataURL().FindAll(item, -1) {
			bytes += tokensInImage*BytesInToken - len(image)
		}
	}
	return bytes
}

// MessageText returns the text of a message to the model, and "" for other items.
func MessageText(item json.RawMessage) string {
	if message := FieldsOf(item); message.Type == "message" && message.Role != "assistant" {
		return message.Content.Text()
	}
	return ""
}
