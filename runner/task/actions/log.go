package actions

import (
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/sethvargo/go-githubactions"
)

// Log is one stream of a step's log. The runner interprets lines starting with "::", and "##["
// anywhere in a line, as commands
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions). Text written to
// a Log can contain none: Write replaces one character of such a sequence by its visible full-width
// form. Only the methods write commands.
type Log struct {
	mu           sync.Mutex
	w            io.Writer
	sawText      bool // the line contains a visible character
	hashesBefore int  // right before, at most 2
	lineOpen     bool // a line that has not ended
}

func NewLog(w io.Writer) *Log { return &Log{w: w} }

// Write writes text without commands.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	harmless := make([]byte, 0, len(text)+8)
	for _, c := range text {
		harmless = l.appendHarmless(harmless, c)
	}
	if _, err := l.w.Write(harmless); err != nil {
		return 0, err
	}
	return len(text), nil
}

const (
	wideColon   = "："
	wideBracket = "［"
)

// appendHarmless appends one byte to "to", replaced if it would complete a workflow command. The runner
// also ends lines at "\r", and ignores all kinds of blanks before a command, so only a visible ASCII
// character counts as the start of a line's text.
func (l *Log) appendHarmless(to []byte, c byte) []byte {
	hashes := l.hashesBefore
	l.hashesBefore = 0
	l.lineOpen = c != '\n' && c != '\r'
	switch {
	case !l.lineOpen:
		l.sawText = false
	case c == ':' && !l.sawText:
		l.sawText = true
		return append(to, wideColon...)
	case c == '[' && hashes == 2:
		return append(to, wideBracket...)
	case c == '#':
		l.hashesBefore = min(hashes+1, 2)
		l.sawText = true
	case c > ' ' && c < 0x7f:
		l.sawText = true
	}
	return append(to, c)
}

// Mask keeps a value out of the log of this step and the ones after it. A value
// of several lines is masked line by line, as the runner sees it.
func (l *Log) Mask(value string) error {
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if err := l.writeCommand("add-mask", nil, line); err != nil {
			return err
		}
	}
	return nil
}

// Group starts a folded part of the log.
func (l *Log) Group(title string) error { return l.writeCommand("group", nil, title) }

func (l *Log) EndGroup() error { return l.writeCommand("endgroup", nil, "") }

// Annotation is a message shown beside the run, and at a line of File if set.
type Annotation struct {
	Level   string // error, warning, notice
	Title   string
	File    string // relative to the repository's root; empty for none
	Line    int    // 0 for none
	Column  int    // 0 for none
	Message string
}

// Annotate shows a message beside the run. GitHub shows ten of each level of a
// step.
func (l *Log) Annotate(a Annotation) error {
	properties := githubactions.CommandProperties{"col": positiveNumber(a.Column), "file": a.File, "line": positiveNumber(a.Line), "title": a.Title}
	maps.DeleteFunc(properties, func(_, value string) bool { return value == "" })
	return l.writeCommand(a.Level, properties, a.Message)
}

// writeCommand writes a workflow command on its own line. It uses only the format and the escapes of
// go-githubactions, not its writers: they do not escape information, and end outputs at a known
// delimiter.
func (l *Log) writeCommand(name string, properties githubactions.CommandProperties, message string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	command := githubactions.Command{Name: name, Message: message, Properties: properties}
	line := command.String() + "\n"
	if l.lineOpen {
		line = "\n" + line
	}
	l.lineOpen, l.sawText, l.hashesBefore = false, false, 0
	_, err := io.WriteString(l.w, line)
	return err
}

// positiveNumber formats n, or returns "" if n is 0 or less.
func positiveNumber(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
