package proposals

import (
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestBoundsRecordedLessons has records, as a bundle may bring them, of more lessons
// than one run proposes, and of some that are said to be of earlier runs.
func TestBoundsRecordedLessons(t *testing.T) {
	for name, test := range map[string]struct {
		onPull       bool
		own, earlier int // that are taken over
	}{
		"of a task of its own":             {false, 5, 0},
		"that goes on with a pull request": {true, 5, 20},
	} {
		v := &transcript.View{Started: transcript.RunStarted{RunID: "r1"}}
		for i := range 30 {
			v.ProposedLessons = append(v.ProposedLessons, transcript.Lesson{ID: fmt.Sprintf("l-%d", i), Run: "r0"}, transcript.Lesson{ID: fmt.Sprintf("l-own-%d", i), Run: "r1"})
		}
		if test.onPull {
			v.Task = transcript.Task{Source: "event", URL: "https://github.com/octo/widgets/pull/7"}
		}
		l := FromRecord(nil, v)
		own := 0
		for _, made := range l.proposed {
			if made.Run == "r1" {
				own++
			}
		}
		must.Same(t, test.own, own, name, "lessons of its own", "of earlier runs")
		must.Same(t, test.earlier, len(l.proposed)-own, name, "lessons of its own", "of earlier runs")
	}
}
