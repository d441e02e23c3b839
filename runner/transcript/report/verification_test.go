package report

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestWhatFailedIsShownOnThePage(t *testing.T) {
	run := append(ordinary()[:4],
		happening{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: "tools", Run: "make tools", ExitCode: 3, Tail: "no rule\nto make tools"}},
		happening{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{
			{
				Name: "tests", Run: "make test", Before: "red", After: "red", Tail: "FAIL\tgreet", Mended: []string{"greet.TestA"},
				Failing: []transcript.FailingTest{{Name: "greet.TestB", File: "b_test.go", Line: 4, Message: "got <1>", New: true}}, FailingMore: 700,
			},
			{Name: "lint", Run: "make lint", Before: "red", After: "red", Passed: true, Tail: "not of interest"},
		}}})
	page := rendered(t, recorded(t, run))
	overview, _, _ := strings.Cut(page, `id="timeline"`)
	for _, want := range []string{
		"<summary>The last lines of tools (exit 3)</summary>", "no rule\nto make tools</pre>",
		"Tests of tests: 1 new failure, 700 other, 1 fixed", "<b>new:</b> <code>greet.TestB</code> <code>b_test.go:4</code> got &lt;1&gt;",
		"fixed: <code>greet.TestA</code>", "… and 501 more tests.", "<summary>The last lines of tests (red)</summary>",
	} {
		if !strings.Contains(overview, want) {
			t.Errorf("the overview does not say %q", want)
		}
	}
	if strings.Contains(overview, "not of interest") {
		t.Error("the overview shows the output of a check that passes")
	}
	text := parsed(t, page)
	for _, want := range []string{"Last lines of tests", "tests: red (0 s): 1 new failure, 700 other, 1 fixed", "not of interest"} {
		if !strings.Contains(text.text, want) {
			t.Errorf("the timeline does not say %q", want)
		}
	}
	text.harmless(t)
}
