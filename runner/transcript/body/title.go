package body

import (
	"cmp"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Title is the pull request's title where the job names none: the task's, else
// the first line of the summary, else that of the task. It is one line without
// effects, at most 256 UTF-16 code units, and never empty.
func Title(v *transcript.View) string {
	return cmp.Or(
		markdown.Title(v.Task.Title), markdown.Title(markdown.Headline(v.Summary())), markdown.Title(markdown.Headline(v.Task.Text)),
		markdown.Title("agent-ci "+v.Started.Key),
	)
}
