package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

func TestReportsAvailableResultsToStep(t *testing.T) {
	rec := recordtest.New(t, "r1")
	cost := 0.25
	result := record.NewResult("r1", outcome.Stopf(outcome.Changed, "pull_request", "Done."))
	result.CostUSD, result.Output, result.PullRequest.Number = &cost, "output.json", 7
	for name, c := range map[string]struct {
		output, want string // structured
		noFile, told bool
	}{
		"an object":         {`{"count": 3}`, "\n{\"count\": 3}\n", false, true},
		"a long one":        {strings.Repeat("1", actions.MaxOutputBytes+1), "structured-output<<", false, false},
		"no files to write": {`{"count": 3}`, "", true, false},
		"it is gone":        {"", "structured-output<<", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rec.Remove(result.Output)
			if c.output != "" {
				must.Do(t, rec.Write(result.Output, []byte(c.output)))
			}
			folder := t.TempDir()
			if c.noFile {
				folder = filepath.Join(folder, "none")
			}
			var log bytes.Buffer
			step := &actions.Step{Log: actions.NewLog(&log), OutputFile: filepath.Join(folder, "output"), SummaryFile: filepath.Join(folder, "summary")}
			err := (&Watch{Step: step}).ReportToStep(StepResult{Result: result, Record: rec})
			must.Same(t, c.told, err == nil, err)
			must.Contain(t, log.String(), "::notice title=agent-ci%3A changed::Done.")
			outputs, _ := os.ReadFile(step.OutputFile)
			summary, _ := os.ReadFile(step.SummaryFile)
			if c.noFile {
				return
			}
			for _, each := range Outputs {
				must.Same(t, true, strings.Contains(string(outputs), each+"<<"), "there is no output", each)
			}
			if !strings.Contains(string(outputs), c.want) || !strings.Contains(string(outputs), "\n0.25\n") || !strings.HasPrefix(string(summary), "## ✅ agent-ci: Pull request ready\n") {
				t.Errorf("the outputs are %.2000q, the summary %q", outputs, summary)
			}
		})
	}
	if err := (&Watch{}).ReportToStep(StepResult{}); err != nil { // where there is no step
		t.Error(err)
	}
}

func TestNamesArtifactByRunID(t *testing.T) {
	for id, want := range map[string]string{
		"20260301T090000Z-0a1b2c3d": "agent-ci-20260301T090000Z-0a1b2c3d", "run": "", "": "", "20260301T090000Z-0a1b2c3d\nx": "",
	} {
		told := StepResult{Artifacts: "https://github.com/o/r/actions/runs/7#artifacts", Result: record.Result{RunID: id, LocalFiles: record.LocalFiles{Directory: "/run"}}}
		must.Same(t, want, told.artifactName(), id)
		told.Artifacts = ""
		must.Same(t, "", told.artifactName())
	}
}
