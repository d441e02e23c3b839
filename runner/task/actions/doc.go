// Package actions is the interface to the GitHub Actions runner. It reads the event of a workflow
// and its task. It writes the log with its workflow commands, the step's outputs and its
// summary, and ensures that no text becomes a command or another output. It knows nothing of
// GitHub's API, of trust, or of the steps of a run.
package actions
