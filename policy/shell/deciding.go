package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// DecidingCommands returns the words of each command that can decide a script's exit status. It excludes
// commands in substitutions and those before a pipe. It returns nothing for an invalid script.
func DecidingCommands(script string) (commands [][]string) {
	r := newReader()
	file, err := r.parseScript(script)
	if err != nil || file == nil {
		return nil
	}
	var visit func(syntax.Node) bool
	visit = func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				syntax.Walk(n.Y, visit)
				return false
			}
		case *syntax.CallExpr:
			var argv []string
			for _, word := range n.Args {
				argv = append(argv, evaluateWord(word).Text)
			}
			if len(argv) > 0 {
				commands = append(commands, decidingIn(argv)...)
			}
			return false
		}
		return true
	}
	syntax.Walk(file, visit)
	return commands
}

// decidingIn returns the deciding commands of the script in sh -c SCRIPT, or else argv itself.
func decidingIn(argv []string) [][]string {
	if script, ok := inlineScript(knownWords(argv[1:])); ok && slices.Contains(shells, programName(argv[0])) {
		return DecidingCommands(script.Text)
	}
	return [][]string{argv}
}
