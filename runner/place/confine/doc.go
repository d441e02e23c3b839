// Package confine owns the sandboxes of a run: what each of them lets commands
// see, write and reach, their environment, the rules on the agent's commands, and
// the end and the log of a script. It refuses to know what the commands are for,
// how the checkout is kept, and what a change is worth.
package confine
