package progress

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

func TestFoldsOutputOfFailedCommands(t *testing.T) {
	table := transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{
		{Name: "lint\n::error::x", Before: "green", After: "red", Tail: "one 0.02s\n::error::evil\n##[group]evil\ttab"}, {Name: "tests", Before: "red", After: "green"},
	}}
	tail := table.Rows[0].Tail
	showAll := func(w *Watch) {
		show := shownOn(w)
		show(event(t, transcript.TypeSetup, transcript.Setup{Name: "tools", ExitCode: 3, Tail: "no rule"}))
		for _, took := range []string{"0.02s", "0.03s", "2 tests"} { // the last failure is another
			table.Rows[0].Tail = strings.Replace(tail, "0.02s", took, 1)
			show(event(t, transcript.TypeVerify, table))
		}
	}
	var log bytes.Buffer
	step := &actions.Step{Log: actions.NewLog(&log)}
	showAll(&Watch{Lines: step.Log, Step: step})
	failed := `::endgroup::
::group::The last lines of lint ::error::x (red)
    one TOOK
    ：:error::evil
    ##［group]evil tab
::endgroup::
`
	const verified = "::group::Verification\nagent-ci: verified: lint ::error::x green → red, tests red → green\n"
	want := "::group::Setup\nagent-ci: setup tools: exit 3 after 0.0 s\n::endgroup::\n::group::The last lines of setup tools (exit 3)\n    no rule\n::endgroup::\n" +
		verified + strings.Replace(failed, "TOOK", "0.02s", 1) +
		verified + "agent-ci:   The last lines of lint ::error::x (red): as shown above\n" +
		strings.TrimPrefix(verified, "::group::Verification\n") + strings.Replace(failed, "TOOK", "2 tests", 1)
	must.Same(t, strings.TrimSuffix(want, "::endgroup::\n"), log.String())
	log.Reset()
	showAll(&Watch{Lines: &log})
	must.Same(t, true, strings.HasPrefix(log.String(), "agent-ci: setup tools: exit 3 after 0.0 s\nagent-ci:   The last lines of setup tools (exit 3):\n    no rule\nagent-ci: verified: "), log.String())
}
