// Package secrets finds and removes secrets in text: known values, their fragments, and tokens of
// known shapes. It does not know the origin or destination of the text.
package secrets

import (
	"slices"
	"sort"
	"strings"
	"sync"
)

// MinLength is the shortest searched value in bytes. Ordinary text contains shorter ones.
const MinLength = 8

// Redactor removes secrets from text. The zero value finds only shapes, and nil finds nothing. It is
// safe for concurrent use.
type Redactor struct {
	replacer      *strings.Replacer
	forms         []form
	tooShort      []string
	grams         grams
	encodedFinder func() *encodedFinder // nil without values
	isPublic      func(fragment string) bool
}

// form is one spelling of a value.
type form struct{ name, text string }

// Value is a secret and its name for messages.
type Value struct {
	Name, Secret string
}

// NewRedactor returns a Redactor for values: plain, escaped as in JSON, in base64 (with and without
// padding, both alphabets), hex and URL encoding. It also finds fragments of plain values, and
// shapes.
func NewRedactor(values []Value) *Redactor {
	r := &Redactor{}
	var known []Value
	for _, v := range values {
		if v.Secret = strings.TrimSpace(v.Secret); v.Secret == "" { // a pasted value may end in a line break that is not sent
			continue
		}
		if len(v.Secret) < MinLength {
			if !slices.Contains(r.tooShort, v.Name) {
				r.tooShort = append(r.tooShort, v.Name)
			}
			continue
		}
		r.forms = append(r.forms, form{v.Name, v.Secret})
		if escaped := escapeQuoted(v.Secret); escaped != v.Secret {
			r.forms = append(r.forms, form{v.Name, escaped})
		}
		r.grams.addFragments(v)
		known = append(known, v)
	}
	// The longest first: a value that contains another is removed whole.
	sort.SliceStable(r.forms, func(i, j int) bool { return len(r.forms[i].text) > len(r.forms[j].text) })
	var list []string
	for _, f := range r.forms {
		list = append(list, f.text, secretMark(f.name))
		r.grams.addForm(f.text)
	}
	if len(list) > 0 {
		r.replacer = strings.NewReplacer(list...)
		r.encodedFinder = sync.OnceValue(func() *encodedFinder { return newEncodedFinder(known) }) // costly, and many redactors get no text
	}
	return r
}

// ExemptPublic keeps fragments in the text for which isPublic reports true. isPublic must be safe for
// concurrent use. Call ExemptPublic before any other method.
func (r *Redactor) ExemptPublic(isPublic func(fragment string) bool) { r.isPublic = isPublic }

func secretMark(name string) string { return "[secret " + name + "]" }
func partMark(name string) string   { return "[part of secret " + name + "]" }

// Redact returns text without secrets.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	if r.replacer != nil && r.grams.hasForm(text) {
		text = r.replacer.Replace(text)
	}
	spans := r.appendEncoded(text, r.appendFragments(text, shapesIn(text)))
	if len(spans) == 0 {
		return text
	}
	return replaceSpans(text, spans)
}

// appendEncoded appends the spans of encoded values, and of parts of them, in text.
func (r *Redactor) appendEncoded(text string, spans []span) []span {
	if r.encodedFinder == nil {
		return spans
	}
	r.encodedFinder().find(text, func(f finding) {
		switch {
		case f.whole:
			spans = append(spans, span{f.start, f.end, secretMark(f.spelling.name)})
		case r.isPublic == nil || !r.isPublic(f.part):
			spans = append(spans, span{f.start, f.end, partMark(f.spelling.name)})
		}
	})
	return spans
}

// span is a part of a text to replace.
type span struct {
	start, end  int
	replacement string
}

// replaceSpans replaces spans by their marks. Overlapping spans become one with the longest one's
// mark.
func replaceSpans(text string, spans []span) string {
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var b strings.Builder
	copied := 0
	for i := 0; i < len(spans); {
		longest, end := spans[i], spans[i].end
		start := longest.start
		for i++; i < len(spans) && spans[i].start < end; i++ {
			if s := spans[i]; s.end-s.start > longest.end-longest.start {
				longest = s
			}
			end = max(end, spans[i].end)
		}
		b.WriteString(text[copied:start])
		b.WriteString(longest.replacement)
		copied = end
	}
	b.WriteString(text[copied:])
	return b.String()
}

// Short returns the names of values too short for a search.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.tooShort
}
