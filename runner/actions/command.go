package actions

import (
	"io"
	"strconv"
	"strings"
)

// property is one name=value of a workflow command.
type property struct{ name, value string }

var (
	messageEscapes  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// command writes a workflow command on a line of its own.
func (l *Log) command(name string, properties []property, message string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s strings.Builder
	if l.within {
		s.WriteByte('\n')
	}
	s.WriteString("::" + name)
	for i, p := range properties {
		s.WriteByte(" ,"[min(i, 1)])
		s.WriteString(p.name + "=" + propertyEscapes.Replace(p.value))
	}
	s.WriteString("::" + messageEscapes.Replace(message) + "\n")
	l.within, l.begun, l.hashes = false, false, 0
	_, err := io.WriteString(l.w, s.String())
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
