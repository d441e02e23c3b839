package failinglog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// How many bytes are kept of the beginning and end of a long line.
const (
	lineHead = 1 << 10
	lineTail = 512
)

// Excerpt reads a log and returns an excerpt of up to maxBytes bytes, with marks for omitted lines. It covers
// the failing steps, or the whole log if no line has their time. With a read error it also returns the excerpt
// so far.
func Excerpt(log io.Reader, job forge.Job, maxBytes int) (string, error) {
	if maxBytes <= 0 {
		return "", nil
	}
	all, failing := newExcerpt(maxBytes), newExcerpt(maxBytes)
	spans := failingSpans(job)
	in := bufio.NewReaderSize(log, 64<<10)
	inFailingStep := false
	var err error
	for line := (line{}); err == nil; {
		if err = line.readNext(in); line.size == 0 && err != nil {
			break
		}
		at, text := splitTimestamp(line.text)
		if at != nil {
			inFailingStep = spans.contains(at)
		}
		all.add(text)
		if inFailingStep {
			failing.add(text)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if failing.lines > 0 {
		all = failing
	}
	return all.text(), err
}

// line is a line of a log. Of a long line only both ends are kept.
type line struct {
	text []byte
	tail []byte
	size int
}

// readNext reads the next line, without its line end.
func (l *line) readNext(in *bufio.Reader) error {
	l.text, l.tail, l.size = l.text[:0], l.tail[:0], 0
	for {
		part, err := in.ReadSlice('\n')
		l.keep(part)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.joinEnds()
		return err
	}
}

// keep adds the next part of the line. text takes the first lineHead bytes of the line, and tail the last
// lineTail bytes of the rest.
func (l *line) keep(part []byte) {
	l.size += len(part)
	head := min(len(part), lineHead-len(l.text))
	l.text = append(l.text, part[:head]...)
	part = part[head:]
	part = part[max(0, len(part)-lineTail):]
	l.tail = append(l.tail, part...)
	if more := len(l.tail) - lineTail; more > 0 {
		l.tail = l.tail[:copy(l.tail, l.tail[more:])]
	}
}

// joinEnds joins the two ends of the line.
func (l *line) joinEnds() {
	if omitted := l.size - len(l.text) - len(l.tail); omitted > 0 {
		l.text = fmt.Appendf(l.text, " [… %d bytes of this line left out] ", omitted)
	}
	l.text = bytes.TrimRight(append(l.text, l.tail...), "\r\n")
}

const (
	stampLayout = "2006-01-02T15:04:05"
	stampBytes  = len(stampLayout)
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// splitTimestamp separates the runner's timestamp, such as 2026-01-02T03:04:05.1234567Z, from a line. at has
// whole seconds. It is nil without a timestamp.
func splitTimestamp(text []byte) (at, rest []byte) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(text) < stampBytes {
		return nil, text
	}
	for i, form := range []byte(stampLayout) {
		wantsDigit := form >= '0' && form <= '9'
		gotDigit := text[i] >= '0' && text[i] <= '9'
		if wantsDigit != gotDigit || !wantsDigit && text[i] != form {
			return nil, text
		}
	}
	rest = text[stampBytes:]
	if len(rest) > 0 && rest[0] == '.' {
		rest = bytes.TrimLeft(rest[1:], "0123456789")
	}
	if len(rest) == 0 || rest[0] != 'Z' {
		return nil, text
	}
	return text[:stampBytes], bytes.TrimPrefix(rest[1:], []byte(" "))
}

// timeSpans are periods: first and last second, both included.
type timeSpans [][2]string

// failingConclusions lists conclusions of steps that fail a job, the most significant first.
var failingConclusions = []string{"failure", "timed_out", "cancelled"}

// failingSpans returns when the failing steps ran. The forge reports whole seconds, so lines of other steps
// in the same second are included.
func failingSpans(job forge.Job) timeSpans {
	for _, conclusion := range failingConclusions {
		var all timeSpans
		for _, step := range job.Steps {
			if step.Conclusion == conclusion && !step.Started.IsZero() && !step.Completed.Before(step.Started) {
				all = append(all, [2]string{step.Started.UTC().Format(stampLayout), step.Completed.UTC().Format(stampLayout)})
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// contains reports whether a time is in one of the periods. It compares texts, because their layout sorts by
// time.
func (s timeSpans) contains(at []byte) bool {
	for _, span := range s {
		if string(at) >= span[0] && string(at) <= span[1] {
			return true
		}
	}
	return false
}

// Shares of an excerpt, in tenths.
const (
	endShare   = 6
	errorShare = 2 // for marked errors, and again for lines that look like errors
)

const (
	linesBefore, linesAfter = 3, 5 // lines kept before and after an error
	gapBytes                = 48   // size of the mark for left out lines
)

// excerpt collects the lines to show of a log.
type excerpt struct {
	maxBytes  int
	lines     int // read so far
	tail      []byte
	tailStart int    // number of the first line in tail
	lower     []byte // buffer for a line in lower case

	keptLines   []numberedLine
	budget      map[lineKind]int
	followLines int      // how many more lines to keep after an error
	followKind  lineKind // kind of that error
}

type numberedLine struct {
	number int
	text   string
}

// lineKind is the reason to keep a line.
type lineKind int

const (
	ordinary lineKind = iota
	marked
	errorLike
)

// newExcerpt returns an empty excerpt of up to maxBytes bytes.
func newExcerpt(maxBytes int) *excerpt {
	share := maxBytes * errorShare / 10
	return &excerpt{maxBytes: maxBytes, budget: map[lineKind]int{marked: share, errorLike: share}}
}

// add adds the next line of the log. It keeps lines around errors, and every line at the end of the log. The
// tail may grow to twice its share before add shortens it, because each shortening copies the tail.
func (e *excerpt) add(text []byte) {
	if kind := e.kindOf(text); kind != ordinary {
		e.keepBefore(kind)
		e.followLines, e.followKind = linesAfter+1, kind
	}
	if e.followLines > 0 {
		e.followLines--
		e.keep(e.followKind, e.lines, text)
	}
	e.tail = append(append(e.tail, text...), '\n')
	e.lines++
	if share := e.maxBytes * endShare / 10; len(e.tail) > 2*share+lineHead+lineTail {
		e.drop(len(e.tail) - share)
	}
}

// drop removes whole lines from the beginning of the tail, at least minBytes bytes. The last line stays.
func (e *excerpt) drop(minBytes int) {
	if minBytes <= 0 {
		return
	}
	cut := minBytes + bytes.IndexByte(e.tail[minBytes-1:], '\n')
	if cut == len(e.tail) {
		cut = bytes.LastIndexByte(e.tail[:cut-1], '\n') + 1
	}
	e.tailStart += bytes.Count(e.tail[:cut], []byte("\n"))
	e.tail = e.tail[:copy(e.tail, e.tail[cut:])]
}

var errorMark = []byte("##[error]")

// errorWords mark lines as error-like, in lower case.
var errorWords = [][]byte{[]byte("error"), []byte("fail"), []byte("panic"), []byte("fatal"), []byte("exception"), []byte("traceback"), []byte("not ok")}

// kindOf returns the kind of a line. Once the budget of a kind is used up, its lines are ordinary.
func (e *excerpt) kindOf(text []byte) lineKind {
	switch {
	case e.budget[marked] > 0 && bytes.HasPrefix(text, errorMark):
		return marked
	case e.budget[errorLike] > 0 && e.looksLikeError(text):
		return errorLike
	}
	return ordinary
}

// looksLikeError reports whether a line has a word of errors, in any case.
func (e *excerpt) looksLikeError(text []byte) bool {
	e.lower = append(e.lower[:0], text...)
	for i, c := range e.lower { // bytes.ToLower takes twice as long in lines that are not ASCII
		if c >= 'A' && c <= 'Z' {
			e.lower[i] = c + 'a' - 'A'
		}
	}
	return slices.ContainsFunc(errorWords, func(word []byte) bool { return bytes.Contains(e.lower, word) })
}

// keepBefore keeps up to linesBefore lines before the current one, as far as tail has them. reason is the kind of
// the current line, whose budget pays for them.
func (e *excerpt) keepBefore(reason lineKind) {
	last := e.lines
	end := bytes.TrimSuffix(e.tail, []byte("\n"))
	var texts [][]byte
	for len(texts) < linesBefore && last > e.tailStart {
		at := bytes.LastIndexByte(end, '\n') + 1
		texts, last = append(texts, end[at:]), last-1
		end = end[:max(at-1, 0)]
	}
	for i := len(texts) - 1; i >= 0; i-- {
		e.keep(reason, last, texts[i])
		last++
	}
}

// keep keeps the line with a number, and charges it to the budget of reason. It does nothing if that budget is
// used up, or if the line is kept already.
func (e *excerpt) keep(reason lineKind, number int, text []byte) {
	n := len(e.keptLines)
	if e.budget[reason] <= 0 || n > 0 && e.keptLines[n-1].number >= number {
		return
	}
	e.budget[reason] -= len(text) + 1
	if n == 0 || e.keptLines[n-1].number != number-1 {
		e.budget[reason] -= gapBytes
	}
	e.keptLines = append(e.keptLines, numberedLine{number, string(text)})
}

// text returns the kept lines and the end of the log, in order.
func (e *excerpt) text() string {
	e.drop(len(e.tail) - e.maxBytes*endShare/10)
	var b strings.Builder
	next := 0
	write := func(number int, text string) {
		if omitted := number - next; omitted > 0 {
			fmt.Fprintf(&b, "[… %d lines left out]\n", omitted)
		}
		b.WriteString(markdown.Screen(text) + "\n")
		next = number + 1
	}
	for _, line := range e.keptLines {
		if line.number < e.tailStart {
			write(line.number, line.text)
		}
	}
	number := e.tailStart
	for line := range strings.Lines(string(e.tail)) {
		write(number, strings.TrimSuffix(line, "\n"))
		number++
	}
	return clip.EndLines(b.String(), e.maxBytes)
}
