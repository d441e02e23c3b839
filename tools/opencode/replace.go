package opencode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
)

// replacement is a text in the place of another one.
type replacement struct {
	old, new string
	all      bool
}

// What is overlooked to find the old text, for the model. Nothing looser than this is tried.
const (
	trimmedNote  = "oldString was found with the space around its lines left aside"
	indentedNote = "oldString was found with its indentation left aside"
)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// line is a line of a text without its ending.
type line struct {
	text     string
	from, to int // where it stands, with its ending
}

const (
	byteOrderMark = "\uFEFF"
	crlf          = "\r\n"
)

// linesOf are the lines of a text. A byte order mark belongs to none.
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

// in replaces the text in a file. note says what was overlooked to find it; the error is for the
// model.
func (r replacement) in(text string) (now, note string, err error) {
	if text == "" {
		return "", "", errors.New("the file is empty; give an empty oldString to fill it")
	}
	if places := r.exactly(text); len(places) > 0 {
		if err := r.mayReplace(text, places); err != nil {
			return "", "", err
		}
		return r.put(text, places, nil)
	}
	places, note := r.trimmed(text), trimmedNote
	if len(places) == 0 {
		return "", "", r.unfit(text)
	}
	if len(places) > 1 && len(places) <= shownPlaces && !r.all {
		if alike := r.indented(text, places); len(alike) == 1 {
			places, note = alike, indentedNote
		}
	}
	if err := r.mayReplace(text, places); err != nil {
		return "", "", err
	}
	now, more, err := r.put(text, places, r.indentation(text, places))
	return now, note + more, err
}

// exactly finds the old text byte for byte, whichever line endings it has: they are not shown to
// the model.
func (r replacement) exactly(text string) []span {
	old := strings.ReplaceAll(r.old, crlf, "\n")
	var all []span
	for _, spelled := range slices.Compact([]string{old, strings.ReplaceAll(old, "\n", crlf)}) {
		all = append(all, r.occurrences(text, spelled, len(spelled))...)
	}
	if !strings.Contains(text, crlf) {
		return all
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	end := 0
	return slices.DeleteFunc(all, func(p span) bool {
		halved := text[p.from] == '\n' && p.from > 0 && text[p.from-1] == '\r'
		if halved || r.all && p.from < end {
			return true
		}
		end = p.to
		return false
	})
}

// mostPlaces are found of a text that is to be replaced all over, and shownPlaces of one that is
// meant at one place.
const (
	mostPlaces  = 1 << 20
	shownPlaces = 20
)

// occurrences finds a text. Where all of them are replaced each begins so many bytes behind the one
// before, or later; else one too many for that may lie across another.
func (r replacement) occurrences(text, old string, apart int) []span {
	most := mostPlaces + 1
	if !r.all {
		apart, most = 1, shownPlaces+1
	}
	var all []span
	for at := 0; at <= len(text) && len(all) < most; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		all = append(all, span{at + i, at + i + len(old)})
		at += i + apart
	}
	return all
}

// trimmed finds whole lines that are the same but for the space around each. Blank lines alone are
// alike everywhere, and not found.
func (r replacement) trimmed(text string) []span {
	file, want := linesOf(text), linesOf(r.old)
	have, sought := joined(file), joined(want)
	if strings.TrimSpace(sought) == "" {
		return nil
	}
	var places []span
	number, at := 0, 0 // of the line that is reached, and where it is in have
	for _, found := range r.occurrences(have, sought, len(sought)-1) {
		number += strings.Count(have[at:found.from], "\n")
		at = found.from
		last := file[number+len(want)-1]
		place := span{file[number].from, last.from + len(last.text)}
		if strings.HasSuffix(r.old, "\n") {
			place.to = last.to
		}
		places = append(places, place)
	}
	return places
}

// joined are lines without the space around each, between newlines.
func joined(lines []line) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, l := range lines {
		b.WriteString(strings.TrimSpace(l.text))
		b.WriteByte('\n')
	}
	return b.String()
}

// indented are those places of whole lines that are the same as the old ones once all are moved to
// the left as far as they go together.
func (r replacement) indented(text string, places []span) (alike []span) {
	want := outdented(linesOf(r.old))
	for _, p := range places {
		if slices.Equal(outdented(linesOf(text[p.from:p.to])), want) {
			alike = append(alike, p)
		}
	}
	return alike
}

func outdented(lines []line) []string {
	least := -1
	for _, l := range lines {
		if space := len(indentOf(l.text)); space < len(l.text) && (least < 0 || space < least) {
			least = space
		}
	}
	moved := make([]string, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l.text) != "" {
			moved[i] = l.text[min(max(least, 0), len(l.text)):]
		}
	}
	return moved
}

func indentOf(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// mayReplace refuses several places where one is meant, and a text that grows beyond bounds.
func (r replacement) mayReplace(text string, places []span) error {
	switch {
	case len(places) > 1 && !r.all:
		return fmt.Errorf("oldString stands at more than one place: %s; give more of the lines around the one that is meant, or set replaceAll to true for all of them",
			lineNumbers(text, places))
	case len(places) > mostPlaces || len(text)+len(places)*2*len(r.new) > 2*tree.MaxFileSize:
		return fmt.Errorf("oldString stands at %d places or more, too many to be replaced at once; use a command", len(places))
	}
	return nil
}

func lineNumbers(text string, places []span) string {
	var all []string
	number, at := 1, 0
	for _, p := range places[:min(len(places), shownPlaces)] {
		number += strings.Count(text[at:p.from], "\n")
		at = p.from
		all = append(all, fmt.Sprint(number))
	}
	if len(places) > shownPlaces {
		all = append(all, "…")
	}
	return "lines " + strings.Join(all, ", ")
}

// indentation is which one of the file stands in the place of each that the old text has; nil where
// that is none, or not the same all over.
func (r replacement) indentation(text string, places []span) map[string]string {
	moved, differs := map[string]string{}, false
	want := linesOf(r.old)
	for _, p := range places {
		for i, l := range linesOf(text[p.from:p.to]) {
			if strings.TrimSpace(l.text) == "" {
				continue
			}
			from, to := indentOf(want[i].text), indentOf(l.text)
			if other, known := moved[from]; known && other != to {
				return nil
			}
			moved[from], differs = to, differs || from != to
		}
	}
	if !differs {
		return nil
	}
	return moved
}

// put puts the new text in the places. Its lines end as those of the file do, and move with the
// lines that they replace.
func (r replacement) put(text string, places []span, moved map[string]string) (now, note string, err error) {
	next := strings.ReplaceAll(r.new, crlf, "\n")
	if moved != nil {
		next, note = movedBy(next, moved), "; newString was indented as the lines that it replaces are"
	}
	var b strings.Builder
	at := 0
	for _, p := range places {
		fits := ending(next, text, p)
		if p.to == len(text) && text[p.to-1] != '\n' && strings.HasSuffix(r.old, "\n") {
			fits = strings.TrimSuffix(fits, "\n") // the last line has no ending, and gets none
		}
		b.WriteString(text[at:p.from])
		b.WriteString(fits)
		at = p.to
	}
	b.WriteString(text[at:])
	if b.String() == text {
		return "", "", errors.New("newString is what stands there already: nothing would change")
	}
	return b.String(), note, nil
}

// ending gives lines the ending of the line that they come into.
func ending(lines, text string, at span) string {
	i := strings.IndexByte(text[at.from:], '\n')
	if i < 0 {
		i = strings.LastIndexByte(text[:at.from], '\n') - at.from
	}
	if end := at.from + i; end > 0 && text[end-1] == '\r' {
		return strings.ReplaceAll(lines, "\n", crlf)
	}
	return lines
}

// movedBy indents lines by what stands in the file for as much of their indentation as is known.
func movedBy(lines string, moved map[string]string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		indent := indentOf(l)
		if strings.TrimSpace(l) == "" {
			b.WriteString(l)
			continue
		}
		for n := len(indent); n >= 0; n-- {
			if to, known := moved[indent[:n]]; known {
				b.WriteString(to)
				l = l[n:]
				break
			}
		}
		b.WriteString(l)
	}
	return b.String()
}

// unfit says that the old text is not there, and what is most like it.
func (r replacement) unfit(text string) error {
	var want []string
	for _, l := range linesOf(r.old) {
		want = append(want, l.text)
	}
	words := "oldString is not in the file"
	near, diff := v4a.Nearest(text, want)
	if near == 0 {
		return errors.New(words + ", and nothing like it; read the file again")
	}
	return fmt.Errorf("%s\nnearest place: line %d (- in oldString, + in the file)\n%s", words, near, strings.TrimSuffix(diff, "\n"))
}
