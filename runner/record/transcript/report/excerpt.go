package report

import (
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

const (
	pageBytes  = 6_000_000 // the size of a page, if its events are not too many
	textBytes  = 100_000   // the maximum of one text, so that one output does not make the page slow
	fixedBytes = 450_000   // style, script and overview, without diffs
	entryBytes = 700       // markup and short fields of an entry
	lineBytes  = 40        // markup of a line of a diff or message
)

// excerpt is a clean text, perhaps with a gap.
type excerpt struct {
	Head   string
	Hidden string // what is left out; empty if nothing is
	Tail   string
}

// node draws the text, with a note where its middle is left out.
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

// textLimit returns how many bytes of the page a text may take. bytes is the size of the whole text on the
// page.
type textLimit func(bytes int) int

// fixedLimit returns a textLimit that is the same for all texts.
func fixedLimit(bytes int) textLimit { return func(int) int { return bytes } }

// textSizes collects the sizes of all texts, to find a limit with which they fit on a page. Short texts stay
// whole, and long ones are all cut to the same size.
type textSizes struct{ lengths []int }

// record is the textLimit of the first pass. It records the size of a text and permits nothing.
func (s *textSizes) record(bytes int) int {
	s.lengths = append(s.lengths, min(bytes, textBytes))
	return 0
}

// limit returns the maximum size of a text, so that a page with a number of entries has about pageSize bytes. All texts have
// an equal share of the page. What shorter texts leave of their share is divided among the longer ones.
func (s *textSizes) limit(pageSize, entries int) int {
	remaining := max(0, pageSize-fixedBytes-entries*entryBytes)
	slices.Sort(s.lengths)
	for i, length := range s.lengths {
		share := remaining / (len(s.lengths) - i)
		if length > share {
			return share
		}
		remaining -= length
	}
	return textBytes
}

// weights has, for each byte value, how many bytes it takes on the page.
type weights [256]int

var plainWeights, proseWeights = escapedSizes(), proseSizes()

// escapedSizes returns the sizes after HTML escaping by gomponents.Text.
func escapedSizes() *weights {
	var w weights
	for b := range w {
		w[b] = 1
	}
	for _, b := range []byte(`<>&"'`) {
		w[b] = len("&#39;")
	}
	return &w
}

// proseSizes returns sizes that include the elements around blocks, code and bold text.
func proseSizes() *weights {
	w := *escapedSizes()
	w['\n'], w['`'], w['*'] = lineBytes, len("<code></code>"), len("<b></b>")
	return &w
}

// cut shortens s to its limit: two thirds from its start, one third from its end.
func (w *weights) cut(limit textLimit, s string) excerpt {
	s = strings.TrimRight(s, "\n")
	start, middle, end := s, "", ""
	if len(s) > 2*textBytes { // the middle will not be shown
		start, middle, end = clip.Start(s, textBytes), s[textBytes:len(s)-textBytes], clip.End(s, textBytes)
	}
	start, end = markdown.Show(start), markdown.Show(end)
	size := w.weigh(start) + w.weigh(end)
	maxBytes := limit(size)
	if middle == "" && size <= maxBytes {
		return excerpt{Head: start}
	}
	head := w.startWithin(start, maxBytes*2/3)
	afterHead := start[len(head):]
	if middle == "" {
		afterHead, end = "", afterHead // the tail is the end of what follows the head
	}
	tail := w.endWithin(end, maxBytes/3)
	beforeTail := end[:len(end)-len(tail)]
	return excerpt{Head: strings.TrimSuffix(head, "\n"), Hidden: describeOmitted(afterHead, middle, beforeTail), Tail: tail}
}

// startWithin returns the start of s that takes up to maxBytes of the page, in whole lines if possible.
func (w *weights) startWithin(s string, maxBytes int) string {
	n := 0
	for n < len(s) && maxBytes >= w[s[n]] {
		maxBytes -= w[s[n]]
		n++
	}
	return clip.StartLines(s, n)
}

// endWithin returns the end of s that takes up to maxBytes of the page, in whole lines if possible.
func (w *weights) endWithin(s string, maxBytes int) string {
	start := len(s)
	for start > 0 && maxBytes >= w[s[start-1]] {
		start--
		maxBytes -= w[s[start]]
	}
	return clip.EndLines(s, len(s)-start)
}

// describeOmitted returns how many bytes and lines are left out.
func describeOmitted(parts ...string) string {
	bytes, lines := 0, 0
	for _, s := range parts {
		bytes += len(s)
		lines += strings.Count(s, "\n")
	}
	size := transcript.GroupThousands(bytes) + " bytes not shown"
	if lines > 0 {
		return transcript.CountNoun(lines, "line") + ", " + size
	}
	return size
}

// weigh returns the size of s on the page in bytes.
func (w *weights) weigh(s string) int {
	bytes := 0
	for i := range len(s) {
		bytes += w[s[i]]
	}
	return bytes
}

// fieldUnits limits a short field, in UTF-16 units: a name, a path, the first line of a command.
const fieldUnits = 120

// Field returns a hostile text as a short part of a line.
func Field(s string) string {
	return markdown.Cut(strings.Join(strings.Fields(markdown.Show(markdown.Cut(s, 2*fieldUnits))), " "), fieldUnits)
}

// fileField returns a path as a field, or "" for no path.
func fileField(path string) string {
	if path == "" {
		return ""
	}
	return Field(markdown.FileName(path))
}

// shownText returns a text of a few sentences, cut to a number of UTF-16 units.
func shownText(s string, maxUnits int) string {
	return strings.TrimSpace(markdown.Show(markdown.Cut(s, maxUnits)))
}
