package runner

import (
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// TestARecordBringsNoMoreLessonsThanARun has records, as a bundle may bring them, of more lessons
// than one run proposes, and of some that are said to be of earlier runs.
func TestARecordBringsNoMoreLessonsThanARun(t *testing.T) {
	pull := transcript.Task{Source: "event", URL: "https://github.com/octo-org/widgets/pull/7"}
	for name, test := range map[string]struct {
		task         transcript.Task
		own, earlier int // that are taken over
	}{
		"of a task of its own":             {transcript.Task{Source: "event", URL: "https://github.com/octo-org/widgets/issues/7"}, 5, 0},
		"that goes on with a pull request": {pull, 5, 20},
	} {
		v := &transcript.View{Started: transcript.RunStarted{RunID: "r1"}, Task: test.task}
		for i := range 30 {
			v.Proposed = append(v.Proposed, transcript.Lesson{ID: fmt.Sprintf("l-%d", i), Run: "r0"}, transcript.Lesson{ID: fmt.Sprintf("l-own-%d", i), Run: "r1"})
		}
		so := &reached{}
		so.recall(nil, v)
		own := 0
		for _, l := range so.learnt.proposed {
			if l.Run == "r1" {
				own++
			}
		}
		if earlier := len(so.learnt.proposed) - own; own != test.own || earlier != test.earlier {
			t.Errorf("a record %s brings %d lessons of its own and %d of earlier runs", name, own, earlier)
		}
	}
}
