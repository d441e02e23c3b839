package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// redactStrings applies redact to each string of a JSON text, decoded: a secret
// with a quote or a newline in it stands escaped in the JSON and would not be
// found there. What redact leaves alone keeps its bytes.
func redactStrings(raw []byte, redact func(string) string) ([]byte, error) {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		start := bytes.IndexByte(raw, '"')
		if start < 0 {
			break
		}
		end := start + literalLen(raw[start:])
		literal, err := redactLiteral(raw[start:end], redact)
		if err != nil {
			return nil, err
		}
		out = append(append(out, raw[:start]...), literal...)
		raw = raw[end:]
	}
	return append(out, raw...), nil
}

// literalLen is the length of the string literal, quotes included, that valid
// JSON begins with.
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
	return encode(clean)
}
