package markdown

// Units is the length of s in UTF-16 code units, in which GitHub counts.
func Units(s string) int {
	units := 0
	for _, r := range s {
		units += runeUnits(r)
	}
	return units
}

func runeUnits(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
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
		if units += runeUnits(r); units > limit {
			return s[:keep] + "…"
		}
	}
	return s
}
