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
// same encoding of instead, cut or padded with zeros to the same length.
func encodedForms(text, instead string, credential int) []needle {
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
		all = append(all, needle{[]byte(spelt), []byte(replacement[:len(spelt)]), credential})
	}
	for _, spelt := range plainForms(text) {
		add(spelt, instead)
	}
	// Basic authentication puts a colon before or after the value. With the colon, no base64 letter
	// shares bits with unknown text.
	for _, around := range [][2]string{{":", ""}, {"", ":"}, {"", ""}} {
		for offset := range 3 {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				inner, innerInstead := around[0]+text+around[1], around[0]+instead+around[1]
				add(base64Part(e, inner, offset, true), base64Part(e, innerInstead, offset, true))
				add(base64Part(e, inner, offset, false), base64Part(e, innerInstead, offset, false))
			}
		}
	}
	return all
}

// plainForms returns the text itself, in hexadecimal, and escaped once and twice. An address within
// another address is escaped twice.
func plainForms(text string) []string {
	all := []string{text, hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text)))}
	ways := escapes()
	for _, inner := range ways {
		once := inner(text)
		all = append(all, once)
		for _, outer := range ways {
			all = append(all, outer(once))
		}
	}
	return all
}

// escapes returns the escape functions of common libraries for addresses, JSON and HTML. The libraries
// differ in the characters that they escape.
var escapes = sync.OnceValue(func() []func(string) string {
	return []func(string) string{
		escaping(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}", "%%%02X"), // Go's QueryEscape
		escaping(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}", "%%%02x"),
		escaping(`!"#$%&'()*+,/:;<=>?@[\]^`+"`{|}~", "%%%02X"), // PHP before 5.3, Python before 3.7
		escaping(`!"#$%&'()*+,:;<=>?@[\]^`+"`{|}", "%%%02X"),   // Python's quote
		escaping(`"#$%&+,/:;<=>?@[\]^`+"`{|}", "%%%02X"),       // encodeURIComponent
		escaping(`"%<>[\]^`+"`{|}", "%%%02X"),                  // encodeURI
		escaping(`!"#%'()*,/;<>?[\]^`+"`{|}", "%%%02X"),        // Go's PathEscape
		escaping(`"#%/<>?[\]^`+"`{|}", "%%%02X"),               // a segment of a path (RFC 3986, 3.3)
		inJSON, slashes(inJSON),
		func(text string) string { return withoutHTML(inJSON(text)) },
		slashes(func(text string) string { return withoutHTML(inJSON(text)) }),
		escaping(`"&'+<>\`+"`", `\u%04X`), escaping(`"&'+<>\`+"`", `\u%04x`), // .NET, PHP
		html.EscapeString,
		entities(`'`, "&#x27;"), // Python
		entities(`'`, "&#039;"), // PHP
		entities(),              // without the apostrophe
		entities(`'`, "&#x27;", `+`, "&#x2B;", "`", "&#x60;"),               // .NET
		entities(`'`, "&#39;", `/`, "&#x2F;", `=`, "&#x3D;", "`", "&#x60;"), // Mustache
		entities(`'`, "&#x27;", `=`, "&#x3D;", "`", "&#x60;"),               // Handlebars
	}
})

// entities returns a function that replaces HTML's special characters by entities. further lists more
// pairs of a character and its entity.
func entities(further ...string) func(string) string {
	return strings.NewReplacer(append([]string{`&`, "&amp;", `<`, "&lt;", `>`, "&gt;", `"`, "&quot;"}, further...)...).Replace
}

// escaping returns a function that escapes each character in some. format formats its number.
func escaping(some, format string) func(string) string {
	pairs := make([]string, 0, 2*len(some))
	for _, c := range []byte(some) {
		pairs = append(pairs, string(c), fmt.Sprintf(format, c))
	}
	return strings.NewReplacer(pairs...).Replace
}

// slashes adds to quoted the escape \/ for slashes, as some JSON encoders do.
func slashes(quoted func(string) string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(quoted(text), "/", `\/`) }
}

func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // no string fails
	}
	return string(quoted[1 : len(quoted)-1])
}

// withoutHTML undoes the HTML escapes of Go's JSON encoder, which most encoders lack.
func withoutHTML(quoted string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(quoted)
}

// base64Part returns the letters of text's base64 that depend on text alone. offset is the number of
// bytes before text in its group of three. With end, nothing follows text, so the last letter is
// included.
func base64Part(e *base64.Encoding, text string, offset int, end bool) string {
	const bitsOfByte, bitsOfLetter = 8, 6
	encoded := e.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", offset) + text))
	first := (offset*bitsOfByte + bitsOfLetter - 1) / bitsOfLetter
	if end {
		return encoded[first:]
	}
	return encoded[first : (offset+len(text))*bitsOfByte/bitsOfLetter]
}
