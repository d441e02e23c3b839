// Package secrets owns finding and removing secrets in text. It knows values
// and their encodings; it does not know where text comes from or goes to.
//
// This version knows exact values alone. Shapes of well-known tokens and
// fragments of values are not searched yet.
package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
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
	short    []string
}

// Value is a secret and the name that stands in its place.
type Value struct {
	Name, Secret string
}

// NewRedactor searches for the values, plain and in base64 (with and without
// padding, both alphabets), hex and URL encoding.
func NewRedactor(values []Value) *Redactor {
	r := &Redactor{}
	var pairs []pair
	for _, v := range values {
		if v.Secret == "" {
			continue
		}
		if len(v.Secret) < MinLength {
			r.short = append(r.short, v.Name)
			continue
		}
		for _, form := range forms(v.Secret) {
			pairs = append(pairs, pair{form, "[secret " + v.Name + "]"})
		}
	}
	// The longest goes first, so that a value that holds another is removed
	// whole.
	sort.SliceStable(pairs, func(i, j int) bool { return len(pairs[i].old) > len(pairs[j].old) })
	var list []string
	for _, p := range pairs {
		list = append(list, p.old, p.new)
	}
	if len(list) > 0 {
		r.replacer = strings.NewReplacer(list...)
	}
	return r
}

type pair struct{ old, new string }

func forms(secret string) []string {
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

// Short names the values that are too short to be searched.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.short
}
