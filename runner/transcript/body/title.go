package body

import (
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Title is the pull request's title where the job names none: the task's, else
// the first line of the summary, else that of the task. It is one line without
// effects, at most 256 UTF-16 code units, and never empty.
func Title(v *transcript.View) string {
	for _, candidate := range []string{v.Task.Title, markdown.Headline(v.Summary()), markdown.Headline(v.Task.Text)} {
		if title := markdown.Title(candidate); title != "" {
			return title
		}
	}
	return markdown.Title("agent-ci " + v.Started.Key)
}
