package transcript

import (
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// IsScript reports whether a tool's input is JavaScript that may call other tools.
func IsScript(tool string) bool { return dialect.Is(tool, dialect.Scripts) }

// scriptOptionsLine matches a first line that has options of a script.
var scriptOptionsLine = lazyregexp.New(`^//[ \t]*[@\w.-]+:[^\n]*\n`)
