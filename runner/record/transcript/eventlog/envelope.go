package eventlog

import (
	"bytes"
	"strconv"
)

// lineStart is the beginning of every line in this version of the format.
const lineStart = `{"v":1,"seq":`

// Envelope parses a line that Append wrote, much faster than Event. ok is false for other lines.
// Data may be invalid JSON if the line repeats or reorders fields. If Data does not parse, call
// Event instead.
func (l Line) Envelope() (e Event, ok bool) {
	rest, ok := bytes.CutPrefix(l.text, []byte(lineStart))
	if !ok {
		return Event{}, false
	}
	field := func(end string) string {
		value, after, found := bytes.Cut(rest, []byte(end))
		rest, ok = after, ok && found && isPlainASCII(value)
		return string(value)
	}
	seq, when := field(`,"time":"`), field(`","agent":"`)
	e = Event{V: Version, Agent: field(`","type":"`), Type: Type(field(`","data":`))}
	end := len(rest) - len(`,"prev":""}`) - len(Genesis)
	if !ok || end < 0 {
		return Event{}, false
	}
	prev, opened := bytes.CutPrefix(rest[end:], []byte(`,"prev":"`))
	prev, closed := bytes.CutSuffix(prev, []byte(`"}`))
	number, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != seq || !opened || !closed || !isPlainASCII(prev) || e.Time.UnmarshalText([]byte(when)) != nil {
		return Event{}, false
	}
	e.Seq, e.Data, e.Prev = number, rest[:end:end], string(prev)
	return e, true
}

// isPlainASCII reports whether a text needs no escapes in a JSON string.
func isPlainASCII(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
