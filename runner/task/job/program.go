package job

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// ExpandHome replaces ~ at the start of word, and ${HOME} anywhere, by home, because no shell reads these
// words. An empty home leaves the word unchanged.
func ExpandHome(word, home string) string {
	if home == "" {
		return word
	}
	if word == "~" || strings.HasPrefix(word, "~/") {
		word = home + word[1:]
	}
	return strings.ReplaceAll(word, "${HOME}", home)
}

// interpreters lists programs that take a script as first argument, apart from options.
var interpreters = []string{"sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php"}

// ScriptOf returns the repository file read by an interpreter, such as check.py in [python3,
// check.py], or "" for other commands.
func ScriptOf(argv []string) string {
	startsInterpreter := len(argv) > 1 && slices.Contains(interpreters, argv[0])
	if !startsInterpreter || strings.HasPrefix(argv[1], "-") || path.IsAbs(argv[1]) {
		return ""
	}
	return argv[1]
}

// splitProgram splits a program written in one word with its arguments. It returns nil if there are none.
func splitProgram(program string) []string {
	if words := strings.Fields(program); len(words) > 1 {
		return words
	}
	return nil
}

// programMistake returns a message for a wrong program name, or "". format formats the corrected words.
// A path may contain blanks: its existence is checked at the start of the program.
func programMistake(argv []string, format func(words []string) string) string {
	program := argv[0]
	if words := splitProgram(program); words != nil && !strings.Contains(words[0], "/") {
		return "has a program and its arguments in one word, which no shell takes apart; write " + format(append(words, argv[1:]...)) + ". A path with blanks in it begins with /, ./ or ~/"
	}
	if rest, beginsWithHome := strings.CutPrefix(program, "$HOME/"); beginsWithHome {
		return "begins with $HOME, and no shell fills that in; write " + format(append([]string{"~/" + rest}, argv[1:]...))
	}
	if strings.HasPrefix(program, "~") && !strings.HasPrefix(program, "~/") {
		return "begins with ~ and is not below ~/, the home folder of who starts agent-ci; write the whole path"
	}
	return ""
}

// unquotedWord matches words that YAML reads unchanged within [ ].
var unquotedWord = lazyregexp.New(`^(?:[A-Za-z/]|[.~]/|-{1,2}[A-Za-z])[A-Za-z0-9._/@=+-]*$`)

// formatYAMLList formats words as a YAML list in brackets.
func formatYAMLList(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = word
		if !unquotedWord().MatchString(word) {
			all[i] = strconv.Quote(word)
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// SplitHint returns a hint for a server command with arguments in the same word, or "".
func (s MCPServer) SplitHint() string {
	words := splitProgram(s.Command)
	if words == nil {
		return ""
	}
	return "; if that is a program with its arguments, write " + formatServerCommand(append(words, s.Args...))
}

// formatServerCommand formats a server's command as the YAML keys command and args.
func formatServerCommand(words []string) string {
	return "command: " + strings.Trim(formatYAMLList(words[:1]), "[]") + ", args: " + formatYAMLList(words[1:])
}
