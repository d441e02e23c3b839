// Package command owns the tools that run commands: exec_command and
// write_stdin with their sessions and terminals, shell_command, bash, and shell, which
// answers the items of the API's own shell tools too. It knows shells, sessions
// and the layout of outputs, and finds the commands that only apply a patch; how
// a command is started and ended is policy/sandbox's, how an output is cut is
// tools', how a patch is applied its caller's.
package command
