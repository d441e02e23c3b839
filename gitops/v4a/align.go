package v4a

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

// align compares the lines that a hunk wants with those of the file, folded. In rows, wanted lines are
// removed ones, lines of the file are added ones, and common lines stay. Behind the last wanted line it
// shows as many lines of the file as are missing. first is the index of the first wanted line that differs.
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

func folded(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(find.FoldedUnicode.Normal(line) + "\n")
	}
	return b.String()
}

// render formats rows. It shortens long lines around their difference from the other side.
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

// divergences returns for each row the position of its first difference from its counterpart.
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

func sameLine(a, b string) bool { return find.FoldedUnicode.Normal(a) == find.FoldedUnicode.Normal(b) }
