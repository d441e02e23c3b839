package v4a

import "strings"

const byteOrderMark = "\uFEFF"

// text is a file's content as lines. LF, CRLF and CR end a line. A byte order mark belongs to no
// line.
type text struct {
	data             string
	starts           []int32 // start of each line in bytes, and the end of the last line
	ending           string  // ending of the first line, or LF
	hasByteOrderMark bool    // starts with a byte order mark
}

// newText splits a text into lines.
func newText(data string) *text {
	t := &text{data: data, ending: "\n", hasByteOrderMark: strings.HasPrefix(data, byteOrderMark)}
	carriageReturns := strings.Count(data, "\r")
	t.starts = make([]int32, 0, strings.Count(data, "\n")+carriageReturns+2)
	at := 0
	if t.hasByteOrderMark {
		at = len(byteOrderMark)
	}
	for at < len(data) {
		t.starts = append(t.starts, int32(at))
		at = lineEnd(data, at, carriageReturns > 0)
	}
	t.starts = append(t.starts, int32(at))
	if t.lines() > 0 {
		if e := t.data[t.textEnd(0):t.starts[1]]; e != "" {
			t.ending = e
		}
	}
	return t
}

// lineEnd returns the end of the line at a byte, after its ending. hasCR is false if the text has no
// CR.
func lineEnd(data string, at int, hasCR bool) int {
	end := len(data)
	if i := strings.IndexByte(data[at:], '\n'); i >= 0 {
		end = at + i + 1
	}
	if !hasCR {
		return end
	}
	cr := strings.IndexByte(data[at:end], '\r')
	switch {
	case cr < 0:
		return end
	case at+cr+1 < len(data) && data[at+cr+1] == '\n':
		return at + cr + 2
	default:
		return at + cr + 1
	}
}

func (t *text) lines() int { return len(t.starts) - 1 }

// line returns a line without its ending.
func (t *text) line(i int) string { return t.data[t.starts[i]:t.textEnd(i)] }

// textEnd returns the end of line i, before its ending.
func (t *text) textEnd(i int) int {
	start, end := int(t.starts[i]), int(t.starts[i+1])
	if end > start && t.data[end-1] == '\n' {
		end--
	}
	if end > start && t.data[end-1] == '\r' {
		end--
	}
	return end
}

// endings returns the endings of n lines from line at on. A line without an ending gets the file's
// ending. A lone CR is replaced by the file's ending, too, because it could merge with a following
// LF.
func (t *text) endings(at, n int) []string {
	endings := make([]string, n)
	for i := range endings {
		endings[i] = t.data[t.textEnd(at+i):t.starts[at+i+1]]
		if endings[i] == "" || endings[i] == "\r" || t.ending == "\r" {
			endings[i] = t.ending
		}
	}
	return endings
}

// hasEnding reports whether a line has an ending.
func (t *text) hasEnding(i int) bool { return t.textEnd(i) < int(t.starts[i+1]) }

// splitBare prepares a text for a bare diff: after a final line ending there is one more, empty
// line. If the first line has no ending, the ending of the diff becomes the file's.
func (t *text) splitBare(ending string) {
	if t.lines() == 0 || !t.hasEnding(0) {
		t.ending = ending
	}
	if t.lines() == 0 || t.hasEnding(t.lines()-1) {
		t.starts = append(t.starts, int32(len(t.data)))
	}
}
