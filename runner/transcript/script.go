package transcript

import (
	"regexp"
	"slices"
)

// scriptTools are the tools whose calls are scripts that call others, with the JavaScript as input.
var scriptTools = []string{"exec", "js_repl"}

// IsScript says whether the input of a tool's calls is JavaScript that may call other tools.
func IsScript(tool string) bool { return slices.Contains(scriptTools, tool) }

// pragma is the first line of a script where it says how to run it.
var pragma = regexp.MustCompile(`^//[ \t]*[@\w.-]+:[^\n]*\n`)
