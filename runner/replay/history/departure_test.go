package history

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
)

// A run that is left tells where its work is, also while that comes into the checkout.
func TestAbandonedRunNamesItsWork(t *testing.T) {
	for name, test := range map[string]struct {
		there []string // in the run directory
		want  string
	}{
		"without a work tree": {nil, "the checkout is as it was."},
		"in an overlay":       {[]string{confine.ScratchFolder + "/agent/tree"}, "the checkout is as it was, the work is in the run directory."},
		"while it lands":      {[]string{confine.ScratchFolder + "/agent/tree", "state/landing"}, "may stand there whole or in part; the work is in the run directory, and agent-ci resume first takes out"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := recordtest.New(t, "20260101T000000Z-00000000")
			for _, folder := range test.there {
				must.Get(rec.MakeFolder(folder))(t)
			}
			left := EarlyExit{rec: rec}
			must.Contain(t, left.abandonedResult(t.Context()).Message, test.want, "To continue: agent-ci resume "+rec.Path())
			must.Fail(t, record.ErrLeft.Error(), rec.BeginLanding(func() error { return nil }), "afterwards a landing begins")
		})
	}
	rec := recordtest.New(t, "20260101T000000Z-00000000")
	must.Do(t, rec.BeginLanding(func() error {
		left := EarlyExit{rec: rec}
		must.Contain(t, left.describeWork(), "may stand there whole or in part")
		return nil
	}))
	if got := new(EarlyExit).abandonedResult(t.Context()); !strings.HasSuffix(got.Message, "the checkout is as it was.") {
		t.Errorf("without a run directory: %q", got.Message)
	}
}
