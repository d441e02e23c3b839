package worker

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// nudgeWords begin every nudge.
const nudgeWords = "You ended, but "

// StoppedWords are for an agent that goes on after its end: with its last words
// its processes end.
const StoppedWords = "Commands that you had left running were stopped."

// nudgeFor is what an agent is told whose end looks too early; empty for another.
// expected is the kind of result that the task expects. unchanged says that the
// agent changed nothing that can be published, and left, for the end of a sentence,
// what it made that cannot be.
func nudgeFor(expected string, steps []transcript.PlanStep, unchanged bool, left string) string {
	if unchanged && left != "" {
		return nudgeWords + "nothing of your work can be published: the checkout is as it was" + left + ". A folder with a .git of its own, the commit of a submodule " +
			"and what nobody may read are never part of a change. Put that right, or end again and say why in your last message."
	}
	if unchanged && expected == "change" {
		return nudgeWords + "nothing in the checkout has changed, and the task expects a change. If it can be made, make it now. " +
			"If nothing needs to change or it cannot be done, end again and say why in your last message. " + StoppedWords
	}
	var open []string
	for _, step := range steps {
		if step.Status != "completed" {
			open = append(open, "- "+step.Step)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return nudgeWords + "your plan has open steps:\n" + strings.Join(open, "\n") +
		"\nDo them now, or bring the plan up to date and say in your last message what was left and why. " + StoppedWords
}
