package failinglog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Cut reads a log and returns an excerpt of up to most bytes, with marks where lines are left out. The excerpt covers the failing
// steps, or the whole log if no line has their time. With a read error it also returns the excerpt so far.
func Cut(log io.Reader, job forge.Job, most int) (string, error) {
	if most <= 0 {
		return "", nil
	}
	all, failing := newExcerpt(most), newExcerpt(most)
	spans := failingSpans(job)
	in := bufio.NewReaderSize(log, 64<<10)
	within := false
	var err error
	for line := (line{}); err == nil; {
		if err = line.read(in); line.empty() && err != nil {
			break
		}
		at, text := splitTimestamp(line.text)
		if at != nil {
			within = spans.contains(at)
		}
		all.add(text)
		if within {
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

func (l *line) empty() bool { return l.size == 0 }

// read reads the next line, without its line end.
func (l *line) read(in *bufio.Reader) error {
	l.text, l.tail, l.size = l.text[:0], l.tail[:0], 0
	for {
		part, err := in.ReadSlice('\n')
		l.keep(part)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.join()
		return err
	}
}

// keep adds part to the beginning of the line, and then to its end.
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

// join joins the two ends of the line.
func (l *line) join() {
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

// splitTimestamp separates the runner's timestamp, such as 2026-01-02T03:04:05.1234567Z, from a line. at has whole seconds. It is
// nil without a timestamp.
func splitTimestamp(text []byte) (at, rest []byte) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if len(text) < stampBytes {
		return nil, text
	}
	for i, form := range []byte(stampLayout) {
		digit := form >= '0' && form <= '9'
		if got := text[i]; digit != (got >= '0' && got <= '9') || !digit && got != form {
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

// spans are periods: first and last second, both included.
type spans [][2]string

// failingConclusions lists conclusions of steps that fail a job, the most significant first.
var failingConclusions = []string{"failure", "timed_out", "cancelled"}

// failingSpans returns when the failing steps ran. The forge reports whole seconds, so lines of other steps in the same second are
// included.
func failingSpans(job forge.Job) spans {
	for _, conclusion := range failingConclusions {
		var all spans
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

// contains compares timestamps as text, because their layout sorts by time.
func (s spans) contains(at []byte) bool {
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
	before, after = 3, 5 // lines kept before and after an error
	gapBytes      = 48   // size of the mark for left out lines
)

// excerpt collects the lines to show of a log.
type excerpt struct {
	most  int
	lines int // read so far
	end   []byte
	first int    // number of the first line in end
	small []byte // buffer for a line in lower case

	keptLines   []numbered
	budget      map[kind]int
	followLines int  // how many more lines to keep after an error
	followKind  kind // kind of that error
}

type numbered struct {
	number int
	text   string
}

// kind is the reason to keep a line.
type kind int

const (
	ordinary kind = iota
	marked
	errorLike
)

func newExcerpt(most int) *excerpt {
	share := most * errorShare / 10
	return &excerpt{most: most, budget: map[kind]int{marked: share, errorLike: share}}
}

// add adds the next line of the log.
func (e *excerpt) add(text []byte) {
	if kind := e.kindOf(text); kind != ordinary {
		e.keepBefore(kind)
		e.followLines, e.followKind = after+1, kind
	}
	if e.followLines > 0 {
		e.followLines--
		e.keep(e.followKind, e.lines, text)
	}
	e.end = append(append(e.end, text...), '\n')
	e.lines++
	if share := e.most * endShare / 10; len(e.end) > 2*share+lineHead+lineTail {
		e.drop(len(e.end) - share)
	}
}

// drop removes whole lines, at least least bytes, from the beginning of the kept end. The last line stays.
func (e *excerpt) drop(least int) {
	if least <= 0 {
		return
	}
	cut := least + bytes.IndexByte(e.end[least-1:], '\n')
	if cut == len(e.end) {
		cut = bytes.LastIndexByte(e.end[:cut-1], '\n') + 1
	}
	e.first += bytes.Count(e.end[:cut], []byte("\n"))
	e.end = e.end[:copy(e.end, e.end[cut:])]
}

var errorMark = []byte("##[error]")

// errorWords mark lines as error-like, in lower case.
var errorWords = [][]byte{[]byte("error"), []byte("fail"), []byte("panic"), []byte("fatal"), []byte("exception"), []byte("traceback"), []byte("not ok")}

// kindOf returns the kind of a line. Once the budget of a kind is used up, its lines are ordinary.
func (e *excerpt) kindOf(text []byte) kind {
	switch {
	case e.budget[marked] > 0 && bytes.HasPrefix(text, errorMark):
		return marked
	case e.budget[errorLike] > 0 && e.looksLikeError(text):
		return errorLike
	}
	return ordinary
}

func (e *excerpt) looksLikeError(text []byte) bool {
	e.small = append(e.small[:0], text...)
	for i, c := range e.small {
		if c >= 'A' && c <= 'Z' {
			e.small[i] = c + 'a' - 'A'
		}
	}
	for _, word := range errorWords {
		if bytes.Contains(e.small, word) {
			return true
		}
	}
	return false
}

// keepBefore keeps the lines before the current one, up to the constant before.
func (e *excerpt) keepBefore(of kind) {
	last := e.lines
	end := bytes.TrimSuffix(e.end, []byte("\n"))
	var texts [][]byte
	for len(texts) < before && last > e.first {
		at := bytes.LastIndexByte(end, '\n') + 1
		texts, last = append(texts, end[at:]), last-1
		end = end[:max(at-1, 0)]
	}
	for i := len(texts) - 1; i >= 0; i-- {
		e.keep(of, last, texts[i])
		last++
	}
}

// keep keeps a line and charges it to the budget of its kind, unless that is used up or the line is kept already.
func (e *excerpt) keep(of kind, number int, text []byte) {
	n := len(e.keptLines)
	if e.budget[of] <= 0 || n > 0 && e.keptLines[n-1].number >= number {
		return
	}
	e.budget[of] -= len(text) + 1
	if n == 0 || e.keptLines[n-1].number != number-1 {
		e.budget[of] -= gapBytes
	}
	e.keptLines = append(e.keptLines, numbered{number, string(text)})
}

// text returns the kept lines and the end of the log, in order.
func (e *excerpt) text() string {
	e.drop(len(e.end) - e.most*endShare/10)
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
		if line.number < e.first {
			write(line.number, line.text)
		}
	}
	number := e.first
	for line := range strings.Lines(string(e.end)) {
		write(number, strings.TrimSuffix(line, "\n"))
		number++
	}
	return lastBytes(b.String(), e.most)
}

// lastBytes returns the last most bytes of a text, from the start of a line if possible.
func lastBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = clip.End(text, most)
	if _, whole, cut := strings.Cut(text, "\n"); cut && whole != "" {
		return whole
	}
	return text
}
