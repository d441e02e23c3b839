package secrets

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// minLetters is the shortest searched spelling, in letters and digits.
const minLetters = 8

// encoding is a form in which tools write bytes as letters and digits.
type encoding struct {
	spell func(value string) []string
	// ignoresCase means that letters match in any case.
	ignoresCase bool
	// unlikeText marks encodings that do not look like ordinary text: a blank may replace a line end.
	unlikeText bool
	// numbers marks encodings as numbers with short separators of any kind. needsSeparator means that
	// numbers are never adjacent.
	numbers, needsSeparator bool
}

// encodings lists how tools usually write a value. A value inside a longer text has one spelling for
// each position in a group of the encoding.
var encodings = []encoding{
	{spell: textSpellings},
	{spell: base64Spellings, unlikeText: true},
	{spell: base32Spellings, unlikeText: true, ignoresCase: true},
	{spell: numberSpellings(1, 16, 2), numbers: true, ignoresCase: true},
	{spell: numberSpellings(1, 8, 3), numbers: true},
	{spell: numberSpellings(1, 10, 1), numbers: true, needsSeparator: true},
	{spell: numberSpellings(2, 16, 4), numbers: true, ignoresCase: true}, // hexdump and od -x without further flags
	{spell: numberSpellings(2, 8, 6), numbers: true},                     // od without flags
}

// textSpellings returns spellings with most letters unchanged.
func textSpellings(value string) []string {
	query, path := url.QueryEscape(value), url.PathEscape(value)
	return []string{
		value, escapeQuoted(value), html.EscapeString(value), query, path, lowerPercentEscapes(query), lowerPercentEscapes(path),
		strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(escapeQuoted(value)), // as encoding/json does
		strings.ReplaceAll(value, "=", "=3D"), // quoted-printable
	}
}

// lowerPercentEscapes returns a text with %2f instead of %2F.
func lowerPercentEscapes(text string) string {
	escaped := []byte(text)
	for i := 0; i+2 < len(escaped); i++ {
		if escaped[i] == '%' {
			copy(escaped[i+1:], bytes.ToLower(escaped[i+1:i+3]))
		}
	}
	return string(escaped)
}

// escapeQuoted returns a value escaped like in JSON and logs.
func escapeQuoted(value string) string { return strings.Trim(strconv.Quote(value), `"`) }

// base64Spellings returns value in base64, in both alphabets, for each position in a group of three bytes.
func base64Spellings(value string) []string {
	var all []string
	for before := range 3 {
		standard := encodedPart(base64.StdEncoding.EncodeToString, value, before, 6)
		all = append(all, standard, url.QueryEscape(standard), encodedPart(base64.URLEncoding.EncodeToString, value, before, 6))
	}
	return all
}

// base32Spellings returns value in base32, for each position in a group of five bytes.
func base32Spellings(value string) []string {
	var all []string
	for before := range 5 {
		all = append(all, encodedPart(base32.StdEncoding.EncodeToString, value, before, 5))
	}
	return all
}

// encodedPart returns the part of an encoded value that does not depend on other bytes (RFC 4648).
// before is the number of bytes in front of the value in its group. bits is the number of bits of an
// encoded character.
func encodedPart(encode func([]byte) string, value string, before, bits int) string {
	encoded := encode(append(make([]byte, before), value...))
	first := (8*before + bits - 1) / bits
	last := 8 * (before + len(value)) / bits
	return encoded[first:last]
}

// numberSpellings returns a function that spells a value as numbers of size bytes each, lowest byte first. The
// numbers are in base and padded with zeros to width digits.
func numberSpellings(size, base, width int) func(string) []string {
	return func(value string) []string {
		var all []string
		for first := range size {
			var texts []string
			for i := first; i+size <= len(value); i += size {
				n := uint64(0)
				for j := range size {
					n |= uint64(value[i+j]) << (8 * j)
				}
				digits := strconv.FormatUint(n, base)
				texts = append(texts, strings.Repeat("0", max(0, width-len(digits)))+digits)
			}
			all = append(all, strings.Join(texts, " "))
		}
		return all
	}
}

// spelling is a value in an encoding.
type spelling struct {
	*encoding
	name, value            string
	plain                  bool    // the value itself
	form                   string  // the encoded value
	letters                string  // the letters and digits of form, in lower case
	offsets                []int32 // their positions in form
	firstSecret, endSecret int     // bounds of the letters of the secret part; endSecret is exclusive
	minPart                int     // the shortest fragment in bytes of form; 0 means none
}

// spellings returns the searchable spellings of a value.
func spellings(v Value) []*spelling {
	var all []*spelling
	seen := map[string]bool{}
	for i := range encodings {
		for _, form := range encodings[i].spell(v.Secret) {
			if seen[form] {
				continue
			}
			seen[form] = true
			if s := newSpelling(&encodings[i], v, form); len(s.letters) >= minLetters {
				all = append(all, s)
			}
		}
	}
	return all
}

// newSpelling returns a value's spelling with its letters.
func newSpelling(e *encoding, v Value, form string) *spelling {
	s := &spelling{encoding: e, name: v.Name, value: v.Secret, plain: form == v.Secret, form: form}
	var l letters
	l.load(form)
	s.letters, s.offsets = string(l.lower), slices.Clone(l.offsets)
	from, to := secretPart(v.Secret)
	for s.firstSecret < len(s.offsets) && s.offsetInValue(s.firstSecret) < from {
		s.firstSecret++
	}
	s.endSecret = s.firstSecret
	for s.endSecret < len(s.offsets) && s.offsetInValue(s.endSecret) < to {
		s.endSecret++
	}
	if len(v.Secret) >= minFragmentedValue { // scaled from the value to form, and rounded up
		s.minPart = (minFragmentLength(v.Secret)*len(form) + len(v.Secret) - 1) / len(v.Secret)
	}
	return s
}

// offsetInValue returns a letter's position in the value: exact for a plain spelling, otherwise
// estimated.
func (s *spelling) offsetInValue(letter int) int {
	return int(s.offsets[letter]) * len(s.value) / len(s.form)
}

// valuePart returns the bytes of the value that letters[from:to] spell completely. In an encoding such as
// base64, the letters at both ends may have only some bits of a byte, so valuePart omits these bytes.
func (s *spelling) valuePart(from, to int) string {
	first, last := s.offsetInValue(from), s.offsetInValue(to-1)
	if !s.plain {
		first, last = first+1, last-1
	}
	return s.value[first:max(first, last+1)]
}

// gapBefore returns the text between a letter and the one before.
func (s *spelling) gapBefore(letter int) string {
	return s.form[s.offsets[letter-1]+1 : s.offsets[letter]]
}
