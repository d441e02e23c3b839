package credential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strings"
)

// spellings are the ways in which text is commonly written within other text, each with
// what stands for it, which is as long: by the same spelling of instead, or by its
// beginning, or by that and some zeros more.
func spellings(text, instead string, of int) []needle {
	var all []needle
	known := make(map[string]bool)
	add := func(spelt, replacement string) {
		if known[spelt] {
			return
		}
		known[spelt] = true
		if missing := len(spelt) - len(replacement); missing > 0 {
			replacement += strings.Repeat("0", missing)
		}
		all = append(all, needle{[]byte(spelt), []byte(replacement[:len(spelt)]), of})
	}
	for _, spell := range plainSpellings {
		add(spell(text), spell(instead))
	}
	// Who sends a user and a password as Basic has a colon before or behind them: with
	// it, no bit of the value is in a letter that it shares with something unknown.
	for _, around := range [][2]string{{":", ""}, {"", ":"}, {"", ""}} {
		for offset := range 3 {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				inner, innerInstead := around[0]+text+around[1], around[0]+instead+around[1]
				add(inBase64(e, inner, offset, true), inBase64(e, innerInstead, offset, true))
				add(inBase64(e, inner, offset, false), inBase64(e, innerInstead, offset, false))
			}
		}
	}
	return all
}

var plainSpellings = []func(string) string{
	func(text string) string { return text },
	url.QueryEscape, url.PathEscape,
	func(text string) string { return lowerEscapes(url.QueryEscape(text)) },
	func(text string) string { return lowerEscapes(url.PathEscape(text)) },
	inJSON, html.EscapeString,
	func(text string) string { return withoutHTML(inJSON(text)) },
	func(text string) string { return strings.ReplaceAll(withoutHTML(inJSON(text)), "/", `\/`) },
	func(text string) string { return strings.ReplaceAll(inJSON(text), "/", `\/`) },
	func(text string) string { return hex.EncodeToString([]byte(text)) },
	func(text string) string { return strings.ToUpper(hex.EncodeToString([]byte(text))) },
}

// lowerEscapes writes the digits of %XX small.
func lowerEscapes(text string) string {
	lower := []byte(text)
	for i := 0; i+2 < len(lower); i++ {
		if lower[i] == '%' {
			copy(lower[i+1:i+3], strings.ToLower(text[i+1:i+3]))
		}
	}
	return string(lower)
}

func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // no string fails
	}
	return string(quoted[1 : len(quoted)-1])
}

// withoutHTML takes the escapes for HTML out of JSON, which few encoders make.
func withoutHTML(quoted string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(quoted)
}

// inBase64 is what of text is sure to be seen in base64, where so many bytes as offset
// says stand before it in the group of three: without the letters that it shares with
// others. At the end of what is encoded it shares its last letter with none.
func inBase64(e *base64.Encoding, text string, offset int, end bool) string {
	const bitsOfByte, bitsOfLetter = 8, 6
	encoded := e.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", offset) + text))
	first := (offset*bitsOfByte + bitsOfLetter - 1) / bitsOfLetter
	if end {
		return encoded[first:]
	}
	return encoded[first : (offset+len(text))*bitsOfByte/bitsOfLetter]
}
