// Package command owns the tools that run commands: exec_command and
// write_stdin with their sessions, and the older shell and shell_command. It
// knows shells, sessions and the layout of outputs; how a command is started
// and ended is policy/sandbox's, how an output is cut is tools'.
package command
