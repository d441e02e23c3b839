package document

import (
	"strconv"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// templateTokens matches the parts of a template: marks, verbs, and words between them.
var templateTokens = lazyregexp.New("`|\\*\\*|%[sd]|[^`*%]+|.")

// styleMarks maps the marks around a part of a template to its style.
var styleMarks = map[string]Style{"`": Monospace, "**": Strong}

// Format returns a text by a template, such as "**service %s** is ready in `%s`". In it, %s stands for a string or
// a Text, and %d for a number. Marks in arguments mean nothing. An empty argument adds nothing.
func Format(template string, arguments ...any) Text {
	var f formatter
	for _, token := range templateTokens().FindAllString(template, -1) {
		mark, isMark := styleMarks[token]
		switch {
		case isMark && f.style == mark:
			f.endSpan(Plain)
		case isMark:
			f.endSpan(mark)
		case token == "%s" || token == "%d":
			f.add(arguments[0])
			arguments = arguments[1:]
		default:
			f.words += token
		}
	}
	f.endSpan(Plain)
	return f.text
}

// formatter builds the text of a template.
type formatter struct {
	text  Text
	words string // of the current span
	style Style  // of the current span
}

// endSpan ends the current span, and begins one with another style.
func (f *formatter) endSpan(next Style) {
	if f.words != "" {
		f.text = append(f.text, Span{Text: f.words, Style: f.style})
	}
	f.words, f.style = "", next
}

// add adds an argument. A plain string is a span of its own, so that each is shortened alone.
func (f *formatter) add(argument any) {
	switch argument := argument.(type) {
	case int:
		f.words += strconv.Itoa(argument)
	case Text:
		f.endSpan(f.style)
		f.text = append(f.text, argument...)
	case string:
		if f.style == Plain {
			f.endSpan(Plain)
			defer f.endSpan(Plain)
		}
		f.words += argument
	}
}
