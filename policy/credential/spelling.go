package credential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"sync"
)

// encodedForms returns the usual encodings of text inside other text. The replacement of each is the
// same encoding of replacement, cut or padded with zeros to the same length. credential is an index in the set.
func encodedForms(text, replacement string, credential int) []needle {
	var needles []needle
	seen := make(map[string]bool)
	add := func(encoded, replacement string) {
		if seen[encoded] {
			return
		}
		seen[encoded] = true
		if missing := len(encoded) - len(replacement); missing > 0 {
			replacement += strings.Repeat("0", missing)
		}
		needles = append(needles, needle{[]byte(encoded), []byte(replacement[:len(encoded)]), credential})
	}
	for _, encoded := range plainForms(text) {
		add(encoded, replacement)
	}
	// Basic authentication puts a colon before or after the value. With the colon, no base64 letter
	// shares bits with unknown text.
	for _, around := range [][2]string{{":", ""}, {"", ":"}, {"", ""}} {
		for offset := range 3 {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				atEnd, within := independentBase64(encoding, around[0]+text+around[1], offset)
				atEndInstead, withinInstead := independentBase64(encoding, around[0]+replacement+around[1], offset)
				add(atEnd, atEndInstead)
				add(within, withinInstead)
			}
		}
	}
	return needles
}

// plainForms returns the text itself, in hexadecimal, and escaped once and twice. An address within
// another address is escaped twice.
func plainForms(text string) []string {
	forms := []string{text, hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text)))}
	escapeFuncs := escapes()
	for _, inner := range escapeFuncs {
		once := inner(text)
		forms = append(forms, once)
		for _, outer := range escapeFuncs {
			forms = append(forms, outer(once))
		}
	}
	return forms
}

// escapes returns the escape functions of common libraries for addresses, JSON and HTML. The libraries
// differ in the characters that they escape.
var escapes = sync.OnceValue(func() []func(string) string {
	return []func(string) string{
		escapeFunc(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}", "%%%02X"), // Go's QueryEscape
		escapeFunc(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}", "%%%02x"),
		escapeFunc(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}~", "%%%02X"), // PHP before 5.3, Python before 3.7
		escapeFunc(`!"#$%&'()*+,:;<=>?@[\]^`+"`{|}", "%%%02X"),   // Python's quote
		escapeFunc(`"#$%&+,/:;<=>?@[\]^`+"`{|}", "%%%02X"),       // encodeURIComponent
		escapeFunc(`"%<>[\]^`+"`{|}", "%%%02X"),                  // encodeURI
		escapeFunc(`!"#%'()*,/;<>?[\]^`+"`{|}", "%%%02X"),        // Go's PathEscape
		escapeFunc(`"#%/<>?[\]^`+"`{|}", "%%%02X"),               // a segment of a path (RFC 3986, 3.3)
		escapeJSON, withEscapedSlashes(escapeJSON),
		func(text string) string { return withoutHTMLEscapes(escapeJSON(text)) },
		withEscapedSlashes(func(text string) string { return withoutHTMLEscapes(escapeJSON(text)) }),
		escapeFunc(`"&'+<>\`+"`", `\u%04X`), escapeFunc(`"&'+<>\`+"`", `\u%04x`), // .NET, PHP
		html.EscapeString,
		entityFunc(`'`, "&#x27;"), // Python
		entityFunc(`'`, "&#039;"), // PHP
		entityFunc(),              // without the apostrophe
		entityFunc(`'`, "&#x27;", `+`, "&#x2B;", "`", "&#x60;"),               // .NET
		entityFunc(`'`, "&#39;", `/`, "&#x2F;", `=`, "&#x3D;", "`", "&#x60;"), // Mustache
		entityFunc(`'`, "&#x27;", `=`, "&#x3D;", "`", "&#x60;"),               // Handlebars
	}
})

// entityFunc returns a function that replaces HTML's special characters by entities. further lists more
// pairs of a character and its entity.
func entityFunc(further ...string) func(string) string {
	return strings.NewReplacer(append([]string{`&`, "&amp;", `<`, "&lt;", `>`, "&gt;", `"`, "&quot;"}, further...)...).Replace
}

// escapeFunc returns a function that escapes each of the characters. format formats its number.
func escapeFunc(characters, format string) func(string) string {
	pairs := make([]string, 0, 2*len(characters))
	for _, c := range []byte(characters) {
		pairs = append(pairs, string(c), fmt.Sprintf(format, c))
	}
	return strings.NewReplacer(pairs...).Replace
}

// withEscapedSlashes adds to quoted the escape \/ for slashes, as some JSON encoders do.
func withEscapedSlashes(quoted func(string) string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(quoted(text), "/", `\/`) }
}

// escapeJSON returns text as inside a JSON string, with Go's escapes for HTML.
func escapeJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // no string fails
	}
	return string(quoted[1 : len(quoted)-1])
}

// withoutHTMLEscapes undoes the HTML escapes of Go's JSON encoder, which most encoders lack.
func withoutHTMLEscapes(quoted string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(quoted)
}

// independentBase64 returns the letters of text's base64 that depend on text alone: atEnd if nothing follows
// text, and within, mostly without the last letter, if unknown bytes follow. offset is the number of bytes
// before text in its group of three.
func independentBase64(encoding *base64.Encoding, text string, offset int) (atEnd, within string) {
	const bitsOfByte, bitsOfLetter = 8, 6
	encoded := encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", offset) + text))
	first := (offset*bitsOfByte + bitsOfLetter - 1) / bitsOfLetter
	return encoded[first:], encoded[first : (offset+len(text))*bitsOfByte/bitsOfLetter]
}
