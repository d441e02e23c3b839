package shell

import "strings"

// mostLoose is how many words a command that is read loosely has at most.
const mostLoose = 16

// loose reads text that is no script for the parser. Each run of words may be a
// command, so one is noted from each word on: rather a command too many than
// one that a shell would understand and this reader does not.
func (r *reader) loose(text string, from origin) {
	for line := range strings.FieldsFuncSeq(text, endsCommand) {
		words := literals(strings.FieldsFunc(line, isSpace))
		for i := range words {
			if !r.record(words[i:min(i+mostLoose, len(words))], from) {
				return
			}
		}
	}
}

func endsCommand(c rune) bool { return strings.ContainsRune("\n;|&()`{}<>", c) }

func isSpace(c rune) bool { return strings.ContainsRune(" \t\r\"'$\\", c) }
