package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// unredactedKeys lists keys whose values must stay unchanged, for the API or for comparison. They
// contain no secrets.
var unredactedKeys = map[string]bool{
	`"encrypted_content"`: true, `"id"`: true, `"call_id"`: true, `"item_id"`: true, `"signature"`: true, `"fingerprint"`: true, `"caller_id"`: true,
}

// RedactJSON redacts each decoded string of a JSON text. A text without secrets stays unchanged,
// byte by byte.
func RedactJSON(raw []byte, redact func(string) string) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	clean, err := redactStrings(compact.Bytes(), redact)
	if err != nil {
		return raw, err
	}
	if bytes.Equal(clean, compact.Bytes()) {
		return raw, nil // with its blanks
	}
	return clean, nil
}

// redactStrings redacts each decoded string of compact JSON, except the values of unredactedKeys. Decoding
// matters, because JSON escapes quotes and newlines in a secret. A string without secrets keeps its bytes.
func redactStrings(raw []byte, redact func(string) string) ([]byte, error) {
	redacted := make([]byte, 0, len(raw))
	key := "" // the last key, with its quotes
	for len(raw) > 0 {
		start := bytes.IndexByte(raw, '"')
		if start < 0 {
			break
		}
		end := start + literalLen(raw[start:])
		literal := raw[start:end]
		isKey := end < len(raw) && raw[end] == ':'
		if isKey {
			key = string(literal)
		}
		if !unredactedKeys[key] {
			clean, err := redactLiteral(literal, redact)
			if err != nil {
				return nil, err
			}
			literal = clean
		}
		redacted = append(append(redacted, raw[:start]...), literal...)
		raw = raw[end:]
	}
	return append(redacted, raw...), nil
}

// literalLen returns the length of the string literal at the beginning of valid JSON, quotes
// included.
func literalLen(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// redactLiteral redacts one string literal.
func redactLiteral(literal []byte, redact func(string) string) ([]byte, error) {
	text := string(literal[1 : len(literal)-1])
	if strings.Contains(text, `\`) {
		if err := json.Unmarshal(literal, &text); err != nil {
			return nil, fmt.Errorf("redact: %w", err)
		}
	}
	clean := redact(text)
	if clean == text {
		return literal, nil
	}
	return plainjson.Marshal(clean)
}
