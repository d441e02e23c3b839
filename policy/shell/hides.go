package shell

import (
	"slices"
	"strings"
)

// systemFolders are those whose shells are what their names say.
var systemFolders = []string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}

// IsShell says whether a program is a shell whose scripts are read here.
func IsShell(program string) bool {
	name := base(program)
	return shells[name] && slices.Contains(systemFolders, strings.TrimSuffix(program, name))
}

// Hides says whether a command runs another that can't be told from its words: by a variable, in
// a script with one, or by a program that is called as a shell is.
func (c Command) Hides() bool {
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
