package v4a

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

// alignWithFile compares the lines that a hunk expects with lines of the file, with Unicode characters
// folded. In rows, Remove marks expected lines that the file does not have, Insert marks lines of
// the file. After the last expected line, rows has as many more lines of the file as expected lines
// were missing. firstDifference is the index of the first expected line that differs.
func alignWithFile(want, have []string) (rows []Line, firstDifference int) {
	wanted, inFile, missing := 0, 0, 0
	firstDifference = -1
	for _, l := range AlignTexts(foldLines(want), foldLines(have)) {
		isPastWanted := wanted == len(want) // only lines of the file follow
		if firstDifference < 0 && l.Kind != Keep && !isPastWanted {
			firstDifference = wanted
		}
		switch l.Kind {
		case Keep:
			l.Text, missing = have[inFile], 0
			wanted, inFile = wanted+1, inFile+1
		case Remove:
			l.Text = want[wanted]
			wanted, missing = wanted+1, missing+1
		case Insert:
			l.Text = have[inFile]
			inFile++
			if isPastWanted {
				missing--
			}
		}
		if missing >= 0 { // below 0, enough further lines of the file are in rows
			rows = append(rows, l)
		}
	}
	return rows, max(firstDifference, 0)
}

// foldLines returns the lines in the form in which the loosest comparison sees them.
func foldLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(find.FoldedUnicode.Normal(line) + "\n")
	}
	return b.String()
}

// formatRows formats rows. It cuts long lines around the place where they differ from their
// counterpart.
func formatRows(rows []Line) string {
	var b strings.Builder
	for from := 0; from < len(rows); {
		to := from + 1
		for rows[from].Kind != Keep && to < len(rows) && rows[to].Kind != Keep {
			to++
		}
		// the rows are a kept line, or a whole difference
		for i, at := range divergencePositions(rows[from:to]) {
			b.WriteString(string(rows[from+i].Kind) + clipAround(rows[from+i].Text, at) + "\n")
		}
		from = to
	}
	return b.String()
}

// divergencePositions returns, for each row, the position in bytes where it first differs from its
// counterpart. The first removed line is the counterpart of the first inserted one, and so on.
func divergencePositions(rows []Line) []int {
	positions := make([]int, len(rows))
	var removed, inserted []int
	for i, r := range rows {
		switch r.Kind {
		case Remove:
			removed = append(removed, i)
		case Insert:
			inserted = append(inserted, i)
		}
	}
	for k := range min(len(removed), len(inserted)) {
		w, t := removed[k], inserted[k]
		positions[w], positions[t] = firstDifference(rows[w].Text, rows[t].Text)
	}
	return positions
}

// sameLine reports whether two lines are equal in the loosest comparison.
func sameLine(a, b string) bool { return find.FoldedUnicode.Normal(a) == find.FoldedUnicode.Normal(b) }
