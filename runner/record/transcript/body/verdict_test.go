package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// The first line of a body says whether the change can be merged.
func TestVerdictLeadsBody(t *testing.T) {
	check := func(name, before, after string, passed bool) transcript.VerifyRow {
		return transcript.VerifyRow{Name: name, Before: before, After: after, Passed: passed}
	}
	proven := check("tests", "green", "green", true)
	proven.Proof = []transcript.Proof{{File: "a_test.go", Class: transcript.Proven, Tests: []string{"TestA", "TestB"}}}
	doubtful := proven
	doubtful.Proof = append(doubtful.Proof[:1:1], transcript.Proof{File: "b_test.go", Class: transcript.NotRed})
	doubtful.OldTests = []transcript.OldTest{{Name: "TestOld", File: "c_test.go", Deleted: true}}
	scripted := check("tests", "red", "green", true)
	scripted.OldTests = []transcript.OldTest{{File: "check.sh", Script: true, Fails: true}}
	skipped := transcript.VerifyRow{Name: "docs", Passed: true, NotRun: transcript.NotConcerned}
	many := []transcript.VerifyRow{check("`a`", "", "red", false)}
	for range 6 {
		many = append(many, check(strings.Repeat("n", 100), "", "timeout", false))
	}
	for want, test := range map[string]struct {
		attempt int
		rows    []transcript.VerifyRow
		draft   []string
	}{
		"✅ 1 check passes, $0.06, 7 s":                                                                                               {1, []transcript.VerifyRow{check("tests", "red", "green", true), skipped}, nil},
		"✅ 2 checks pass, 2 tests proven, $0.06, 7 s":                                                                                {1, []transcript.VerifyRow{proven, check("vet", "green", "green", true)}, nil},
		"⚠️ 1 check passes, but read the warnings before you merge ($0.06, 7 s)":                                                     {1, []transcript.VerifyRow{check("tests", "red", "green", true)}, []string{"a budget ended the work."}},
		"⚠️ 1 check passes, check `lint` fails as before, $0.06, 7 s":                                                                {1, []transcript.VerifyRow{check("tests", "red", "green", true), check("lint", "red", "red", true)}, []string{"lint was red."}},
		"⚠️ 1 check passes, 2 tests proven, 1 test file not proven, 1 existing test deleted or failing, $0.06, 7 s":                  {1, []transcript.VerifyRow{doubtful}, nil},
		"⚠️ 1 check passes, 1 file of the checks changed to pass, $0.06, 7 s":                                                        {1, []transcript.VerifyRow{scripted}, nil},
		"⚠️ no check concerns the change, $0.06, 7 s":                                                                                {1, []transcript.VerifyRow{skipped}, nil},
		"⚠️ no check ran, $0.06, 7 s":                                                                                                {0, nil, nil},
		"⚠️ the checks did not run on the change, $0.06, 7 s":                                                                        {0, []transcript.VerifyRow{check("tests", "green", "", false)}, nil},
		"❌ check `tests` fails: do not merge ($0.06, 7 s)":                                                                           {1, []transcript.VerifyRow{check("tests", "green", "red", false), check("vet", "green", "green", true)}, []string{"x"}},
		"❌ checks `` `a` ``" + strings.Repeat(", `"+strings.Repeat("n", 59)+"…`", 4) + " and 2 more fail: do not merge ($0.06, 7 s)": {1, many, nil},
	} {
		list := &price.List{Rates: price.Rates{Input: 1}}
		view := &transcript.View{Finished: &transcript.RunFinished{Outcome: "changed", Seconds: 7}}
		view.Verify = &transcript.Verify{Attempt: test.attempt, Passed: true, Rows: test.rows}
		view.Change = &transcript.Change{Files: []changeset.File{{Path: "a", Status: "M"}}}
		view.Models = []transcript.ModelUse{{Model: "m", CostUSD: 0.0612, Price: list}}
		posts := must.Get(Compose(view, Options{Head: "<!-- mark -->\n", Closing: "Fixes #7", Remarks: sections.Remarks{DraftReasons: test.draft}}))(t)
		got, _ := strings.CutPrefix(posts.Body, "<!-- mark -->\n")
		if line, rest, _ := strings.Cut(got, "\n"); line != want || !strings.HasPrefix(rest, "\nFixes #7\n") {
			t.Errorf("got  %s\nwant %s", line, want)
		}
	}
}

func TestVerdictOmitsUnknownCost(t *testing.T) {
	view := &transcript.View{Finished: &transcript.RunFinished{Seconds: 90}}
	view.Change = &transcript.Change{Files: []changeset.File{{Path: "a"}}}
	view.Models = []transcript.ModelUse{{Model: "m", Usage: transcript.Usage{Input: 1}}}
	must.Same(t, "⚠️ no check ran, 1 min 30 s\n", Verdict(view, sections.NoDoubt))
	view.Change = nil
	must.Same(t, "", Verdict(view, sections.NoDoubt), "of a run without a change")
}

// The plan has a section: the calls that wrote it are neither listed nor counted as missing.
func TestOmitsPlanCalls(t *testing.T) {
	run := []transcripttest.Happening{
		transcripttest.Called(1, "c1", "update_plan", `{"plan":[]}`), transcripttest.Ended(1, "c1", "update_plan", "Plan updated", 0),
		transcripttest.Called(1, "c2", "todowrite", `{"todos":[]}`), transcripttest.Ended(1, "c2", "todowrite", "ok", 0),
		transcripttest.Called(2, "c3", "exec_command", `{"cmd":"go test"}`), transcripttest.Ended(2, "c3", "exec_command", "ok", 0),
	}
	for _, mode := range []Mode{full, digest} {
		body := must.Get(alone(transcripttest.Folded(t, run), Options{Mode: mode}))(t)
		if strings.Contains(body, "update_plan") || strings.Contains(body, "todowrite") || strings.Contains(body, "not shown here") || !strings.Contains(body, "exec_command") {
			t.Errorf("%s: %s", mode, body)
		}
	}
}
