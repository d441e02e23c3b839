package sections

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// checksSection returns a table of the checks before and after the change.
func checksSection(s *Source) document.Section {
	switch {
	case !AgentBegan(s.View):
		return document.Section{}
	case len(s.verify().Rows) == 0:
		return section("verification", "Verification", paragraph("No check ran: nothing shows that the change works."))
	}
	n := 0
	return section("verification", "Verification", tableOf("check", 0, columns("Check", "Result", "Before", "After", "Time#", "Command"), s.verify().Rows, func(row transcript.VerifyRow) document.Row {
		n++
		result := document.Text{{Text: row.DescribeResult(), Style: document.Result, Tone: wordTones[row.DescribeResult()]}}
		if tests := row.DescribeTestsAfter(); tests != "" {
			result = append(result, document.Span{Text: ": " + tests})
		}
		if hasOutput(row) {
			result = append(result, document.Span{Text: " "}, document.Span{Text: "output", PageAnchor: outputID(n), PageOnly: true})
		}
		return document.Row{
			document.Words(row.Name), result, document.Format("%s%s", checkState(row.Before), row.DescribeOrigin()),
			document.Format("%s%s", checkState(row.After), flakyRuns(row)), document.Words(transcript.FormatSeconds(row.Seconds)), document.Mono(row.Run),
		}
	}))
}

// wordTones maps the words for results, states and proofs of checks to tones.
var wordTones = map[string]document.Tone{
	"passed": document.Good, "flaky, accepted": document.Good, transcript.CheckFailed: document.Bad, "failed before too": document.Doubtful, "not run": document.Doubtful,
	"green": document.Good, "red": document.Bad, "timeout": document.Bad, transcript.FlakyState: document.Doubtful,
	transcript.Proven: document.Good,
}

// checkState returns a check's state as text with a style.
func checkState(word string) document.Text {
	return document.Text{{Text: cmp.Or(word, "–"), Style: document.State, Tone: wordTones[word]}}
}

// flakyRuns returns the states of a flaky check's runs, or "" for another check.
func flakyRuns(row transcript.VerifyRow) string {
	if row.After != transcript.FlakyState {
		return ""
	}
	return strings.TrimPrefix(transcript.StateWithRuns(row.After, row.Runs), row.After)
}

// hasOutput reports whether a check failed on the change and has output to show.
func hasOutput(row transcript.VerifyRow) bool {
	return !row.Passed && row.After != "" && row.Tail != ""
}

// outputID returns the id of check n's output on a page, from 1.
func outputID(n int) string { return fmt.Sprintf("output-%d", n) }

// failingTestsSection returns each check's failing and fixed tests, and the output of failed checks. The
// document has that output because a CI job's files vanish with its machine.
func failingTestsSection(s *Source) document.Section {
	tests := document.Folds{Limit: document.Limit{Noun: "check", MaxRows: 10, MaxUnits: 8_000}}
	outputs := document.Folds{Limit: document.Limit{Noun: "output", MaxRows: 10, MaxUnits: 16_000}}
	for i, row := range s.verify().Rows {
		if row.DescribeTestsAfter() != "" {
			tests.Folds = append(tests.Folds, testsFold(row))
		}
		if hasOutput(row) {
			outputs.Folds = append(outputs.Folds, outputFold(outputID(i+1), row.Name, row.After, row.Tail))
		}
	}
	return section("", "", tests, outputs)
}

// outputFold returns the end of a failed command's output as a fold. result is the command's result in words.
func outputFold(id, name, result, tail string) document.Fold {
	return document.Fold{
		ID: id, Open: true, Title: OutputTitle(name, result),
		Blocks: []document.Block{document.Code(tail)},
	}
}

// OutputTitle returns the title of the end of a failed command's output.
func OutputTitle(name, result string) document.Text {
	return document.Format("The last lines of **%s** (%s)", name, result)
}

// testsFold returns the failing and fixed tests of a check as a fold.
func testsFold(row transcript.VerifyRow) document.Fold {
	list := document.List{Limit: document.Limit{Noun: "test", MaxRows: 40}}
	add := func(text document.Text) { list.Items = append(list.Items, document.Item{Text: text}) }
	listed := row.Failing[:min(len(row.Failing), 20)]
	for _, t := range listed {
		add(failingTestText(t))
	}
	if unlisted := len(row.Failing) - len(listed) + row.FailingMore; unlisted > 0 {
		add(document.Words(transcript.CountNoun(unlisted, "more failure") + " not listed"))
	}
	for _, name := range row.Fixed {
		add(document.Format("fixed: `%s`", name))
	}
	return document.Fold{
		Open: true, Title: document.Format("Tests of **%s**: %s", row.Name, row.DescribeTests()), MaxUnits: 3_000,
		Blocks: []document.Block{list},
	}
}

// failingTestText returns a failing test as a line of text.
func failingTestText(t transcript.FailingTest) document.Text {
	text := document.Mono(t.Name)
	if t.New {
		text = document.Format("**new**: `%s`", t.Name)
	}
	if place := t.Place(); place != "" {
		text = document.Format("%s (`%s`)", text, place)
	}
	if only := t.DescribeRuns(); only != "" {
		text = document.Format("%s %s:", text, only)
	}
	if t.Message != "" {
		text = append(text, document.Span{Text: " " + t.Message, IsSentence: true})
	}
	return text
}

// classMeanings says in words what the classes of test files mean.
var classMeanings = map[string]string{
	transcript.NotRed: "passes without the change", transcript.LoadError: "does not load without the change", transcript.NoTests: "no test of it ran",
	transcript.FlakyProof: "fails and passes without the change",
}

// redProofSection returns the change's test files, by whether they fail without the rest of the change.
func redProofSection(s *Source) document.Section {
	table := s.verify()
	proofs := table.BestProofs()
	if unlisted := table.UnlistedProofs(); unlisted > 0 {
		proofs = append(proofs, transcript.Proof{Class: "not judged", Note: transcript.CountNoun(unlisted, "more file")})
	}
	lines := tableOf("file", 0, columns("Tests", "Class", "Notes"), proofs, func(p transcript.Proof) document.Row {
		var notes []string
		if words := classMeanings[p.Class]; words != "" {
			notes = append(notes, words)
		}
		if len(p.Tests) > 0 {
			notes = append(notes, "failing on the base: "+strings.Join(p.Tests, ", "))
		}
		if p.Note != "" {
			notes = append(notes, p.Note)
		}
		if p.Shared {
			notes = append(notes, "shared with other files")
		}
		class := document.Span{Text: p.Class, Style: document.Result, Tone: document.Bad}
		if p.Class == transcript.Proven {
			class.Tone = document.Good
		}
		return document.Row{fileName(p.File), document.Text{class}, document.Words(strings.Join(notes, "; "))}
	})
	if len(lines.Rows) == 0 {
		return document.Section{}
	}
	return section("red-proof", "Red proof", document.Paragraph{Text: document.Format("agent-ci ran the new and changed tests on the base, without the rest of the change. A `%s` test fails there and passes with the change.", transcript.Proven)}, lines)
}

// fileName returns a path for people, or nil for "".
func fileName(path string) document.Text {
	if path == "" {
		return nil
	}
	return document.Mono(markdown.FileName(path))
}

// existingTestsSection returns the base's tests that the change deletes or breaks.
func existingTestsSection(s *Source) document.Section {
	list := document.List{Limit: document.Limit{Noun: "test"}}
	table := s.verify()
	for _, o := range table.BrokenOldTests() {
		place := markdown.FileName(o.File)
		if o.Line > 0 {
			place += fmt.Sprintf(":%d", o.Line)
		}
		name := document.Words("the file ")
		switch {
		case o.Name != "":
			name = document.Format("`%s` ", o.Name)
		case o.Script:
			name = nil
		}
		list.Items = append(list.Items, document.Item{Text: document.Format("`%s`: %s%s", place, name, o.DescribeState())})
	}
	if why := table.OldTestsGap(); why != "" {
		list.Items = append(list.Items, document.Item{Text: document.Words("incomplete: " + why)})
	}
	title := "Existing tests that were deleted or fail"
	if _, scripts := table.CountBrokenOldTests(); scripts > 0 {
		title = "Existing tests and files of checks to review"
	}
	return section("existing-tests", title, list)
}
