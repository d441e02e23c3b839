// Package actions is the GitHub Actions runner as agent-ci meets it: the event
// that started a workflow and the task that it asks for, and the other way the
// log with its workflow commands, the outputs of the step and its summary. It
// owns that no text can become a command or another output. It knows nothing of
// GitHub's API, of trust, or of what a run does.
package actions
