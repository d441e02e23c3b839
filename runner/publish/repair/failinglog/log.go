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

// Long lines keep their beginning and end, in bytes.
const (
	lineHead = 1 << 10
	lineTail = 512
)

// Cut reads a log to its end and returns an excerpt of at most most bytes, marking omitted lines.
// The excerpt covers the failing steps, or the whole log if no line has their time. On a read
// error, Cut also returns the excerpt so far.
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

// line is a log line; only both ends of a long one are kept.
type line struct {
	text []byte
	tail []byte
	size int
}

func (l *line) empty() bool { return l.size == 0 }

// read reads the next line, without its end.
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

// join puts the two ends of the line together.
func (l *line) join() {
	if left := l.size - len(l.text) - len(l.tail); left > 0 {
		l.text = fmt.Appendf(l.text, " [… %d bytes of this line left out] ", left)
	}
	l.text = bytes.TrimRight(append(l.text, l.tail...), "\r\n")
}

const (
	stampLayout = "2006-01-02T15:04:05"
	stampBytes  = len(stampLayout)
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// splitTimestamp separates the runner's timestamp, 2026-01-02T03:04:05.1234567Z, from a line. at has whole
// seconds, and is nil without a timestamp.
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

// spans are pairs of whole seconds, both included.
type spans [][2]string

// failingConclusions lists conclusions of steps that fail a job, most telling first.
var failingConclusions = []string{"failure", "timed_out", "cancelled"}

// failingSpans returns when the failing steps ran. The forge reports whole seconds, so lines of
// adjacent steps from the same second are included.
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

// contains compares letters: the layout sorts as time does.
func (s spans) contains(at []byte) bool {
	for _, span := range s {
		if string(at) >= span[0] && string(at) <= span[1] {
			return true
		}
	}
	return false
}

// Shares of an excerpt, in tenths. The rest is for gap marks.
const (
	endShare   = 6
	errorShare = 2 // each of marked errors and of lines that look like ones
)

const (
	before, after = 3, 5 // lines that are kept around a line
	gapBytes      = 48   // for the mark of a place where lines are left out
)

type excerpt struct {
	most  int
	lines int // so far
	end   []byte
	first int    // number of the first line in end
	small []byte // the line that is looked at, in small letters

	kept        []numbered
	budget      map[kind]int
	followLines int  // lines still to keep after the last one
	followKind  kind // of them
}

type numbered struct {
	number int
	text   string
}

// kind is why a line is kept.
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

// drop removes whole lines with at least that number of bytes from the start of the kept end. The last
// line stays.
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

// kindOf classifies a line as ordinary once the budget of its kind is used up.
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

// keepBefore keeps up to 3 lines before the current one.
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

func (e *excerpt) keep(of kind, number int, text []byte) {
	n := len(e.kept)
	if e.budget[of] <= 0 || n > 0 && e.kept[n-1].number >= number {
		return
	}
	e.budget[of] -= len(text) + 1
	if n == 0 || e.kept[n-1].number != number-1 {
		e.budget[of] -= gapBytes
	}
	e.kept = append(e.kept, numbered{number, string(text)})
}

// text returns the kept lines in order.
func (e *excerpt) text() string {
	e.drop(len(e.end) - e.most*endShare/10)
	var b strings.Builder
	next := 0
	write := func(number int, text string) {
		if left := number - next; left > 0 {
			fmt.Fprintf(&b, "[… %d lines left out]\n", left)
		}
		b.WriteString(markdown.Screen(text) + "\n")
		next = number + 1
	}
	for _, line := range e.kept {
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

// lastBytes returns the last most bytes of a text, as whole lines if possible.
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
