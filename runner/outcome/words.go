package outcome

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Trimmed is an error's text without a full stop, for the end of a sentence.
func Trimmed(err error) string { return strings.TrimSuffix(strings.TrimSpace(err.Error()), ".") }

// Sentence makes an error's text one: a capital at the start, no full stop at
// the end.
func Sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Counted is a number of things in a message.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
