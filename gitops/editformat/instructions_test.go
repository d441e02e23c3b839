package editformat_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/policy/must"
)

// What a model is told is what is read: the instructions, taken for an answer, ask
// for each thing once.
func TestParsesOwnInstructions(t *testing.T) {
	for _, f := range formats {
		got := editformat.Parse(f, editformat.Instructions(f))
		if len(got.Edits) != 1 || len(got.Reads) != 2 || len(got.Commands) != 1 || len(got.Plan) != 3 || len(got.Problems) > 0 {
			t.Errorf("%s: %+v", f, got)
			continue
		}
		must.Same(t, "src/server.py", got.Edits[0].Path, f)
	}
}

func TestInstructionsExampleApplies(t *testing.T) {
	was := files{"src/server.py": "class A:\n    def start(self):\n        self.loop()\n"}
	for _, f := range []editformat.Format{editformat.Diff, editformat.Udiff} {
		now, _, err := applied(t, f, editformat.Instructions(f), was)
		if err != nil || !strings.Contains(now["src/server.py"], "while self.running") {
			t.Errorf("%s: %q, %v", f, now, err)
		}
	}
}
