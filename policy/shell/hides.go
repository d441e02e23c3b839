package shell

import (
	"slices"
	"strings"
)

// systemFolders lists the folders with trusted shells. "" means a lookup in PATH.
var systemFolders = []string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}

// IsShell reports whether a program is a shell with scripts in a known grammar.
func IsShell(program string) bool {
	name := base(program)
	return shells[name] && slices.Contains(systemFolders, strings.TrimSuffix(program, name))
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
	if name := base(program); shells[name] {
		script, ok := scriptOption(args)
		return !IsShell(program) || ok && !script.Known
	}
	w, starts := wrappers[base(program)]
	if !starts {
		return false
	}
	s := w.skip(args)
	rest := args[min(s.at, len(args)):]
	unknown := func(word Word) bool { return !word.Known }
	switch {
	case slices.ContainsFunc(s.scripts, unknown), w.joins && slices.ContainsFunc(rest, unknown):
		return true
	}
	return s.unsure && len(rest) > 0 && !rest[0].Known
}
