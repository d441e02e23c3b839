package sections

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Doubt tells whether there are other reasons against a merge than the checks.
type Doubt bool

// NoDoubt means that only the checks count.
const NoDoubt Doubt = false

// Verdict returns the verdict on a change in one line: checks, tests, cost and time. It is empty
// without a change.
func Verdict(v *transcript.View, doubt Doubt) (tone document.Tone, line document.Text) {
	if v.Change.Empty() {
		return document.Neutral, nil
	}
	tone, line = verdictOnChecks(v.Verify)
	spent := document.Words(wholeSeconds(runSeconds(v)))
	if cost, known := transcript.CostOf(v.AllModels()); known {
		spent = document.Join(", ", document.Text{{Text: dollars(cost), Style: document.Amount}}, spent)
	}
	switch {
	case tone == document.Bad:
		return tone, document.Format("%s: do not merge (%s)", line, spent)
	case bool(doubt) && tone == document.Good:
		return document.Doubtful, document.Format("%s, but read the warnings before you merge (%s)", line, spent)
	}
	return tone, document.Join(", ", line, spent)
}

// verdictOnChecks returns the tone and words for the checks and tests of a change.
func verdictOnChecks(table *transcript.Verify) (document.Tone, document.Text) {
	if table == nil || len(table.Rows) == 0 {
		return document.Doubtful, document.Words("no check ran")
	}
	if table.Attempt == 0 {
		return document.Doubtful, document.Words("the checks did not run on the change")
	}
	var red, failedBefore []string
	passed := 0
	for _, row := range table.Rows {
		if row.NotRun == transcript.NotConcerned {
			continue
		}
		switch {
		case !row.Passed:
			red = append(red, row.Name)
		case transcript.CountsAsGreen(row.After, row.Flaky):
			passed++
		default:
			failedBefore = append(failedBefore, row.Name)
		}
	}
	if len(red) > 0 {
		return document.Bad, namesWithResult(red, verbFor(len(red), "fail"))
	}
	return verdictWithoutFailures(table, passed, failedBefore)
}

// verdictWithoutFailures returns the tone and words if no check fails because of the change. passed
// counts the green checks, and failedBefore names those that failed before, too.
func verdictWithoutFailures(table *transcript.Verify, passed int, failedBefore []string) (document.Tone, document.Text) {
	var parts []document.Text
	tone := document.Good
	add := func(condition bool, partTone document.Tone, part document.Text) {
		if condition {
			parts, tone = append(parts, part), max(tone, partTone)
		}
	}
	add(passed > 0, document.Good, document.Words(transcript.CountNoun(passed, "check")+" "+verbFor(passed, "pass")))
	add(len(failedBefore) > 0, document.Doubtful, namesWithResult(failedBefore, verbFor(len(failedBefore), "fail")+" as before"))
	add(len(parts) == 0, document.Doubtful, document.Words("no check concerns the change"))
	proven, unproven := proofCounts(table)
	add(proven > 0, document.Good, document.Words(transcript.CountNoun(proven, "test")+" proven"))
	add(unproven > 0, document.Doubtful, document.Words(transcript.CountNoun(unproven, "test file")+" not proven"))
	old, scripts := table.CountBrokenOldTests()
	add(old > 0, document.Doubtful, document.Words(transcript.CountNoun(old, "existing test")+" deleted or failing"))
	add(scripts > 0, document.Doubtful, document.Words(transcript.CountNoun(scripts, "file")+" of the checks changed to pass"))
	return tone, document.Join(", ", parts...)
}

// proofCounts returns how many tests of the change are proven, and how many of its test files are
// not proven. A proven file whose tests have no names counts as one test. A file that is missing in the table,
// because there are too many, counts as not proven.
func proofCounts(table *transcript.Verify) (provenTests, unprovenFiles int) {
	for _, p := range table.BestProofs() {
		if p.Class == transcript.Proven {
			provenTests += max(1, len(p.Tests))
		} else {
			unprovenFiles++
		}
	}
	return provenTests, unprovenFiles + table.UnlistedProofs()
}

// namesWithResult returns the names of the first few checks, followed by their common result.
func namesWithResult(checks []string, result string) document.Text {
	const maxNames, width = 5, 60
	var names []document.Text
	for _, name := range checks[:min(len(checks), maxNames)] {
		names = append(names, document.Mono(markdown.Cut(name, width)))
	}
	words := "check "
	if len(checks) > 1 {
		words = "checks "
	}
	rest := ""
	if n := len(checks) - maxNames; n > 0 {
		rest = fmt.Sprintf(" and %d more", n)
	}
	return document.Format("%s%s%s %s", words, document.Join(", ", names...), rest, result)
}

// verbFor returns a verb in the form for a number of subjects.
func verbFor(subjects int, verb string) string {
	switch {
	case subjects != 1:
		return verb
	case strings.HasSuffix(verb, "s"):
		return verb + "es"
	}
	return verb + "s"
}

// dollars returns a cost in cents, or with four digits if it is below one cent.
func dollars(cost float64) string {
	if cost < 0.01 {
		return fmt.Sprintf("$%.4f", cost)
	}
	return fmt.Sprintf("$%.2f", cost)
}

// wholeSeconds returns a duration without fractions of a second.
func wholeSeconds(seconds float64) string {
	if seconds < 59.5 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return transcript.FormatSeconds(seconds)
}

// runSeconds returns how long the run lived, or has lived so far.
func runSeconds(v *transcript.View) float64 {
	if v.Finished != nil {
		return v.Finished.Seconds
	}
	return (v.EarlierLifetime + max(0, v.LastEventAt.Sub(v.ResumedAt))).Seconds()
}
