package body

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// jobsTool is a tool of the job's own, as the job has it.
type jobsTool struct {
	Name string          `json:"name"`
	Run  json.RawMessage `json:"run"` // a script, or a list; empty text for none
}

// jobsTools tells which tools of the job's own there were, what answers them, and how often
// they were called.
func jobsTools(v *transcript.View) section {
	s := section{
		head: "\n## Tools of the job\n\n| Tool | Program | Calls |\n|---|---|---|\n",
		most: 50, share: 4_000, more: "tool",
	}
	var job struct {
		Tools struct{ Dynamic []jobsTool }
	}
	if json.Unmarshal(v.Started.Job, &job) != nil {
		return s
	}
	called, failed := map[string]int{}, map[string]int{}
	for _, e := range v.Entries {
		if e.Call == nil {
			continue
		}
		if called[e.Call.Tool]++; e.Call.Failed {
			failed[e.Call.Tool]++
		}
	}
	for _, tool := range job.Tools.Dynamic {
		calls := fmt.Sprint(called[tool.Name])
		if n := failed[tool.Name]; n > 0 {
			calls += fmt.Sprintf(", %d failed", n)
		}
		s.rows = append(s.rows, fmt.Sprintf("| %s | %s | %s |\n", cell(tool.Name), tool.program(), calls))
	}
	return s
}

// program says what answers a tool: argv, or how long its script is.
func (t jobsTool) program() string {
	var script string
	var argv []string
	switch {
	case json.Unmarshal(t.Run, &argv) == nil:
		return cell(strings.Join(argv, " "))
	case json.Unmarshal(t.Run, &script) != nil:
		return ""
	}
	script = strings.TrimSpace(script)
	if lines := strings.Count(script, "\n") + 1; lines > 1 {
		return "a script of " + outcome.Counted(lines, "line")
	}
	return cell(script)
}
