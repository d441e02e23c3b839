// Package clip shortens text without cutting a character in half.
package clip

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Mark replaces the omitted part of a text.
const Mark = "…"

// Start returns the first n bytes of text, or up to 3 fewer so that it ends with a whole character.
func Start(text string, n int) string { return text[:characterBoundary(text, n, -1)] }

// End returns the last n bytes of text, or up to 3 fewer so that it begins with a whole character.
func End(text string, n int) string { return text[characterBoundary(text, len(text)-n, 1):] }

// StartLines is Start without an incomplete last line, unless that is more than a quarter of n bytes.
func StartLines(text string, n int) string {
	start := Start(text, n)
	if lines := strings.LastIndexByte(start, '\n') + 1; len(start) < len(text) && lines >= n-n/4 {
		return start[:lines]
	}
	return start
}

// EndLines is End without an incomplete first line, unless that is more than a quarter of n bytes.
func EndLines(text string, n int) string {
	end := End(text, n)
	isCut := len(end) < len(text) && text[len(text)-len(end)-1] != '\n'
	if part := strings.IndexByte(end, '\n') + 1; isCut && part <= n/4 {
		return end[part:]
	}
	return end
}

// Bytes returns text, or its first n bytes and Mark if it is longer.
func Bytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return Start(text, n) + Mark
}

// Line returns text on one line, clipped as by Bytes.
func Line(text string, n int) string {
	return Bytes(strings.Join(strings.Fields(text), " "), n)
}

// SHA returns the first 12 characters of a commit's id or another digest.
func SHA(id string) string { return Start(id, 12) }

// Duration returns d for people, without units of zero at its end: 1h, 10m, 1m5s.
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range [...]string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// List returns the first n entries separated by commas, and Mark if there are more: "a, b, …".
func List(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:n], ", ") + ", " + Mark
}

// Some returns the first n entries in a sentence, and the number of the others: "a, b and 3 more".
func Some(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:n], ", ") + fmt.Sprintf(" and %d more", len(all)-n)
}

// characterBoundary returns the offset closest to at where a character of text starts, or the start or end of
// text. It searches backward (step -1) or forward (step 1). Binary text may have no such offset within four bytes.
// Then the result is at, moved into the bounds of text.
func characterBoundary(text string, at, step int) int {
	at = min(max(at, 0), len(text))
	for i := range utf8.UTFMax {
		offset := at + i*step
		startsCharacter := offset >= 0 && offset < len(text) && utf8.RuneStart(text[offset])
		if startsCharacter || at == 0 || offset == len(text) {
			return offset
		}
	}
	return at
}
