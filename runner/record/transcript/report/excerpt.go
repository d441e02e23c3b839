package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

const (
	pageBytes  = 6_000_000 // what a page may take, as long as its events leave room
	textBytes  = 100_000   // the most of one text, so that one output does not make a page slow
	fixedBytes = 450_000   // style, script and the overview without its diffs
	entryBytes = 700       // the marks around an entry, and its short fields
	lineBytes  = 40        // the marks around a line of a diff or a message
)

// excerpt is clean text with a possible gap.
type excerpt struct {
	Head   string
	Hidden string // how much is missing; empty when nothing is
	Tail   string
}

func (x excerpt) node() g.Node {
	if x.Head == "" && x.Hidden == "" {
		return cutNote("nothing")
	}
	text := g.Group{g.Text("\n" + x.Head)}
	if x.Hidden != "" {
		text = append(text, g.Text("\n"), h.I(h.Class("cut"), g.Text("… "+x.Hidden+" …")), g.Text("\n"))
	}
	return h.Pre(text, g.Text(x.Tail))
}

// cutter returns the permitted size of a text on the page, given its full size in bytes. The first
// pass only collects sizes.
type cutter func(bytes int) int

// limit is the same for all texts.
func limit(bytes int) cutter { return func(int) int { return bytes } }

// scale finds the limit under which all texts fit on a page: short ones whole, long ones equally
// cut.
type scale struct{ lengths []int }

// collect is the cutter of the first pass: it notes the size of a text and cuts everything.
func (s *scale) collect(bytes int) int {
	s.lengths = append(s.lengths, min(bytes, textBytes))
	return 0
}

// limit returns the largest size of a text in bytes, for a page of page bytes with entries entries.
func (s *scale) limit(page, entries int) int {
	left := max(0, page-fixedBytes-entries*entryBytes)
	slices.Sort(s.lengths)
	for i, length := range s.lengths {
		share := left / (len(s.lengths) - i)
		if length > share {
			return share
		}
		left -= length
	}
	return textBytes
}

// cut cuts a text to c's limit, keeping more of its start than of its end.
func cut(c cutter, s string) excerpt { return plainWeights.cut(c, s) }

// cutProse is cut for prose.
func cutProse(c cutter, s string) excerpt { return proseWeights.cut(c, s) }

// weights are the sizes of a text's bytes on the page.
type weights [256]int

var plainWeights, proseWeights = escapes(), laidOut()

// escapes are the sizes after gomponents.Text.
func escapes() *weights {
	var w weights
	for b := range w {
		w[b] = 1
	}
	for _, b := range []byte(`<>&"'`) {
		w[b] = len("&#39;")
	}
	return &w
}

// laidOut counts the elements around blocks, code and bold text too.
func laidOut() *weights {
	w := *escapes()
	w['\n'], w['`'], w['*'] = lineBytes, len("<code></code>"), len("<b></b>")
	return &w
}

// cut shortens s so that it takes no more of the page than c permits: two thirds from its start, one third
// from its end.
func (w *weights) cut(c cutter, s string) excerpt {
	s = strings.TrimRight(s, "\n")
	start, middle, end := s, "", ""
	if len(s) > 2*textBytes { // the middle need not be looked at
		start, middle, end = clip.Start(s, textBytes), s[textBytes:len(s)-textBytes], clip.End(s, textBytes)
	}
	start, end = markdown.Show(start), markdown.Show(end)
	size := w.weigh(start) + w.weigh(end)
	most := c(size)
	if middle == "" && size <= most {
		return excerpt{Head: start}
	}
	head := w.first(start, most)
	if start = start[len(head):]; middle == "" {
		start, end = "", start
	}
	tail := w.last(end, most)
	return excerpt{Head: head, Hidden: missing(start, middle, end[:len(end)-len(tail)]), Tail: strings.TrimPrefix(tail, "\n")}
}

func (w *weights) first(s string, most int) string { return lineEnd(s[:w.reach(s, most*2/3)]) }
func (w *weights) last(s string, most int) string  { return lineStart(s, w.backwards(s, most/3)) }

func missing(parts ...string) string {
	bytes, lines := 0, 0
	for _, s := range parts {
		bytes += len(s)
		lines += strings.Count(s, "\n")
	}
	size := transcript.Thousands(int64(bytes)) + " bytes not shown"
	if lines > 0 {
		return transcript.Count(lines, "line") + ", " + size
	}
	return size
}

func (w *weights) weigh(s string) int {
	bytes := 0
	for i := range len(s) {
		bytes += w[s[i]]
	}
	return bytes
}

// reach returns how many bytes of s's start fit in maxBytes of the page.
func (w *weights) reach(s string, most int) int {
	at := 0
	for at < len(s) && most >= w[s[at]] {
		most -= w[s[at]]
		at++
	}
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// backwards returns the start of the longest end of s within the given size on the page.
func (w *weights) backwards(s string, most int) int {
	at := len(s)
	for at > 0 && most >= w[s[at-1]] {
		at--
		most -= w[s[at]]
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}

// lineEnd drops an incomplete line, unless that is half the text.
func lineEnd(s string) string {
	if end := strings.LastIndexByte(s, '\n'); end > len(s)/2 {
		return s[:end]
	}
	return s
}

func lineStart(s string, from int) string {
	if start := strings.IndexByte(s[from:], '\n'); start >= 0 && start < (len(s)-from)/2 {
		return s[from+start:]
	}
	return s[from:]
}

// fieldUnits is the most of a short field: a name, a path, a command's first line.
const fieldUnits = 120

// Field returns hostile text as a part of a line.
func Field(s string) string {
	return markdown.Cut(strings.Join(strings.Fields(markdown.Show(markdown.Cut(s, 2*fieldUnits))), " "), fieldUnits)
}

// fileField is a path as a field; "" for none.
func fileField(path string) string {
	if path == "" {
		return ""
	}
	return Field(markdown.FileName(path))
}

// shownText shows a text of a few sentences, cut to a number of UTF-16 units.
func shownText(s string, most int) string {
	return strings.TrimSpace(markdown.Show(markdown.Cut(s, most)))
}
