package v4a

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

// align compares the lines that a hunk expects with lines of the file, with Unicode characters
// folded. In rows, Remove marks expected lines that the file does not have, Insert marks lines of
// the file. After the last expected line, rows has as many more lines of the file as expected lines
// were missing. first is the index of the first expected line that differs.
func align(want, have []string) (rows []Line, first int) {
	i, k, missing := 0, 0, 0
	first = -1
	for _, l := range AlignTexts(folded(want), folded(have)) {
		if first < 0 && (l.Kind == Remove || l.Kind == Insert && i < len(want)) {
			first = i
		}
		switch l.Kind {
		case Keep:
			l.Text, missing = have[k], 0
			i, k = i+1, k+1
		case Remove:
			l.Text = want[i]
			i, missing = i+1, missing+1
		case Insert:
			l.Text = have[k]
			if k++; i == len(want) {
				missing--
			}
		}
		if missing >= 0 {
			rows = append(rows, l)
		}
	}
	return rows, max(first, 0)
}

// folded returns the lines in the form in which the loosest comparison sees them.
func folded(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(find.FoldedUnicode.Normal(line) + "\n")
	}
	return b.String()
}

// render formats rows. It cuts long lines around the place where they differ from their
// counterpart.
func render(rows []Line) string {
	var b strings.Builder
	for from := 0; from < len(rows); {
		to := from + 1
		for rows[from].Kind != Keep && to < len(rows) && rows[to].Kind != Keep {
			to++
		}
		for i, at := range divergences(rows[from:to]) {
			b.WriteString(string(rows[from+i].Kind) + clipAround(rows[from+i].Text, at) + "\n")
		}
		from = to
	}
	return b.String()
}

// divergences returns, for each row, the position in bytes where it first differs from its
// counterpart. The first removed line is the counterpart of the first inserted one, and so on.
func divergences(rows []Line) []int {
	at := make([]int, len(rows))
	var wanted, there []int
	for i, r := range rows {
		switch r.Kind {
		case Remove:
			wanted = append(wanted, i)
		case Insert:
			there = append(there, i)
		}
	}
	for k := range min(len(wanted), len(there)) {
		w, t := wanted[k], there[k]
		at[w], at[t] = divergence(rows[w].Text, rows[t].Text)
	}
	return at
}

// sameLine reports whether two lines are equal in the loosest comparison.
func sameLine(a, b string) bool { return find.FoldedUnicode.Normal(a) == find.FoldedUnicode.Normal(b) }
