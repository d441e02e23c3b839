package outcome

import (
	"fmt"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// How long a name in a message may be, and what is kept of a longer one, in characters.
const (
	maxName   = 500
	nameStart = 200
	nameEnd   = 100
)

// names are the parts of a message that may be a name, a path or an argument: what stands
// between double quotes on one line, and each word.
var names = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"|\S+`)

// ShortenNames returns a message in which names of more than 500 characters keep only their
// beginning, their end and their length. Whoever wrote them may want to bury the rest.
func ShortenNames(message string) string {
	if len(message) <= maxName {
		return message
	}
	return names().ReplaceAllStringFunc(message, func(name string) string {
		all := []rune(name)
		if len(all) <= maxName {
			return name
		}
		return fmt.Sprintf("%s … (%d characters) … %s", string(all[:nameStart]), len(all), string(all[len(all)-nameEnd:]))
	})
}
