package v4a

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
)

// align compares a few lines: those that are wanted go, those that are there come,
// and those that are both stay. It returns the index of the first wanted line that is
// not there as well.
func align(want, have []string) (rows []Line, first int) {
	common := commonLines(want, have)
	first = -1
	i, k, missing := 0, 0, 0
	for i < len(want) {
		same := k < len(have) && sameLine(want[i], have[k])
		if !same && first < 0 {
			first = i
		}
		switch {
		case same:
			rows = append(rows, Line{Keep, have[k]})
			i, k, missing = i+1, k+1, 0
		case k < len(have) && common[i][k+1] > common[i+1][k]:
			rows = append(rows, Line{Insert, have[k]})
			k++
		default:
			rows = append(rows, Line{Remove, want[i]})
			i, missing = i+1, missing+1
		}
	}
	for _, line := range have[k:min(k+missing, len(have))] {
		rows = append(rows, Line{Insert, line})
	}
	return rows, max(first, 0)
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

// commonLines holds, for each pair of tails, how many lines they have in common
// in order.
func commonLines(want, have []string) [][]int {
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(have)+1)
	}
	for i := range slices.Backward(want) {
		for k := range slices.Backward(have) {
			if sameLine(want[i], have[k]) {
				common[i][k] = common[i+1][k+1] + 1
			} else {
				common[i][k] = max(common[i+1][k], common[i][k+1])
			}
		}
	}
	return common
}
