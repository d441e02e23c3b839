// Package command owns the tools that run commands: exec_command and
// write_stdin with their sessions, and the older shell and shell_command. It
// knows shells, sessions and the layout of outputs, and finds the commands that
// only apply a patch; how a command is started and ended is policy/sandbox's,
// how an output is cut is tools', how a patch is applied its caller's.
package command
