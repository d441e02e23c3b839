package editformat

import (
	"regexp"
	"strings"
)

// planned is a step: perhaps a bullet or a number, perhaps a mark, and words.
var planned = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,3}[.)])?\s*(?:\[([^\]]?)\]\s*)?(.*?)\s*$`)

// stepStatus is what the marks of steps mean; a step without one is pending.
var stepStatus = map[string]string{
	"": "pending", " ": "pending", ">": "in_progress", "~": "in_progress", "x": "completed", "X": "completed", "✓": "completed",
}

func (p *parser) readPlan(open, end int) {
	var steps []Step
	for i := open + 1; i < end; i++ {
		found := planned.FindStringSubmatch(p.lines[i])
		if strings.TrimSpace(found[2]) == "" {
			continue
		}
		status, known := stepStatus[found[1]]
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
