// Package sandboxcommand owns what holds for commands that a person runs without a
// run: which folder and which settings they go by, the sandbox that a run's agent
// would have there, and the working files that are gone with them. It refuses to
// know tasks, models and forges.
package sandboxcommand
