package body

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Failures are the tests that fail, and the last lines of what setup commands and checks
// that failed printed, folded: of at most limit UTF-16 code units.
func Failures(v *transcript.View, limit int) string {
	p := &page{left: limit}
	for _, s := range failures(v) {
		s.share = min(s.share, limit*2/3)
		p.section(s)
	}
	return p.String()
}

// failures stand below the table, since the files that have them are gone with the
// machine of a job.
func failures(v *transcript.View) []section {
	tests := section{head: "\n", most: 10, share: 8_000, more: "check"}
	tails := section{head: "\n", most: 10, share: 16_000, more: "output"}
	for _, step := range v.Setup {
		if step.Tail != "" {
			tails.rows = append(tails.rows, lastLines("setup "+step.Name, "failed", step.Tail))
		}
	}
	if v.Verify == nil {
		return []section{tails}
	}
	for _, row := range v.Verify.Rows {
		if list := testList(row); list != "" {
			tests.rows = append(tests.rows, list)
		}
		if !row.Passed && row.After != "" && row.Tail != "" {
			tails.rows = append(tails.rows, lastLines(row.Name, row.After, row.Tail))
		}
	}
	return []section{tests, tails}
}

func lastLines(name, end, tail string) string {
	return "<details>\n<summary>The last lines of <b>" + htmlText(name) + "</b> (" + htmlText(end) + ")</summary>\n\n" +
		markdown.Fence(tail, "") + "\n</details>\n"
}

// How many failing and fixed tests of a check are named, and how many UTF-16 code units
// that takes, before escaping.
const (
	mostTests = 20
	testShare = 3_000
)

// testList names the tests of a check that fail, and those that the change fixed;
// empty where the table says no number of any.
func testList(row transcript.VerifyRow) string {
	if row.TestsAfter() == "" {
		return ""
	}
	p := &page{left: testShare}
	p.section(section{rows: rowsOf(row.Failing, failingTest), most: mostTests, more: "failing test"})
	if more := row.FailingMore; more > 0 {
		p.put("- " + transcript.Count(more, "more failure") + " not listed\n")
	}
	p.section(section{rows: rowsOf(row.Mended, func(name string) string { return "- fixed: " + code(name) + "\n" }), most: mostTests, more: "fixed test"})
	return "<details>\n<summary>Tests of <b>" + htmlText(row.Name) + "</b>: " + row.Tests() + "</summary>\n\n" +
		p.String() + "\n</details>\n"
}

func failingTest(t transcript.FailingTest) string {
	s := "- " + code(t.Name)
	if t.New {
		s = "- **new**: " + code(t.Name)
	}
	if place := t.Place(); place != "" {
		s += fmt.Sprintf(" (%s)", code(place))
	}
	if only := t.Only(); only != "" {
		s += " " + only + ":"
	}
	if t.Message != "" {
		s += " " + text(t.Message)
	}
	return s + "\n"
}
