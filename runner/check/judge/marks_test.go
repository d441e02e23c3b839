package judge

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestRefusesConflictMarkers(t *testing.T) {
	lines := gitops.Labels{Ours: "pull request #2", Base: "before", Theirs: "main"}.Markers()
	texts := map[string]string{
		"plain": "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> main\n", "whole": strings.Join(lines[:], "\nx\n") + "\n", "last": "x\n" + lines[3],
		"within": "x " + lines[0] + "\n", "separator": lines[2] + "\r\n", "long": strings.Repeat("x", 5000) + lines[0] + "\n",
	}
	for name, c := range map[string]struct {
		before, now string
		binary      bool
		want        string
	}{
		"those of git":      {now: "plain", want: ""},
		"all of them":       {now: "whole", want: "marks_left"},
		"one, at the end":   {now: "last", want: "marks_left"},
		"the separator":     {now: "separator", want: "marks_left"},
		"within a line":     {now: "within", want: ""},
		"in a long line":    {now: "long", want: ""},
		"as before":         {before: "last", now: "last", want: ""},
		"more than before":  {before: "last", now: "whole", want: "marks_left"},
		"fewer than before": {before: "whole", now: "last", want: ""},
		"what is no text":   {now: "whole", binary: true, want: ""},
	} {
		file := changeset.File{Path: "a.txt", NewMode: "100644", NewID: c.now, Binary: c.binary}
		if c.before != "" {
			file.OldMode, file.OldID = "100644", c.before
		}
		judged := caseOf(t, job.Job{}, &gitops.ChangeSet{Files: []changeset.File{file}}, "")
		judged.Checkout = &store{blobs: texts}
		must.Same(t, c.want, outcometest.Reason(judged.Refusal(t.Context())), name)
	}
}
