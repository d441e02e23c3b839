// Package sandboxcommand owns the sandbox for commands that a person gives: what
// configures it in a folder, its working files, and that the rules are asked before
// a command starts. It refuses to know runs: tasks, agents, forges and events.
package sandboxcommand
