package transcript

import "github.com/agent-ci/agent-ci/runner/transcript/markdown"

// Title is the pull request's title where the job names none: the task's, else
// the first line of the summary, else that of the task. It is one line without
// effects, at most 256 UTF-16 code units, and never empty.
func Title(v *View) string {
	for _, candidate := range []string{v.Task.Title, markdown.Headline(v.Summary()), markdown.Headline(v.Task.Text)} {
		if title := markdown.Title(candidate); title != "" {
			return title
		}
	}
	return markdown.Title("agent-ci " + v.Started.Key)
}

// CommitText is what the agent said as a part of a commit's message: it
// mentions nobody, closes nothing, adds no trailer and skips no CI.
func CommitText(s string) string { return markdown.Commit(s) }
