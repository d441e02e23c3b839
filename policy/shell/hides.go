package shell

import (
	"slices"
	"strings"
)

// systemFolders lists the folders with trusted shells. "" means a lookup in PATH.
var systemFolders = []string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}

// IsShell reports whether a program is a shell with scripts in a known grammar.
func IsShell(program string) bool {
	name := programName(program)
	return slices.Contains(shells, name) && slices.Contains(systemFolders, strings.TrimSuffix(program, name))
}

// MayHideCommand reports whether a command may start another one that its words do not show. Such a
// command is a variable, a script with a variable in it, or a program with a shell's name outside
// systemFolders.
func (c Command) MayHideCommand() bool {
	switch {
	case len(c.Words) == 0:
		return false
	case !c.Words[0].Known:
		return true
	}
	program, args := c.Words[0].Text, c.Words[1:]
	if name := programName(program); slices.Contains(shells, name) {
		script, ok := inlineScript(args)
		isUnknownScript := ok && !script.Known
		return isUnknownScript || !IsShell(program)
	}
	wrapper, isWrapper := wrapperNamed(programName(program))
	if !isWrapper {
		return false
	}
	start := wrapper.locateCommand(args)
	command := args[min(start.index, len(args)):]
	isUnknown := func(word Word) bool { return !word.Known }
	switch {
	case slices.ContainsFunc(start.scripts, isUnknown):
		return true
	case wrapper.joinsWords && slices.ContainsFunc(command, isUnknown):
		return true
	}
	return start.isUnsure && len(command) > 0 && !command[0].Known
}
