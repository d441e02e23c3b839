package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonAsYAML rewrites JSON escapes that YAML 1.2 allows but its parser rejects: \/ and surrogate
// pairs. Blanks after a shortened text preserve the positions of later values. It returns data
// other than JSON unchanged.
func jsonAsYAML(data []byte) ([]byte, *Problem) {
	if !bytes.Contains(data, []byte(`\/`)) && !bytes.Contains(data, []byte(`\u`)) || !json.Valid(data) {
		return data, nil
	}
	out := make([]byte, 0, len(data))
	inText, shorter := false, 0
	for at := 0; at < len(data); at++ {
		switch {
		case data[at] == '"':
			if out = append(out, '"'); inText {
				out, shorter = append(out, bytes.Repeat([]byte(" "), shorter)...), 0
			}
			inText = !inText
		case data[at] != '\\':
			out = append(out, data[at])
		case data[at+1] == '/':
			out, shorter = append(out, '/'), shorter+1
			at++
		case data[at+1] == 'u' && utf16.IsSurrogate(unit(data[at:])):
			r := utf16.DecodeRune(unit(data[at:]), unit(data[at+len(`\uXXXX`):]))
			if r == utf8.RuneError {
				return nil, problemAt(data, at, "holds half of a pair of surrogates; write both, or the character itself")
			}
			out, shorter = fmt.Appendf(out, `\U%08X`, r), shorter+len(`\uXXXX\uXXXX`)-len(`\UXXXXXXXX`)
			at += len(`\uXXXX\uXXXX`) - 1
		default:
			out = append(out, data[at], data[at+1])
			at++
		}
	}
	return out, nil
}

// unit returns the UTF-16 unit of an escape at the start of text. It is 0 without one.
func unit(text []byte) rune {
	if len(text) < len(`\uXXXX`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// brokenJSON locates the mistake in a file that starts like JSON. Other files give nil. YAML's
// parser would report the line of the outermost mapping.
func brokenJSON(data []byte) *Problem {
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

// problemAt is a problem at an offset.
func problemAt(data []byte, offset int, message string) *Problem {
	before := data[:min(offset, len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &Problem{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1, Message: message}
}
