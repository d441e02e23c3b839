// Package sandboxcommand owns the sandbox for a person's commands: its configuration in a folder,
// working files, and the rules for commands. It does not know runs: tasks, agents, forges and
// events.
package sandboxcommand
