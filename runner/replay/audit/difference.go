package audit

import (
	"fmt"
	"strings"
	"time"

	linediff "github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Difference is a contradiction between a replay and its run, or inside a record.
type Difference struct {
	Subject        string // "call 3 (exec_command)"
	Recorded       string
	Replayed       string
	ignoreVolatile bool // differences in volatile text are ignored
}

type Differences []Difference

// addUnlessEqual adds a difference unless both texts are equal.
func (d *Differences) addUnlessEqual(subject, recorded, replayed string) {
	d.addDifference(Difference{Subject: subject, Recorded: recorded, Replayed: replayed})
}

// addDifference adds a difference unless its texts are comparably equal.
func (d *Differences) addDifference(found Difference) {
	if found.comparable(found.Recorded) != found.comparable(found.Replayed) {
		*d = append(*d, found)
	}
}

// comparable returns a text for comparison, with volatile parts masked if they are to be ignored.
func (d Difference) comparable(text string) string {
	if !d.ignoreVolatile {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = maskVolatile(line)
	}
	return strings.Join(lines, "\n")
}

const (
	contextLines = 3
	diffTimeout  = 5 * time.Second
	// shownLines and shownLineBytes are how many lines of a difference are shown, and
	// bytes of one.
	shownLines     = 200
	shownLineBytes = 2000
)

// diffLine is a line of a difference, old or new.
type diffLine struct {
	sign byte // ' ', '-' or '+'
	text string
}

// Diff returns the differing lines as a unified diff with header. Lines that differ only in volatile
// parts appear as recorded.
func (d Difference) Diff() string {
	var s strings.Builder
	s.WriteString("--- recorded\n+++ replayed\n")
	lines := d.diffLines()
	shown := linesToShow(lines)
	var oldLine, newLine, written int
	for i, l := range lines {
		if shown[i] && (i == 0 || !shown[i-1]) {
			fmt.Fprintf(&s, "@@ -%d +%d @@\n", oldLine+1, newLine+1)
		}
		if shown[i] && written < shownLines {
			fmt.Fprintf(&s, "%c%s\n", l.sign, clip.Bytes(l.text, shownLineBytes))
		}
		if shown[i] {
			written++
		}
		if l.sign != '+' {
			oldLine++
		}
		if l.sign != '-' {
			newLine++
		}
	}
	if written > shownLines {
		fmt.Fprintf(&s, "… %d more lines\n", written-shownLines)
	}
	return s.String()
}

// diffLines returns the lines of both texts, in the order of a diff.
func (d Difference) diffLines() (found []diffLine) {
	recorded, replayed := splitLines(d.Recorded), splitLines(d.Replayed)
	for _, part := range linediff.DoWithTimeout(withFinalNewline(d.comparable(d.Recorded)), withFinalNewline(d.comparable(d.Replayed)), diffTimeout) {
		n := strings.Count(part.Text, "\n")
		switch part.Type {
		case diffmatchpatch.DiffEqual:
			found = appendLines(found, ' ', recorded[:n])
			recorded, replayed = recorded[n:], replayed[n:]
		case diffmatchpatch.DiffDelete:
			found = appendLines(found, '-', recorded[:n])
			recorded = recorded[n:]
		case diffmatchpatch.DiffInsert:
			found = appendLines(found, '+', replayed[:n])
			replayed = replayed[n:]
		}
	}
	return found
}

// appendLines appends texts as lines with one sign.
func appendLines(to []diffLine, sign byte, texts []string) []diffLine {
	for _, text := range texts {
		to = append(to, diffLine{sign, text})
	}
	return to
}

// withFinalNewline adds a newline to a text that does not end in one. The text "" stays empty.
func withFinalNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// splitLines returns the lines of a text, or nil for "".
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(withFinalNewline(text), "\n"), "\n")
}

// linesToShow reports for each line whether it differs or is next to one that does.
func linesToShow(lines []diffLine) []bool {
	shown := make([]bool, len(lines))
	for i, l := range lines {
		if l.sign == ' ' {
			continue
		}
		for neighbour := max(i-contextLines, 0); neighbour <= min(i+contextLines, len(lines)-1); neighbour++ {
			shown[neighbour] = true
		}
	}
	return shown
}
