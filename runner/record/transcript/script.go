package transcript

import (
	"regexp"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// IsScript says whether the input of a tool's calls is JavaScript that may call other tools.
func IsScript(tool string) bool { return dialect.Is(tool, dialect.Scripts) }

// pragma is the first line of a script where it says how to run it.
var pragma = regexp.MustCompile(`^//[ \t]*[@\w.-]+:[^\n]*\n`)
