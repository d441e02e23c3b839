package markdown

import "unicode/utf16"

// Units is the length of s in UTF-16 code units, in which GitHub counts.
func Units(s string) int {
	units := 0
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return units
}

// Cut shortens s to at most limit UTF-16 units, at least 1, the last of which is
// "…" if anything was cut. No character is cut in half.
func Cut(s string, limit int) string {
	if len(s) <= limit { // no character has more units than bytes
		return s
	}
	units, keep := 0, 0
	for i, r := range s {
		if units < limit {
			keep = i
		}
		if units += utf16.RuneLen(r); units > limit {
			return s[:keep] + "…"
		}
	}
	return s
}
