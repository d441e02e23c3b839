// Package command owns the tools that run commands: exec_command and write_stdin with sessions and
// terminals, shell_command, bash, and shell, also for the API's shell items. It knows shells,
// sessions and output layouts, and recognises commands that only apply a patch. policy/sandbox
// starts and ends commands, package tools cuts outputs, the caller applies patches.
package command
