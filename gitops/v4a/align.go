package v4a

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

// align compares a few lines: those that are wanted go, those that are there come,
// and those that are both stay. It returns the index of the first wanted line that is
// not there as well. Of what is there at the end it has as many lines as are missing.
func align(want, have []string) (rows []Line, first int) {
	i, k, missing := 0, 0, 0
	first = -1
	for _, l := range Compared(folded(want), folded(have)) {
		if l.Kind == Remove && first < 0 || l.Kind == Insert && first < 0 && i < len(want) {
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
		b.WriteString(find.Folded.Normal(line) + "\n")
	}
	return b.String()
}

// render writes rows. Of long lines it shows where they differ from the ones
// that stand in their place on the other side.
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

// divergences pairs the wanted lines of a run with the ones that are there and
// returns for each row from where on it matters.
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

func sameLine(a, b string) bool { return find.Folded.Normal(a) == find.Folded.Normal(b) }
