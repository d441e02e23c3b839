// Package secrets owns finding and removing secrets in text: values that are
// known, fragments of them, and what has the shape of a well-known token. It
// knows values, encodings and shapes; it does not know where text comes from or
// goes to.
package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MinLength is the length in bytes below which a value is not searched: it
// would be found in ordinary text.
const MinLength = 8

// Redactor removes secrets from text. The zero value knows shapes alone, nil
// removes nothing. It is safe for concurrent use.
type Redactor struct {
	replacer *strings.Replacer
	forms    []form
	short    []string
	grams    grams
	stands   func(fragment string) bool
}

// form is one spelling of a value.
type form struct{ name, text string }

// Value is a secret and the name that stands in its place.
type Value struct {
	Name, Secret string
}

// NewRedactor searches for the values, plain, escaped as in JSON and in base64
// (with and without padding, both alphabets), hex and URL encoding, for
// fragments of the plain values, and for shapes.
func NewRedactor(values []Value) *Redactor {
	r := &Redactor{}
	for _, v := range values {
		if v.Secret == "" {
			continue
		}
		if len(v.Secret) < MinLength {
			if !slices.Contains(r.short, v.Name) {
				r.short = append(r.short, v.Name)
			}
			continue
		}
		for _, text := range spellings(v.Secret) {
			r.forms = append(r.forms, form{v.Name, text})
		}
		r.grams.addFragments(v)
	}
	// The longest goes first, so that a value that holds another is removed
	// whole.
	sort.SliceStable(r.forms, func(i, j int) bool { return len(r.forms[i].text) > len(r.forms[j].text) })
	var list []string
	for _, f := range r.forms {
		list = append(list, f.text, mark(f.name))
		r.grams.addForm(f.text)
	}
	if len(list) > 0 {
		r.replacer = strings.NewReplacer(list...)
	}
	return r
}

// Except makes r leave alone fragments of which stands says that they stand
// where everybody can read them. It is called seldom, perhaps from several
// goroutines, and before r is used.
func (r *Redactor) Except(stands func(fragment string) bool) { r.stands = stands }

func mark(name string) string { return "[secret " + name + "]" }

func spellings(secret string) []string {
	raw := []byte(secret)
	texts := []string{
		secret,
		strings.Trim(strconv.Quote(secret), `"`), // as JSON and logs escape it
		hex.EncodeToString(raw),
		strings.ToUpper(hex.EncodeToString(raw)),
		url.QueryEscape(secret),
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			texts = append(texts, inBase64(encoding, raw, before))
		}
	}
	return texts
}

// inBase64 is what of raw stays the same in base64 where before bytes, counted
// in threes, and any bytes after it are encoded together with it (RFC 4648,
// section 4: three bytes make four characters of six bits).
func inBase64(encoding *base64.Encoding, raw []byte, before int) string {
	all := encoding.EncodeToString(append(make([]byte, before), raw...))
	first := (8*before + 5) / 6
	last := 8 * (before + len(raw)) / 6
	return all[first:last]
}

// Redact gives text without secrets. What has none is returned as it is.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	if r.replacer != nil && r.grams.mayHoldForm(text) {
		text = r.replacer.Replace(text)
	}
	spans := r.fragments(text, shapesIn(text, nil))
	if len(spans) == 0 {
		return text
	}
	return replaceSpans(text, spans)
}

// span is a part of a text that goes away.
type span struct {
	start, end int
	mark       string
}

// replaceSpans puts the marks in the place of spans. Of two that overlap the
// first grows to hold both.
func replaceSpans(text string, spans []span) string {
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var b strings.Builder
	done := 0
	for i, s := range spans {
		if i > 0 && s.start < done {
			if s.end > done {
				done = s.end
			}
			continue
		}
		b.WriteString(text[done:s.start])
		b.WriteString(s.mark)
		done = s.end
	}
	b.WriteString(text[done:])
	return b.String()
}

// Short names the values that are too short to be searched.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.short
}
