package v4a_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/must"

	"pgregory.net/rapid"
)

// edited is a file and an edit of it, line by line.
type edited struct {
	before string
	lines  []editedLine
}

type editedLine struct {
	kind         byte // ' ', '-' or '+'
	text, ending string
}

var fileLine = regexp.MustCompile(`[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+`)

// newEdited reads an edit off bytes: what becomes of each line of a text, and
// what comes in between.
func newEdited(text string, decisions []byte, added []string) edited {
	e := edited{before: text}
	next := func() byte {
		if len(decisions) == 0 {
			return 0
		}
		d := decisions[0]
		decisions = decisions[1:]
		return d
	}
	insert := func(d byte) {
		if d%4 == 3 && len(added) > 0 {
			e.lines = append(e.lines, editedLine{'+', added[int(d/4)%len(added)], ""})
		}
	}
	for _, line := range fileLine.FindAllString(text, -1) {
		insert(next())
		body := strings.TrimRight(line, "\r\n")
		kind := byte(' ')
		if next()%4 == 3 {
			kind = '-'
		}
		e.lines = append(e.lines, editedLine{kind, body, line[len(body):]})
	}
	insert(next())
	return e
}

// after is what the edit makes of the file: new lines get the file's first
// ending, and so does a last line that has none, if something comes below it.
func (e edited) after() string {
	own := "\n"
	for _, l := range e.lines {
		if l.ending != "" {
			own = l.ending
			break
		}
	}
	var b strings.Builder
	for i, l := range e.lines {
		if l.kind == '-' {
			continue
		}
		b.WriteString(l.text)
		if l.kind == '+' {
			l.ending = e.replacedEnding(i)
		}
		if l.ending == "" && i < len(e.lines)-1 || l.kind == '+' && (l.ending == "" || l.ending == "\r" || own == "\r") {
			l.ending = own
		}
		b.WriteString(l.ending)
	}
	return b.String()
}

// replacedEnding returns the ending of the removed line that an added line replaces. Added lines
// beyond those removed get the ending of the last one.
func (e edited) replacedEnding(i int) string {
	from, to := i, i
	for from > 0 && e.lines[from-1].kind != ' ' {
		from--
	}
	for to < len(e.lines) && e.lines[to].kind != ' ' {
		to++
	}
	ending, nth := "", 0
	for _, l := range e.lines[from:i] {
		if l.kind == '+' {
			nth++
		}
	}
	for _, l := range e.lines[from:to] {
		if l.kind == '-' && nth >= 0 {
			ending = l.ending
			nth--
		}
	}
	return ending
}

// style says in which ways a patch is written.
type style byte

const (
	withContexts  style = 1 << iota // "@@" lines where a line above is like no other
	withEndOfFile                   // markers where they may stand
	withBlanks                      // behind lines that stay
	withMark                        // a byte order mark, in the file alone
	withMove
	styles
)

// hunks writes the edit as a patch would. Each hunk has the context that it
// needs to be found, at most what lies above it up to the hunk before: clear says
// whether that was enough.
func (e edited) hunks(s style) (text string, clear bool) {
	var b strings.Builder
	clear = true
	blanks := ""
	if s&withBlanks != 0 && !e.hasBlanks() {
		blanks = "  "
	}
	for from := 0; from < len(e.lines); {
		first := e.nextChange(from)
		if first == len(e.lines) {
			break
		}
		end := e.endOfChanges(first)
		start := first
		for start > from && !e.unique(from, start, end) {
			start--
		}
		clear = clear && e.unique(from, start, end)
		b.WriteString("@@" + e.context(s, from, start) + "\n")
		for _, l := range e.lines[start:end] {
			b.WriteByte(l.kind)
			b.WriteString(l.text)
			if l.kind == ' ' {
				b.WriteString(blanks)
			}
			b.WriteByte('\n')
		}
		if s&withEndOfFile != 0 && end == len(e.lines) {
			b.WriteString("*** End of File\n")
		}
		from = end
	}
	return b.String(), clear
}

// context names the first line above a hunk that is like no other, if any.
func (e edited) context(s style, from, start int) string {
	for i := from; i < start && s&withContexts != 0; i++ {
		text := e.lines[i].text
		if e.lines[i].kind != '+' && text != "" && text == strings.TrimSpace(text) && e.unique(from, i, i+1) {
			return " " + text
		}
	}
	return ""
}

// hasBlanks reports whether any line of the file ends in blanks.
func (e edited) hasBlanks() bool {
	return slices.ContainsFunc(e.lines, func(l editedLine) bool {
		return l.kind != '+' && strings.TrimRightFunc(l.text, unicode.IsSpace) != l.text
	})
}

func (e edited) nextChange(from int) int {
	for from < len(e.lines) && e.lines[from].kind == ' ' {
		from++
	}
	return from
}

// endOfChanges returns the end of a run of changes, with a line that stays when
// no line of the run was in the file.
func (e edited) endOfChanges(from int) int {
	end, old := from, false
	for end < len(e.lines) && e.lines[end].kind != ' ' {
		old = old || e.lines[end].kind == '-'
		end++
	}
	for !old && end < len(e.lines) {
		old = e.lines[end].kind != '+'
		end++
	}
	return end
}

// unique reports whether the old lines of a hunk occur where it is and not below.
func (e edited) unique(from, start, end int) bool {
	want, have := e.old(start, end), e.old(from, len(e.lines))
	at := len(e.old(from, start))
	return len(want) > 0 && strings.Index(have, want) == at && strings.LastIndex(have, want) == at
}

func (e edited) old(from, to int) string {
	var b strings.Builder
	for _, l := range e.lines[from:to] {
		if l.kind != '+' {
			b.WriteString("\x00" + l.text + "\n")
		}
	}
	return b.String()
}

func (e edited) check(t rapid.TB, s style) {
	t.Helper()
	hunks, clear := e.hunks(s)
	if hunks == "" {
		return
	}
	before, want, header, moveTo := e.before, e.after(), "*** Update File: f\n", ""
	if s&withMark != 0 {
		before, want = "\ufeff"+before, "\ufeff"+want
	}
	if s&withMove != 0 {
		moveTo = "g"
		header += "*** Move to: g\n"
	}
	patch := parsed(t, header+hunks)
	got, err := text(before, patch)
	if err != nil && !clear {
		return
	}
	must.Do(t, err, e.before, hunks)
	must.Same(t, moveTo, patch[0].MoveTo, e.before, hunks)
	if clear {
		must.Same(t, want, got, e.before, hunks)
	}
}

// FuzzRoundTrip applies a patch that is made from a file and an edit of it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a\nb\nc\n", []byte{0, 3, 3, 0}, "x\ny", byte(0))
	f.Add("a\r\nb\r\na\r\nb", []byte{3, 0, 0, 3, 7, 0}, "", byte(withMark|withMove))
	f.Add("x\rx\rx\n\n\n", []byte{0, 0, 0, 3, 0, 0, 3, 3, 3, 0, 3}, "x\n", byte(withEndOfFile))
	f.Add("a\nb\nc\nb\n", []byte{0, 0, 0, 0, 0, 0, 3, 3, 0}, "x", byte(withContexts|withBlanks))
	f.Add("", []byte{3}, "x", byte(withMark))
	f.Fuzz(func(t *testing.T, text string, decisions []byte, added string, s byte) {
		if strings.ContainsAny(added, "\r") || strings.Contains(text+added, "\ufeff") || strings.Contains(text, "\x00") {
			t.Skip("a patch cannot say this")
		}
		newEdited(text, decisions, strings.Split(added, "\n")).check(t, style(s))
	})
}

// Few different lines make for many places that look alike.
func TestRepeatedLinesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SampledFrom([][]string{{"", "a", "b", " a", "a "}, {"", "a", "b", " a", "c", "d"}}).Draw(t, "few")
		lines := rapid.SliceOf(rapid.SampledFrom(few)).Draw(t, "lines")
		ending := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "ending")
		text := strings.Join(lines, ending) + rapid.SampledFrom([]string{"", ending}).Draw(t, "last")
		decisions := rapid.SliceOfN(rapid.Byte(), 0, 2*len(lines)+2).Draw(t, "decisions")
		newEdited(text, decisions, []string{"", "a", "c"}).check(t, rapid.Custom(drawStyle).Draw(t, "style"))
	})
}

func drawStyle(t *rapid.T) style { return style(rapid.ByteMax(byte(styles-1)).Draw(t, "style")) }
