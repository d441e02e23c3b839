package markdown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// visibleText returns a text with only visible characters. It removes terminal sequences, format
// characters (bidirectional controls, zero width, tags) and variation selectors. It replaces other
// control characters by their pictures, and unassigned ones by U+FFFD. Newlines and tabs stay;
// "\r\n" becomes "\n".
func visibleText(s string) string {
	return replaceHidden(s, func(*strings.Builder, rune, rune) {})
}

// Show is like visibleText, but shows the number of a removed character, as in ‹U+202E›. Only characters that
// style or join emoji vanish without a trace.
func Show(s string) string {
	return replaceHidden(s, func(b *strings.Builder, before, r rune) {
		if !isEmojiStyle(before, r) {
			fmt.Fprintf(b, "‹U+%04X›", r)
		}
	})
}

// replaceHidden is visibleText, and calls onHidden for each removed character r. onHidden may write a
// replacement. before is the character before r, or -1 at the start.
func replaceHidden(s string, onHidden func(b *strings.Builder, before, r rune)) string {
	if plainPrefix(s) == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	before := rune(-1)
	for i := 0; i < len(s); {
		if n := plainPrefix(s[i:]); n > 0 {
			b.WriteString(s[i : i+n])
			i += n
			before = rune(s[i-1])
			continue
		}
		if n := terminalSequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r == '\r' && strings.HasPrefix(s[i:], "\n") {
			continue
		}
		if shown := visibleForm(r); shown >= 0 {
			b.WriteRune(shown)
		} else {
			onHidden(&b, before, r)
		}
		before = r
	}
	return b.String()
}

// Characters that style or join emoji: Unicode Technical Standard #51, sections 1.4.3 and 1.4.6.
const (
	textStyle  = 0xfe0e
	emojiStyle = 0xfe0f
	joiner     = 0x200d
)

const blankBraille = 0x2800 // a symbol for Unicode

// isEmojiStyle reports whether r styles or joins the emoji or symbol before it.
func isEmojiStyle(before, r rune) bool {
	switch r {
	case textStyle, emojiStyle:
		return unicode.IsSymbol(before) || unicode.IsDigit(before) || before == '#' || before == '*'
	case joiner:
		return unicode.Is(unicode.So, before) || before == emojiStyle
	}
	return false
}

// plainPrefix returns the length of the visible ASCII text at the beginning of s. Newlines and tabs belong
// to it.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return i
		}
	}
	return len(s)
}

// terminalSequence returns the length of the control sequence (ECMA-48, section 5.4) at the
// beginning of s, or 0 if there is none.
func terminalSequence(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}
	return 0
}

// visibleForm returns the character to show for r, or a negative number to remove r.
func visibleForm(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return 0x2400 + r // control pictures have the order of ASCII
	case r == 0x7f:
		return 0x2421
	case Hidden(r):
		return -1
	case unicode.IsSpace(r) && r > 0xa0, unicode.Is(unicode.Zs, r):
		return ' '
	case !unicode.IsGraphic(r): // C1 controls, private use, unassigned
		return utf8.RuneError
	}
	return r
}

// Hidden reports whether r is invisible or controls its neighbours. Such characters are format
// characters (bidirectional controls, zero width, tags), variation selectors and fillers.
func Hidden(r rune) bool {
	return unicode.Is(unicode.Cf, r) || clip.IsInvisible(r) || r == emojiStyle || r == blankBraille
}

// oneLine returns s cleaned. Newlines and runs of blanks become one blank each.
func oneLine(s string) string {
	return strings.Join(strings.Fields(visibleText(s)), " ")
}
