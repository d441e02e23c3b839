// Package secrets owns finding and removing secrets in text. It knows values
// and their encodings; it does not know where text comes from or goes to.
//
// This version knows exact values alone. Shapes of well-known tokens and
// fragments of values are not searched yet.
package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MinLength is the length in bytes below which a value is not searched: it
// would be found in ordinary text.
const MinLength = 8

// Redactor removes known values from text. The zero value and nil remove
// nothing. It is safe for concurrent use.
type Redactor struct {
	replacer *strings.Replacer
	forms    []form
	short    []string
}

// form is one spelling of a value.
type form struct{ name, text string }

// Value is a secret and the name that stands in its place.
type Value struct {
	Name, Secret string
}

// NewRedactor searches for the values, plain and in base64 (with and without
// padding, both alphabets), hex and URL encoding.
func NewRedactor(values []Value) *Redactor {
	r := &Redactor{}
	for _, v := range values {
		if v.Secret == "" {
			continue
		}
		if len(v.Secret) < MinLength {
			r.short = append(r.short, v.Name)
			continue
		}
		for _, text := range spellings(v.Secret) {
			r.forms = append(r.forms, form{v.Name, text})
		}
	}
	// The longest goes first, so that a value that holds another is removed
	// whole.
	sort.SliceStable(r.forms, func(i, j int) bool { return len(r.forms[i].text) > len(r.forms[j].text) })
	var list []string
	for _, f := range r.forms {
		list = append(list, f.text, "[secret "+f.name+"]")
	}
	if len(list) > 0 {
		r.replacer = strings.NewReplacer(list...)
	}
	return r
}

func spellings(secret string) []string {
	raw := []byte(secret)
	return []string{
		secret,
		strings.Trim(strconv.Quote(secret), `"`), // as JSON and logs escape it
		strings.TrimRight(base64.StdEncoding.EncodeToString(raw), "="),
		strings.TrimRight(base64.URLEncoding.EncodeToString(raw), "="),
		hex.EncodeToString(raw),
		strings.ToUpper(hex.EncodeToString(raw)),
		url.QueryEscape(secret),
	}
}

// Redact gives text without the values.
func (r *Redactor) Redact(text string) string {
	if r == nil || r.replacer == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// Find names the values that stand in what from gives, sorted and each once.
func (r *Redactor) Find(from io.Reader) ([]string, error) {
	if r == nil || len(r.forms) == 0 {
		return nil, nil
	}
	overlap := len(r.forms[0].text) - 1 // the longest
	found := map[string]bool{}
	window := make([]byte, 0, overlap+windowSize)
	for {
		n, err := io.ReadFull(from, window[len(window):len(window)+windowSize])
		window = window[:len(window)+n]
		for _, f := range r.forms {
			if !found[f.name] && bytes.Contains(window, []byte(f.text)) {
				found[f.name] = true
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return slices.Sorted(maps.Keys(found)), nil
		case err != nil:
			return nil, err
		}
		window = append(window[:0], window[max(0, len(window)-overlap):]...)
	}
}

// windowSize is how many new bytes are searched at once.
const windowSize = 64 << 10

// Short names the values that are too short to be searched.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.short
}
