package main_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/golden"
)

// TestEveryToolInEditFormats plays, for each edit format, a session of a model that has no tools, and compares
// the transcript with the one that was looked through.
func TestEveryToolInEditFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"diff", "udiff", "whole"} {
		t.Run(format, func(t *testing.T) {
			server := must.Get(modeltest.Start(filepath.Join("testdata", "every_tool", "aider_"+format+".yml"), modeltest.Options{}))(t)
			defer server.Close()
			repo, out := widgets(t), filepath.Join(t.TempDir(), "out")
			cmd := scriptedRun(t, server.BaseURL(), repo, out, "--prompt", "Play.", "--set", "model.tools=aider-"+format)
			if printed, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, printed)
			}
			must.None(t, server.Faults(), "the model's server found")
			events := readEvents(t, filepath.Join(out, "transcript.jsonl"))
			got := fenceMark.ReplaceAll(normalised(t, events, strings.NewReplacer(out, "$RUN", repo, "$REPO")), []byte("id=MARK"))
			golden.Compare(t, filepath.Join("testdata", "every_tool", "aider_"+format+".json"), string(got))
		})
	}
}

// fenceMark is the mark of an output, which tells of how long its command took.
var fenceMark = regexp.MustCompile(`id=\\"[0-9a-f]{16}\\"`)
