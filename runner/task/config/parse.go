package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// MaxSize limits a file and the value of an assignment, in bytes. The parser itself limits the
// depth, and the decoder does not descend into unknown keys.
const MaxSize = 1 << 20

// Parse reads a file that must contain exactly one YAML document. The problem has no file name. If a second
// document follows, Parse returns the first one and a problem.
func (f *Format) Parse(data []byte) (*yaml.Node, *Problem) {
	node, problem := parseDocument(data, f.Name)
	if problem == nil && (node == nil || isNull(node)) {
		return nil, &Problem{Line: 1, Column: 1, Message: "is empty; a " + f.Name + " begins with version: 1"}
	}
	return node, problem
}

// parseDocument is like Format.Parse, but a file without a document gives a nil node and no problem. name
// is the kind of file, for messages.
func parseDocument(data []byte, name string) (*yaml.Node, *Problem) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // a byte order mark
	if problem := CheckText(data); problem != nil {
		return nil, problem
	}
	data, problem := jsonAsYAML(data)
	if problem != nil {
		return nil, problem
	}
	first, second, err := firstTwoDocuments(data)
	if err != nil {
		if broken := locateJSONError(data); broken != nil {
			return nil, broken
		}
		return nil, syntaxProblem(data, err)
	}
	if second != nil {
		return first.Content[0], &Problem{Line: second.Line, Column: second.Column, Message: "holds a second document from here on; a " + name + " is one document"}
	}
	if first == nil {
		return nil, nil
	}
	return first.Content[0], nil
}

// ParseDocument reads the one YAML document of a file without a Format, or nil if it has no document.
func ParseDocument(file string, data []byte) (*yaml.Node, Problems) {
	node, problem := parseDocument(data, "file")
	if problem == nil {
		return node, nil
	}
	problem.File = file
	return nil, Problems{*problem}
}

// firstTwoDocuments returns the first two documents of data, or nil for a missing one.
func firstTwoDocuments(data []byte) (first, second *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if first, err = nextDocument(decoder); err != nil || first == nil {
		return nil, nil, err
	}
	second, err = nextDocument(decoder)
	return first, second, err
}

// nextDocument returns the next document, or nil after the last one.
func nextDocument(decoder *yaml.Decoder) (*yaml.Node, error) {
	node := new(yaml.Node)
	err := decoder.Decode(node)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return node, err
}

// CheckText returns the problem of data that is no text, before a parser reads it. It returns nil for text.
func CheckText(data []byte) *Problem {
	if len(data) > MaxSize {
		return &Problem{Line: 1, Column: 1, Message: fmt.Sprintf("is larger than %d KiB", MaxSize>>10)}
	}
	for offset, r := range string(data) {
		switch {
		case r == utf8.RuneError && !bytes.HasPrefix(data[offset:], []byte("\uFFFD")):
			return problemAt(data, offset, "is not UTF-8 from here on")
		case unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r):
			return problemAt(data, offset, fmt.Sprintf("holds the control character %U; write it as an escape in double quotes", r))
		}
	}
	return nil
}

var parserPrefix = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// syntaxHints explain mistakes that the parser names less clearly, or in another line.
var syntaxHints = []struct {
	parser  string                // part of the parser's message
	line    func() *regexp.Regexp // of the failing line; its group is the place of the mistake, if there is one
	above   func() *regexp.Regexp // of the line above; nil for any
	message string
	quote   bool // suggest the group in quotes
}{
	{"", lazyregexp.New(`^ *(\t)`), nil, "a tab indents this line; use blanks", false},
	{"", lazyregexp.New(`(?:^|[ \[,\t])(\*\.)`), nil, "what begins with * has to be in quotes", false},
	{"", lazyregexp.New(`(?:[\[{,][ \t]*|:[ \t]+)(#[^\s,\]}]*)`), nil, "# begins a comment here, which hides the rest of the line; put what begins with # in quotes", true},
	{"start any token", lazyregexp.New("(?:^|[ \\[{,])([@`%].*)"), nil, "what begins with @, ` or % has to be in quotes", false},
	{"mapping values", lazyregexp.New(`^[ -]*[^ '"\[{#|>&!][^'"]*?: +([^'"\[{#|>&!][^'"]*: .*)`), nil, "text with a colon and a blank has to be in quotes", false},
	{"mapping values", lazyregexp.New(``), lazyregexp.New(`^[ -]*[A-Za-z_]+:[^ ]+$`), "the line above has no blank behind its colon", false},
	{"mapping values", lazyregexp.New(`^ *([^ ])`), nil, "the indentation of this line fits no line above", false},
	{"expected key", lazyregexp.New(`^ *([A-Za-z_]+:(?: [^'"\[{]*)?)$`), nil, "the indentation of this line fits no line above", false},
	{"unexpected end of stream", lazyregexp.New(`^[^"']*(["'])`), nil, "this quote is not closed", false},
	{"expected ':'", lazyregexp.New(`^ *([^ ])`), lazyregexp.New(`[:-] +[|>][-+0-9]*$`), "text below | or > has to be indented more than its key", false},
}

// syntaxProblem returns the position of a syntax error. The parser often reports the line of the
// surrounding construct, or none. The line after the longest parsable start of the file is more
// exact.
func syntaxProblem(data []byte, err error) *Problem {
	lines := strings.Split(string(data), "\n")
	parser := parserPrefix().FindStringSubmatch(err.Error())
	parserStart, parserLine := parser[0], parser[1]
	line := firstFailingLine(data)
	if line == 0 {
		line, _ = strconv.Atoi(parserLine)
	}
	line = min(max(line, 1), len(lines))
	failingLine, lineAbove := strings.TrimRight(lines[line-1], "\r"), strings.TrimRight(lines[max(line-2, 0)], "\r")
	for _, hint := range syntaxHints {
		found := hint.line().FindStringSubmatchIndex(failingLine)
		fitsAbove := hint.above == nil || hint.above().MatchString(lineAbove)
		if found == nil || !fitsAbove || !strings.Contains(err.Error(), hint.parser) {
			continue
		}
		begin, end := found[len(found)-2], found[len(found)-1] // of the group, if there is one
		problem := &Problem{Line: line, Column: utf8.RuneCountInString(failingLine[:begin]) + 1, Message: "is not YAML: " + hint.message}
		if hint.quote {
			problem.Suggestion = strconv.Quote(failingLine[begin:end])
		}
		return problem
	}
	column := len(failingLine) - len(strings.TrimLeft(failingLine, " ")) + 1
	return &Problem{Line: line, Column: column, Message: "is not YAML: " + strings.TrimPrefix(err.Error(), parserStart)}
}

// firstFailingLine returns the line after the longest parsable start of data, or 0 if the search takes too long.
func firstFailingLine(data []byte) int {
	const effort = 4 << 20 // bytes given to the parser
	top := bytes.TrimSuffix(data, []byte("\n"))
	for spent := 0; spent < effort; spent += len(top) {
		if _, _, err := firstTwoDocuments(top); err == nil {
			return bytes.Count(top, []byte("\n")) + 2
		}
		end := bytes.LastIndexByte(top, '\n')
		if end < 0 {
			return 1
		}
		top = top[:end]
	}
	return 0
}
