package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a word of a command.
type Word struct {
	// Text is the word without quotes. In an unknown word, $NAME shows a variable and $(…) the
	// output of a command.
	Text string
	// Known reports that the program gets exactly Text, apart from globs and ~.
	Known bool
}

// knownWords returns the words of an argument vector, all known.
func knownWords(argv []string) []Word {
	words := make([]Word, 0, len(argv))
	for _, text := range argv {
		words = append(words, Word{text, true})
	}
	return words
}

// joinWords returns the texts of words, separated by blanks.
func joinWords(words []Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// evaluateWord returns a word with its quotes and escapes removed. It is unknown if it contains an
// expansion.
func evaluateWord(w *syntax.Word) Word {
	b := wordBuilder{known: true}
	for _, part := range w.Parts {
		b.addPart(part)
	}
	return Word{b.text.String(), b.known}
}

// wordBuilder evaluates the parts of a word.
type wordBuilder struct {
	text  strings.Builder
	known bool
}

// addPart adds a part of a word.
func (b *wordBuilder) addPart(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		b.text.WriteString(unescape(p.Value))
		b.known = b.known && !hasBraces(p.Value)
	case *syntax.SglQuoted:
		text, known := p.Value, true
		if p.Dollar {
			text, known = decodeANSIC(p.Value)
		}
		b.text.WriteString(text)
		b.known = b.known && known
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			b.addQuotedPart(inner)
		}
	case *syntax.ParamExp:
		b.addUnknown("$" + paramName(p))
	case *syntax.CmdSubst:
		b.addUnknown("$(…)")
	default:
		b.addUnknown("…")
	}
}

// addQuotedPart adds a part inside double quotes.
func (b *wordBuilder) addQuotedPart(part syntax.WordPart) {
	if literal, isLiteral := part.(*syntax.Lit); isLiteral {
		b.text.WriteString(unescapeQuoted(literal.Value))
		return
	}
	b.addPart(part)
}

// addUnknown adds a part with unknown text, and shows it as placeholder.
func (b *wordBuilder) addUnknown(placeholder string) {
	b.text.WriteString(placeholder)
	b.known = false
}

// paramName returns the variable of a plain expansion, or {…} for any other expansion.
func paramName(p *syntax.ParamExp) string {
	isModified := p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil
	if p.Param == nil || isModified {
		return "{…}"
	}
	return p.Param.Value
}

// hasBraces reports whether the shell may expand a literal to several words.
func hasBraces(s string) bool {
	return strings.Contains(s, "{") && (strings.Contains(s, ",") || strings.Contains(s, ".."))
}

// unescape removes the backslashes of unquoted text.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] != '\n' {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unescapeQuoted removes backslashes with a meaning inside double quotes.
var unescapeQuoted = strings.NewReplacer("\\\\", `\`, `\"`, `"`, `\$`, `$`, "\\`", "`", "\\\n", "").Replace

// decodeANSIC decodes the escapes of $'…'. known is false if the text has an escape that Go does not know.
func decodeANSIC(s string) (text string, known bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for s != "" {
		if rest, ok := strings.CutPrefix(s, `\e`); ok {
			b.WriteByte('\x1b')
			s = rest
			continue
		}
		value, isMultibyte, rest, err := strconv.UnquoteChar(s, '\'')
		if err != nil {
			return b.String() + s, false
		}
		if isMultibyte {
			b.WriteRune(value)
		} else { // an ASCII character, or a byte such as \xff
			b.WriteByte(byte(value))
		}
		s = rest
	}
	return b.String(), true
}

// maxBraced bounds the number of words that one word with braces expands to.
const maxBraced = 64

// expandWord returns the words that a word with a list in braces expands to. A sequence, or more words than
// maxBraced, gives one unknown word.
func expandWord(w *syntax.Word) []Word {
	withBraces := &syntax.Word{Parts: slices.Clone(w.Parts)} // a copy: syntax.Walk does not accept split braces
	if !syntax.SplitBraces(withBraces) {
		return []Word{evaluateWord(w)}
	}
	parts, ok := expandBraces(withBraces.Parts)
	if !ok {
		return []Word{evaluateWord(w)}
	}
	words := make([]Word, 0, len(parts))
	for _, p := range parts {
		words = append(words, evaluateWord(&syntax.Word{Parts: p}))
	}
	return words
}

// expandBraces expands lists in braces, in the shell's order. It reports false above maxBraced.
func expandBraces(parts []syntax.WordPart) (expanded [][]syntax.WordPart, ok bool) {
	expanded = [][]syntax.WordPart{nil}
	for _, part := range parts {
		choices, ok := expandPart(part)
		if !ok || len(expanded)*len(choices) > maxBraced {
			return nil, false
		}
		var longer [][]syntax.WordPart
		for _, before := range expanded {
			for _, choice := range choices {
				longer = append(longer, append(before[:len(before):len(before)], choice...))
			}
		}
		expanded = longer
	}
	return expanded, true
}

// expandPart returns the possible values of one part: several for a list in braces. It reports false
// above maxBraced.
func expandPart(part syntax.WordPart) (values [][]syntax.WordPart, ok bool) {
	list, isBraces := part.(*syntax.BraceExp)
	if !isBraces || list.Sequence {
		return [][]syntax.WordPart{{part}}, true
	}
	for _, element := range list.Elems {
		more, ok := expandBraces(element.Parts)
		if !ok || len(values)+len(more) > maxBraced {
			return nil, false
		}
		values = append(values, more...)
	}
	return values, true
}
