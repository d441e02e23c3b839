package audit

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
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
	// shownLines and shownLineBytes are how many lines of a difference are shown, and
	// bytes of one.
	shownLines     = 200
	shownLineBytes = 2000
)

// Diff returns the differing lines as a unified diff with header. Lines that differ only in volatile
// parts appear as recorded.
func (d Difference) Diff() string {
	var s strings.Builder
	s.WriteString("--- recorded\n+++ replayed\n")
	recorded, replayed := strings.Split(d.Recorded, "\n"), strings.Split(d.Replayed, "\n")
	lines := v4a.AlignTexts(withFinalNewline(d.comparable(d.Recorded)), withFinalNewline(d.comparable(d.Replayed)))
	shown := linesToShow(lines)
	var oldLine, newLine, written int
	for i, l := range lines {
		if shown[i] && (i == 0 || !shown[i-1]) {
			fmt.Fprintf(&s, "@@ -%d +%d @@\n", oldLine+1, newLine+1)
		}
		text := ""
		if l.Kind != v4a.Remove {
			text = replayed[newLine]
			newLine++
		}
		if l.Kind != v4a.Insert {
			text = recorded[oldLine]
			oldLine++
		}
		if shown[i] && written < shownLines {
			fmt.Fprintf(&s, "%c%s\n", l.Kind, clip.Bytes(text, shownLineBytes))
		}
		if shown[i] {
			written++
		}
	}
	if written > shownLines {
		fmt.Fprintf(&s, "… %d more lines\n", written-shownLines)
	}
	return s.String()
}

// withFinalNewline adds a newline to a text that does not end in one. The text "" stays empty.
func withFinalNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// linesToShow reports for each line whether it differs or is next to one that does.
func linesToShow(lines []v4a.Line) []bool {
	shown := make([]bool, len(lines))
	for i, l := range lines {
		if l.Kind == v4a.Keep {
			continue
		}
		for neighbour := max(i-contextLines, 0); neighbour <= min(i+contextLines, len(lines)-1); neighbour++ {
			shown[neighbour] = true
		}
	}
	return shown
}
