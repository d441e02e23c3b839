package opencode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/clip"
)

// replacement replaces the text old by new: at one place, or everywhere if all is true.
type replacement struct {
	old, new string
	all      bool
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// line is a line of a text without its ending.
type line struct {
	text     string
	from, to int // its position in the text, including its line end
}

const (
	byteOrderMark = "\uFEFF"
	crlf          = "\r\n"
)

// linesOf returns the lines of a text. A byte order mark is part of no line.
func linesOf(text string) []line {
	var all []line
	at := 0
	if strings.HasPrefix(text, byteOrderMark) {
		at = len(byteOrderMark)
	}
	for whole := range strings.Lines(text[at:]) {
		all = append(all, line{strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r"), at, at + len(whole)})
		at += len(whole)
	}
	return all
}

// apply returns the text of a file after the replacement. note describes tolerated differences, or is "". If the
// old text is not found, apply searches again with its backslash escapes replaced, as models often quote a text
// twice. The error is for the model.
func (r replacement) apply(text string) (newText, note string, err error) {
	if text == "" {
		return "", "", errors.New("the file is empty; give an empty oldString to fill it")
	}
	newText, note, err = r.replaceWithTolerance(text)
	unescaped := replacement{old: escapes.Replace(r.old), new: r.new}
	mayBeEscaped := unescaped.old != r.old && !r.all
	if !mayBeEscaped || !errors.Is(err, errNotThere) {
		return newText, note, err
	}
	note = "oldString was found with its backslashes taken for escapes"
	if slices.ContainsFunc(escapeSequences, func(s string) bool { return strings.Contains(r.old, s) && strings.Contains(r.new, s) }) {
		unescaped.new = escapes.Replace(r.new)
		note += ", and so were those of newString"
	}
	newText, moreNote, unescapedErr := unescaped.replaceWithTolerance(text)
	if errors.Is(unescapedErr, errNotThere) {
		return "", "", err
	}
	return newText, joinedNotes(note, moreNote), unescapedErr
}

// escapeSequences lists the escapes in a text that the model quoted twice. escapes replaces them by their characters.
var (
	escapeSequences = []string{`\\`, `\n`, `\t`, `\r`, `\'`, `\"`, "\\`", `\$`}
	escapes         = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\'`, "'", `\"`, `"`, "\\`", "`", `\$`, "$")
)

// joinedNotes returns the non-empty notes in one sentence.
func joinedNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// tolerances lists the ways to compare whole lines that ignore differences in blanks.
var tolerances = []find.Tolerance{find.TrimmedTrailing, find.Indented, find.TrimmedBothEnds, find.CollapsedSpaces}

// errNotThere reports that the old text is not in the file.
var errNotThere = errors.New("oldString is not in the file")

// replaceWithTolerance returns the text of a file after the replacement. It replaces exact matches, or if there
// are none, lines that differ only in blanks. note describes such differences.
func (r replacement) replaceWithTolerance(text string) (newText, note string, err error) {
	lines := newLines(text, r.old)
	places := r.exactMatches(text)
	isExact := len(places) > 0
	if !isExact {
		places, note = r.looseMatches(lines)
	}
	if len(places) == 0 {
		return "", "", r.notFoundError(text)
	}
	if err := r.checkPlaces(text, places); err != nil {
		return "", "", err
	}
	var indentation map[string]string
	switch {
	case !isExact:
		indentation = r.indentation(text, places)
	case !r.all:
		note = r.exactMatchNote(text, lines, places[0])
	}
	newText, insertNote, err := r.insert(text, places, indentation)
	return newText, joinedNotes(note, insertNote), err
}

// exactMatchNote returns a note on a probably wrong exact match: other places nearly match, or newString lacks
// indentation. It returns "" if neither is so.
func (r replacement) exactMatchNote(text string, lines wholeLines, match span) string {
	note := r.indentationNote(text, match)
	if strings.TrimSpace(r.old) == "" {
		return note
	}
	best, others := lines.text.Find(lines.block, 0, tolerances...)
	lineOfMatch := find.ID(strings.Count(text[:match.from], "\n") + 1)
	return joinedNotes(otherPlacesNote(append(best, others...), lineOfMatch), note)
}

// exactMatches returns the places that hold the old text byte for byte, apart from line ends, which the model does
// not see.
func (r replacement) exactMatches(text string) []span {
	old := strings.ReplaceAll(r.old, crlf, "\n")
	var all []span
	for _, variant := range slices.Compact([]string{old, strings.ReplaceAll(old, "\n", crlf)}) {
		all = append(all, r.occurrences(text, variant, len(variant))...)
	}
	if !strings.Contains(text, crlf) {
		return all
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	lastEnd := 0
	return slices.DeleteFunc(all, func(p span) bool {
		splitsLineEnd := text[p.from] == '\n' && p.from > 0 && text[p.from-1] == '\r'
		overlaps := p.from < lastEnd
		if splitsLineEnd || r.all && overlaps {
			return true
		}
		lastEnd = p.to
		return false
	})
}

// maxPlaces is the maximum number of places to replace at once. shownPlaces is the number of places that an error
// lists.
const (
	maxPlaces   = 1 << 20
	shownPlaces = 20
)

// occurrences returns the places of old in text, up to one more than may be replaced or shown. Two places are at least
// step bytes apart if all get replaced.
func (r replacement) occurrences(text, old string, step int) []span {
	limit := maxPlaces + 1
	if !r.all { // the places are only counted and listed, so they may overlap
		step, limit = 1, shownPlaces+1
	}
	var all []span
	for at := 0; at <= len(text) && len(all) < limit; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		all = append(all, span{at + i, at + i + len(old)})
		at += i + step
	}
	return all
}

// indentationNote returns a note if oldString begins behind the indentation of its first line, and the further
// lines of newString lack that indentation. Otherwise it returns "".
func (r replacement) indentationNote(text string, at span) string {
	lineStart := strings.LastIndexByte(text[:at.from], '\n') + 1
	indent := strings.TrimPrefix(text[lineStart:at.from], byteOrderMark)
	beginsInsideLine := strings.TrimSpace(indent) != ""
	_, furtherLines, _ := strings.Cut(r.new, "\n")
	furtherLines = strings.TrimLeft(furtherLines, "\r\n")
	if beginsInsideLine || strings.TrimSpace(furtherLines) == "" || strings.HasPrefix(furtherLines, indent) {
		return ""
	}
	return "oldString begins behind the indentation of its first line, and newString was put there as it is"
}

// wholeLines contains a file's lines, and a block of lines to search for in them.
type wholeLines struct {
	file  []line
	text  *find.Text
	block find.Block
}

// newLines returns the lines of a file's text, with the lines of old as the block. The block's margin is its
// smallest indentation.
func newLines(text, old string) wholeLines {
	w := wholeLines{file: linesOf(text), block: find.Block{Lines: lineTexts(linesOf(old))}}
	for i, l := range w.block.Lines {
		indent := indentOf(l)
		isSmaller := strings.TrimSpace(l) != "" && len(indent) < len(w.block.Margin)
		if i == 0 || isSmaller {
			w.block.Margin = indent
		}
	}
	w.text = find.NewSeeker(w.block.Lines).Text(len(w.file))
	for _, l := range w.file {
		w.text.Insert(0, l.text)
	}
	return w
}

func lineTexts(lines []line) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = l.text
	}
	return all
}

// otherPlacesNote returns a note that lists places, except the one at the line except. It returns "" for no others.
func otherPlacesNote(places []find.Place, except find.ID) string {
	var notes []string
	for _, place := range places {
		if place.FirstLine != except {
			notes = append(notes, fmt.Sprintf("line %d fits too, with %s", place.FirstLine, place.Tolerance))
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return strings.Join(notes, "; ") + "; make sure that the place is right"
}

// looseMatches returns the places where whole lines differ from the old text only in blanks, and a note for the
// model. It returns none for a block of blank lines, since that would match everywhere.
func (r replacement) looseMatches(w wholeLines) (places []span, note string) {
	fitting, others := w.text.Find(w.block, 0, tolerances...)
	if len(fitting) == 0 || strings.TrimSpace(r.old) == "" {
		return nil, ""
	}
	tolerance := fitting[0].Tolerance
	if r.all && tolerance == find.CollapsedSpaces { // too loose for many replacements
		return nil, ""
	}
	if r.all {
		fitting = w.findSeparate(fitting[0])
	}
	for _, place := range fitting {
		first := int(place.FirstLine) - 1
		last := w.file[first+len(w.block.Lines)-1]
		matched := span{w.file[first].from, last.from + len(last.text)}
		if strings.HasSuffix(r.old, "\n") {
			matched.to = last.to
		}
		places = append(places, matched)
	}
	if r.all {
		others = nil
	}
	return places, joinedNotes("oldString was found with "+tolerance.String(), otherPlacesNote(others, 0))
}

// findSeparate returns the place first and the places below it that match with the same tolerance. No two overlap.
func (w wholeLines) findSeparate(first find.Place) []find.Place {
	separate := []find.Place{first}
	for {
		last := separate[len(separate)-1]
		below, _ := w.text.Find(w.block, last.FirstLine+find.ID(len(w.block.Lines)), first.Tolerance)
		if len(below) == 0 {
			return separate
		}
		separate = append(separate, below[0])
	}
}

// indentOf returns the blanks at the start of a line.
func indentOf(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// checkPlaces returns an error if there are several places for a single replacement, or if the new text could be
// too long.
func (r replacement) checkPlaces(text string, places []span) error {
	maxNewSize := len(text) + len(places)*2*len(r.new) // new line ends and indentation may double the new text
	switch {
	case len(places) > 1 && !r.all:
		return fmt.Errorf("oldString stands at more than one place: %s; give more of the lines around the one that is meant, or set replaceAll to true for all of them",
			lineNumbers(text, places))
	case len(places) > maxPlaces || maxNewSize > 2*tree.MaxFileSize:
		return fmt.Errorf("oldString stands at %d places or more, too many to be replaced at once; use a command", len(places))
	}
	return nil
}

// lineNumbers lists the line numbers of places for a message. The places must be in order.
func lineNumbers(text string, places []span) string {
	var all []string
	number, at := 1, 0
	for _, p := range places {
		number += strings.Count(text[at:p.from], "\n")
		at = p.from
		all = append(all, fmt.Sprint(number))
	}
	return "lines " + clip.List(all, shownPlaces)
}

// indentation maps each indentation in the old text to the indentation of the same line in the file. It returns nil
// if all are equal, or if one corresponds to several.
func (r replacement) indentation(text string, places []span) map[string]string {
	fileIndents, differs := map[string]string{}, false
	oldLines := linesOf(r.old)
	for _, p := range places {
		for i, l := range linesOf(text[p.from:p.to]) {
			if strings.TrimSpace(l.text) == "" {
				continue
			}
			from, to := indentOf(oldLines[i].text), indentOf(l.text)
			if other, known := fileIndents[from]; known && other != to {
				return nil
			}
			fileIndents[from] = to
			differs = differs || from != to
		}
	}
	if !differs {
		return nil
	}
	return fileIndents
}

// insert returns the text with the new text at the places. It uses the file's line ends. fileIndents, the result of
// indentation, gives the new lines the file's indentation; nil leaves them unchanged.
func (r replacement) insert(text string, places []span, fileIndents map[string]string) (newText, note string, err error) {
	newLines := strings.ReplaceAll(r.new, crlf, "\n")
	if fileIndents != nil {
		newLines, note = reindent(newLines, fileIndents), "newString was indented as the lines that it replaces are"
	}
	var b strings.Builder
	at := 0
	for _, p := range places {
		inserted := withLineEnding(newLines, text, p)
		endsInUnendedLine := p.to == len(text) && text[p.to-1] != '\n'
		if endsInUnendedLine && strings.HasSuffix(r.old, "\n") {
			inserted = strings.TrimSuffix(inserted, "\n")
		}
		b.WriteString(text[at:p.from])
		b.WriteString(inserted)
		at = p.to
	}
	b.WriteString(text[at:])
	if b.String() == text {
		return "", "", errors.New("newString is what stands there already: nothing would change")
	}
	return b.String(), note, nil
}

// withLineEnding returns lines with the file's kind of line end: that of the next line end after the place, or
// else of the last one before it.
func withLineEnding(lines, text string, place span) string {
	lineEnd := strings.LastIndexByte(text[:place.from], '\n')
	if i := strings.IndexByte(text[place.from:], '\n'); i >= 0 {
		lineEnd = place.from + i
	}
	if lineEnd > 0 && text[lineEnd-1] == '\r' {
		return strings.ReplaceAll(lines, "\n", crlf)
	}
	return lines
}

// reindent returns lines with the longest known start of each indentation replaced by the file's.
func reindent(lines string, fileIndents map[string]string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		indent := indentOf(l)
		if strings.TrimSpace(l) == "" {
			b.WriteString(l)
			continue
		}
		for n := len(indent); n >= 0; n-- {
			if to, known := fileIndents[indent[:n]]; known {
				b.WriteString(to)
				l = l[n:]
				break
			}
		}
		b.WriteString(l)
	}
	return b.String()
}

// notFoundError returns the error for a missing old text. It shows the most similar lines of the file.
func (r replacement) notFoundError(text string) error {
	near, diff := v4a.Nearest(text, lineTexts(linesOf(r.old)))
	if near == 0 {
		return fmt.Errorf("%w, and nothing like it; read the file again", errNotThere)
	}
	return fmt.Errorf("%w\nnearest place: line %d (- in oldString, + in the file)\n%s", errNotThere, near, strings.TrimSuffix(diff, "\n"))
}
