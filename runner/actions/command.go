package actions

import (
	"io"
	"strconv"
	"strings"

	"github.com/sethvargo/go-githubactions"
)

// command writes a workflow command on a line of its own. Of go-githubactions
// the form and the escapes are taken, and nothing that writes: what it prints as
// information is not escaped, and its outputs end at a delimiter that is known.
func (l *Log) command(name string, properties githubactions.CommandProperties, message string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	command := githubactions.Command{Name: name, Message: message, Properties: properties}
	line := command.String() + "\n"
	if l.within {
		line = "\n" + line
	}
	l.within, l.begun, l.hashes = false, false, 0
	_, err := io.WriteString(l.w, line)
	return err
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// lines are the lines of a value that have anything on them.
func lines(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' })
}
