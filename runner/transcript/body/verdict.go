package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Verdict returns one line about a change: its checks and tests, what it cost and how long it
// took. It is empty for a run without a change. doubts says that there are other reasons not
// to merge it as it is.
func Verdict(v *transcript.View, doubts bool) string {
	if v.Change == nil || len(v.Change.Files) == 0 {
		return ""
	}
	words, spent := verdictOnChecks(v.Verify), wholeSeconds(took(v))
	if cost, known := transcript.CostOf(v.AllModels()); known {
		spent = dollars(cost) + ", " + spent
	}
	switch {
	case strings.HasPrefix(words, bad):
		return words + ": do not merge (" + spent + ")\n"
	case doubts && strings.HasPrefix(words, good):
		return neither + strings.TrimPrefix(words, good) + ", but read the warnings before you merge (" + spent + ")\n"
	}
	return words + ", " + spent + "\n"
}

// verdictOnChecks returns the sign and the words for the checks and tests of a change.
func verdictOnChecks(table *transcript.Verify) string {
	if table == nil || len(table.Rows) == 0 {
		return neither + "no check ran"
	}
	if table.Attempt == 0 {
		return neither + "the checks did not run on the change"
	}
	var red, before, notRun []string
	passed, refused := 0, false
	for _, row := range table.Rows {
		refused = refused || !row.Passed
		switch {
		case row.NotRun == transcript.NotConcerned:
		case row.After == "": // a check that it needs did not pass
			notRun = append(notRun, row.Name)
		case !row.Passed:
			red = append(red, row.Name)
		case transcript.Good(row.After, row.Flaky):
			passed++
		default:
			before = append(before, row.Name)
		}
	}
	sign, parts := good, []string(nil)
	add := func(part string) { parts = append(parts, part) }
	switch {
	case len(red) > 0:
		return bad + named(red) + " " + agree(len(red), "fail")
	case refused:
		return bad + named(notRun) + " did not run"
	case passed > 0:
		add(transcript.Count(passed, "check") + " " + agree(passed, "pass"))
	}
	if len(before) > 0 {
		sign = neither
		add(named(before) + " " + agree(len(before), "fail") + " as before")
	}
	if len(notRun) > 0 {
		sign = neither
		add(named(notRun) + " did not run")
	}
	if len(parts) == 0 {
		sign = neither
		add("no check concerns the change")
	}
	proven, doubtful := proofCounts(table)
	if proven > 0 {
		add(transcript.Count(proven, "test") + " proven")
	}
	if doubtful > 0 {
		sign = neither
		add(transcript.Count(doubtful, "test file") + " not proven")
	}
	old, scripts := table.CountOldTests()
	if old > 0 {
		sign = neither
		add(transcript.Count(old, "existing test") + " deleted or failing")
	}
	if scripts > 0 {
		sign = neither
		add(transcript.Count(scripts, "file") + " of the checks changed to pass")
	}
	return sign + strings.Join(parts, ", ")
}

// proofCounts returns how many tests of the change are proven, and how many of its test files
// are not.
func proofCounts(table *transcript.Verify) (proven, doubtful int) {
	for _, p := range table.Proofs() {
		if p.Class == transcript.Proven {
			proven += max(1, len(p.Tests))
		} else {
			doubtful++
		}
	}
	return proven, doubtful + table.MoreProofs()
}

// named are checks by their names, the first few of them.
func named(checks []string) string {
	const most, width = 5, 60
	var names []string
	for _, name := range checks[:min(len(checks), most)] {
		names = append(names, markdown.Code(markdown.Cut(name, width)))
	}
	words := "check " + strings.Join(names, ", ")
	if len(checks) > 1 {
		words = "checks " + strings.Join(names, ", ")
	}
	if rest := len(checks) - most; rest > 0 {
		words += fmt.Sprintf(" and %d more", rest)
	}
	return words
}

// agree is a verb in the number of its subject.
func agree(subjects int, verb string) string {
	switch {
	case subjects != 1:
		return verb
	case strings.HasSuffix(verb, "s"):
		return verb + "es"
	}
	return verb + "s"
}

// dollars is a cost as people say it: in cents, and what is less than one exactly.
func dollars(cost float64) string {
	if cost < 0.01 {
		return fmt.Sprintf("$%.4f", cost)
	}
	return fmt.Sprintf("$%.2f", cost)
}

// wholeSeconds is a duration without a part of a second.
func wholeSeconds(seconds float64) string {
	if seconds < 59.5 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return transcript.Duration(seconds)
}

// took is how many seconds the run took so far.
func took(v *transcript.View) float64 {
	if v.Finished != nil {
		return v.Finished.Seconds
	}
	return (v.Lived + max(0, v.Until.Sub(v.Since))).Seconds()
}
