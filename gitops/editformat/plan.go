package editformat

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// planned matches a step: an optional bullet or number, an optional status in brackets, and text.
var planned = lazyregexp.New(`^\s*(?:[-*+]|\d{1,3}[.)])?\s*(?:\[(?i:([^\]]?|pending|in[_ ]progress|completed))\]\s*)?(.*?)\s*$`)

// stepStatus maps the marks of steps. A step without a mark is pending.
var stepStatus = map[string]string{
	"": "pending", " ": "pending", "pending": "pending", ">": "in_progress", "~": "in_progress", "in_progress": "in_progress", "in progress": "in_progress",
	"x": "completed", "✓": "completed", "completed": "completed",
}

// readPlan parses the plan of a fence. It replaces an earlier plan.
func (p *parser) readPlan(open, end int) {
	var steps []Step
	for i := open + 1; i < end; i++ {
		found := planned().FindStringSubmatch(p.lines[i])
		if strings.TrimSpace(found[2]) == "" {
			continue
		}
		status, known := stepStatus[strings.ToLower(found[1])]
		if !known {
			p.problem(i, "a step of a plan is marked [ ], [>] or [x], not [%s]", found[1])
			return
		}
		steps = append(steps, Step{Step: found[2], Status: status})
	}
	if len(steps) == 0 {
		p.problem(open, "the plan has no steps; write one a line: - [ ] what is to be done")
		return
	}
	p.answer.Plan = steps
}
