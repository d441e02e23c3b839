// Package progress owns how a run is shown to those who look on while it goes and
// when it ends: lines, the status line of a terminal, the parts of a log in GitHub
// Actions, the comment on an issue or pull request, outputs, summary and annotations of
// a step. It refuses to know the stages that the events come from.
package progress
