package body

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// Hundreds of calls of one script take no more room than there is, and are counted.
func TestAScriptWithManyCalls(t *testing.T) {
	run := append(transcripttest.Scripts()[:7], transcripttest.CalledBy(1, 1, 0, "c1", "exec", "for (;;) tools.read_file({path: 'a'})"))
	for i := range 600 {
		id := fmt.Sprintf("c1.%d", i+1)
		run = append(run, transcripttest.CalledBy(1, i+1, 1, id, "read_file", `{"path":"a"}`), transcripttest.EndedBy(1, i+1, 1, id, "read_file", transcripttest.Numbered(100)))
	}
	run = append(run, transcripttest.EndedBy(1, 1, 0, "c1", "exec", "Script completed"), transcripttest.Said(2, "Done."))
	for _, mode := range []Mode{Full, Digest} {
		post, err := alone(projected(t, run), Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		posted(t, Posts{Body: post}, DefaultLimit)
		shown := strings.Count(post, "\n  - **read_file**") + strings.Count(post, "<b>read_file</b>")
		hidden := fmt.Sprintf("%d more calls are not shown here.", 600-shown)
		if shown < 40 || shown < 600 && !strings.Contains(post, hidden) {
			t.Errorf("%s: %d calls are shown, and the end is not %q: %s", mode, shown, hidden, post[len(post)-300:])
		}
	}
}
