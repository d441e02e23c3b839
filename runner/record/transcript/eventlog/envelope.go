package eventlog

import (
	"bytes"
	"strconv"
)

// lineStart is the beginning of every line in this version of the format.
const lineStart = `{"v":1,"seq":`

// envelope parses a line that Append wrote, without its data. ok is false for other lines. Data may be invalid
// JSON if the line repeats or reorders fields.
func (l Line) envelope() (e Event, ok bool) {
	rest, ok := bytes.CutPrefix(l.text, []byte(lineStart))
	if !ok {
		return Event{}, false
	}
	fields := fieldReader{rest: rest}
	seq := fields.until(`,"time":"`)
	when := fields.until(`","agent":"`)
	e = Event{V: Version, Agent: fields.until(`","type":"`), Type: Type(fields.until(`","data":`))}
	// The rest is the data and ,"prev":"DIGEST"}. All digests are as long as Genesis.
	dataLen := len(fields.rest) - len(`,"prev":""}`) - len(Genesis)
	if fields.failed || dataLen < 0 {
		return Event{}, false
	}
	e.Data = fields.rest[:dataLen:dataLen]
	fields.rest = fields.rest[dataLen:]
	isPrev := fields.until(`,"prev":"`) == ""
	e.Prev = fields.until(`"}`)
	e.Seq, ok = parsePlainInt(seq)
	if hasRest := len(fields.rest) > 0; !ok || !isPrev || fields.failed || hasRest {
		return Event{}, false
	}
	if e.Time.UnmarshalText([]byte(when)) != nil {
		return Event{}, false
	}
	return e, true
}

// fieldReader takes the fields of a line one after the other.
type fieldReader struct {
	rest   []byte
	failed bool // a field was missing, or needs escapes
}

// until returns the text before separator, and moves behind separator. If separator is missing or the text
// has characters that JSON escapes, it sets failed.
func (r *fieldReader) until(separator string) string {
	value, rest, found := bytes.Cut(r.rest, []byte(separator))
	r.rest = rest
	if !found || !isPlainASCII(value) {
		r.failed = true
	}
	return string(value)
}

// parsePlainInt parses a number as Append writes it, without a plus and leading zeros.
func parsePlainInt(text string) (number int64, ok bool) {
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && strconv.FormatInt(number, 10) == text
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
