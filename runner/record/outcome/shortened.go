package outcome

import (
	"fmt"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// The maximum length of a name in a message, and how much of a longer name is kept, in characters.
const (
	maxName   = 500
	nameStart = 200
	nameEnd   = 100
)

// nameLike matches parts of a message that may be a name, path or argument: a text in double quotes on
// one line, or a word.
var nameLike = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"|\S+`)

// ShortenNames returns a message with shortened names. Of a name of more than 500 characters, the
// beginning, the end and the length stay. A hostile name could otherwise hide the rest of the
// message.
func ShortenNames(message string) string {
	if len(message) <= maxName {
		return message
	}
	return nameLike().ReplaceAllStringFunc(message, func(name string) string {
		all := []rune(name)
		if len(all) <= maxName {
			return name
		}
		return fmt.Sprintf("%s … (%d characters) … %s", string(all[:nameStart]), len(all), string(all[len(all)-nameEnd:]))
	})
}
