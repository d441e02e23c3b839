// Package progress shows a run while it works and when it ends: as lines, as the status line of a terminal,
// as groups of a log in GitHub Actions, as a comment on an issue or pull request, and as outputs, summary and
// annotations of a step. It only knows events, not the stages that make them.
package progress
