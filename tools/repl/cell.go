package repl

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How long a call may take.
const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
)

// grammar restricts a model to JavaScript: text must not begin like JSON, a string or a fence. Code
// that must begin with a block or string starts with a semicolon.
const grammar = `start: pragma_source | plain_source

pragma_source: PRAGMA NEWLINE SOURCE
plain_source: SOURCE

PRAGMA: /[ \t]*\/\/ codex-js-repl:[^\r\n]*/
NEWLINE: /\r?\n/
SOURCE: /\s*([^\s{"'` + "`" + `]|` + "`[^`]|``[^`]" + `)[\s\S]*/
`

// cell is the code of a call.
type cell struct {
	code    string
	timeout time.Duration
	reset   bool
	number  int // in the run, from 1
	callID  string
}

// pragma begins a first line with options.
const pragma = "// codex-js-repl:"

// parseCell returns the code in a call and the options in its first line. refusal tells the model why the text cannot be
// run, or is "".
func parseCell(text string) (c cell, refusal string) {
	if problem := problemWith(text); problem != "" {
		return c, fmt.Sprintf("js_repl takes JavaScript as it is: %s. Send the source text alone, with no JSON, quotes or markdown fences around it.", problem)
	}
	c = cell{code: text, timeout: defaultTimeout}
	first, _, _ := strings.Cut(text, "\n")
	options, hasOptions := strings.CutPrefix(strings.TrimSpace(first), pragma)
	if !hasOptions {
		return c, ""
	}
	for _, option := range strings.Fields(options) {
		name, value, _ := strings.Cut(option, "=")
		setOption, known := pragmas[name]
		if !known || !setOption(&c, value) {
			return c, fmt.Sprintf("The first line asks for %q; it can have timeout_ms=N, in milliseconds, and reset=true: %s timeout_ms=15000 reset=true", option, pragma)
		}
	}
	return c, ""
}

// pragmas maps the options of the first line to functions that set them. They return false for an invalid value.
var pragmas = map[string]func(c *cell, value string) bool{
	"timeout_ms": func(c *cell, value string) bool {
		ms, err := strconv.ParseInt(value, 10, 32)
		c.timeout = min(time.Duration(ms)*time.Millisecond, maxTimeout)
		return err == nil && ms > 0
	},
	"reset": func(c *cell, value string) bool {
		reset, err := strconv.ParseBool(value)
		c.reset = reset
		return err == nil
	},
}

// problemWith describes what a text is instead of plain code, such as JSON, or returns "".
func problemWith(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "there is no code"
	case strings.HasPrefix(text, "```"):
		return "this begins with a markdown fence"
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return "this is JSON"
	case isStringLiteral(text):
		return "this is one string in quotes"
	}
	return ""
}

// isStringLiteral reports whether a text is a single JavaScript string in quotes.
func isStringLiteral(text string) bool {
	quote := text[0]
	if quote != '"' && quote != '\'' || len(text) < 2 {
		return false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i == len(text)-1
		}
	}
	return false
}
