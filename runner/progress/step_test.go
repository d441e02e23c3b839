package progress

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestNoOutputIsHalfAnObject(t *testing.T) {
	for name, c := range map[string]struct {
		length int
		whole  bool
	}{
		"short":    {10, true},
		"too long": {actions.MaxOutput, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "output")
			plan := []transcript.PlanStep{{Step: strings.Repeat("x", c.length), Status: "completed"}}
			err := Told{Result: record.Result{Plan: plan, Summary: "Done."}}.setOutputs(&actions.Step{OutputFile: file})
			if (err == nil) != c.whole {
				t.Error(err)
			}
			raw, readErr := os.ReadFile(file)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if strings.Contains(string(raw), `[{"step":"x`) != c.whole || !strings.Contains(string(raw), "\nDone.\n") {
				t.Errorf("the outputs are %.200q", raw)
			}
		})
	}
}
