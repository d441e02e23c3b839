package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

var (
	jsonStringLiteral = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	// jsonEscape matches surrogates as a pair if they are next to each other.
	jsonEscape = lazyregexp.New(`\\(?:u[dD][89a-fA-F][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4})?|.)`)
)

// jsonAsYAML rewrites JSON escapes that the YAML package rejects: \/ and surrogate pairs such as \ud83d\ude00. It pads
// shortened strings with spaces, so that later values keep their columns. It returns data that is no JSON, or has
// no such escape, unchanged. The problem is half of a surrogate pair.
func jsonAsYAML(data []byte) ([]byte, *Problem) {
	mayHaveEscape := bytes.Contains(data, []byte(`\/`)) || bytes.Contains(data, []byte(`\u`))
	if !mayHaveEscape || !json.Valid(data) {
		return data, nil
	}
	for _, span := range jsonEscape().FindAllIndex(data, -1) {
		if bytes.ContainsRune(yamlEscape(data[span[0]:span[1]]), utf8.RuneError) {
			return nil, problemAt(data, span[0], "holds half of a pair of surrogates; write both, or the character itself")
		}
	}
	return jsonStringLiteral().ReplaceAllFunc(data, func(text []byte) []byte {
		rewritten := jsonEscape().ReplaceAllFunc(text, yamlEscape)
		return append(rewritten, bytes.Repeat([]byte(" "), len(text)-len(rewritten))...)
	}), nil
}

// yamlEscape translates one JSON escape to YAML. The result contains U+FFFD for half of a surrogate pair.
func yamlEscape(escape []byte) []byte {
	const half = len(`\uXXXX`)
	var text string
	if escape[1] == '/' {
		return escape[1:]
	}
	if len(escape) < half || json.Unmarshal([]byte(`"`+string(escape)+`"`), &text) != nil {
		return escape
	}
	if strings.ContainsRune(text, utf8.RuneError) {
		return []byte(text)
	}
	return fmt.Appendf(nil, `\U%08X`, []rune(text)[0])
}

// locateJSONError returns the syntax error of a file that starts like a JSON object, or nil for other
// files. YAML's parser would report the line of the outermost mapping instead.
func locateJSONError(data []byte) *Problem {
	inside, begins := bytes.CutPrefix(bytes.TrimSpace(data), []byte("{"))
	if !begins || !bytes.HasPrefix(bytes.TrimSpace(inside), []byte(`"`)) {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(data, new(any)), &syntax) {
		return nil
	}
	return problemAt(data, max(int(syntax.Offset)-1, 0), "is neither JSON nor YAML: "+syntax.Error())
}

// problemAt returns a problem with the line and column of a byte offset in data.
func problemAt(data []byte, offset int, message string) *Problem {
	before := data[:min(offset, len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &Problem{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1, Message: message}
}
