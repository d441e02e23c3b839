package v4a

import (
	"bufio"
	"fmt"
	"strings"
)

// Diff is the difference between two texts.
type Diff struct {
	Added, Removed int // lines
	old, text      string
	ranges         []lineRange
}

// Compare returns the difference between two texts.
func Compare(old, text string) Diff {
	d := Diff{old: old, text: text, ranges: differingRanges(old, text)}
	for _, r := range d.ranges {
		d.Removed += countLines(d.old[r.oldFrom:r.oldTo])
		d.Added += countLines(d.text[r.newFrom:r.newTo])
	}
	return d
}

func (d Diff) Empty() bool { return len(d.ranges) == 0 }

// Similarity returns how much of the larger text both texts have in common, in percent.
func (d Diff) Similarity() int {
	largerSize := max(len(d.old), len(d.text))
	if largerSize == 0 {
		return 100
	}
	kept := len(d.old)
	for _, r := range d.ranges {
		kept -= r.oldTo - r.oldFrom
	}
	return kept * 100 / largerSize
}

// Texts returns all removed lines and all added lines, each as one text.
func (d Diff) Texts() (old, now string) {
	var before, after strings.Builder
	for _, r := range d.ranges {
		before.WriteString(d.old[r.oldFrom:r.oldTo])
		after.WriteString(d.text[r.newFrom:r.newTo])
	}
	return before.String(), after.String()
}

// WriteHunks writes the hunks of a unified diff. w remembers the first error, which Flush returns.
func (d Diff) WriteHunks(w *bufio.Writer) {
	h := &hunkWriter{Writer: w, old: d.old, text: d.text, startLine: 1}
	for rest := d.ranges; len(rest) > 0; {
		n := countNeighbours(d.old, rest)
		h.writeHunk(rest[:n])
		rest = rest[n:]
	}
}

// contextLines is the number of unchanged lines around a difference.
const contextLines = 3

// countNeighbours returns how many of the first ranges are so close that they share a hunk.
func countNeighbours(old string, ranges []lineRange) int {
	n := 1
	for n < len(ranges) && countLines(old[ranges[n-1].oldTo:ranges[n].oldFrom]) <= 2*contextLines {
		n++
	}
	return n
}

// hunkWriter writes hunks in order and keeps count of lines.
type hunkWriter struct {
	*bufio.Writer
	old, text            string
	hunkStart, startLine int // start of the last hunk in the old text: its byte and its line
	addedSoFar           int // lines that the new text has more than the old one so far
}

// writeHunk writes ranges that are close to each other as one hunk, with context around them.
func (h *hunkWriter) writeHunk(ranges []lineRange) {
	start := contextBefore(h.old, ranges[0].oldFrom)
	end := contextAfter(h.old, ranges[len(ranges)-1].oldTo)
	h.startLine += strings.Count(h.old[h.hunkStart:start], "\n")
	h.hunkStart = start
	removed := countLines(h.old[start:end])
	added := removed
	for _, r := range ranges {
		added += countLines(h.text[r.newFrom:r.newTo]) - countLines(h.old[r.oldFrom:r.oldTo])
	}
	fmt.Fprintf(h, "@@ -%s +%s @@\n", rangeHeader(h.startLine, removed), rangeHeader(h.startLine+h.addedSoFar, added))
	h.addedSoFar += added - removed
	for _, r := range ranges {
		h.writeLines(" ", h.old[start:r.oldFrom])
		h.writeLines("-", h.old[r.oldFrom:r.oldTo])
		h.writeLines("+", h.text[r.newFrom:r.newTo])
		start = r.oldTo
	}
	h.writeLines(" ", h.old[start:end])
}

// rangeHeader formats a range of lines for a hunk's header. An empty range has the number of the line
// before it.
func rangeHeader(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// writeLines writes each line of text with a prefix.
func (h *hunkWriter) writeLines(prefix, text string) {
	for line := range strings.Lines(text) {
		h.WriteString(prefix)
		h.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			h.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// contextBefore returns the start of the context above a line.
func contextBefore(text string, at int) int {
	for range contextLines {
		at -= len(lastLineOf(text[:at]))
	}
	return at
}

// contextAfter returns the end of the context below a line.
func contextAfter(text string, at int) int {
	for range contextLines {
		at += len(firstLine(text[at:]))
	}
	return at
}

// firstLine returns the first line with its LF, if it has one.
func firstLine(text string) string {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// lastLineOf returns the last line with its LF, if it has one.
func lastLineOf(text string) string {
	return text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
}

// countLines returns the number of lines. A last line without LF counts.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
