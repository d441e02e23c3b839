package v4a

import "strings"

// Format returns a patch section that replaces the lines old of a file by the lines now. from is
// the former path of a moved file, or "".
func Format(op Op, path, from, old, now string) string {
	var b strings.Builder
	lines := func(sign, text string) {
		for line := range strings.Lines(text) {
			b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	switch {
	case op == Delete:
		b.WriteString(deleteMarker + path + "\n")
	case op == Add && from == "":
		b.WriteString(addMarker + path + "\n")
		lines("+", now)
	case from != "":
		b.WriteString(updateMarker + from + "\n" + moveMarker + path + "\n")
	default:
		b.WriteString(updateMarker + path + "\n")
	}
	if op == Update && old+now != "" {
		b.WriteString(hunkMarker + "\n")
		lines("-", old)
		lines("+", now)
	}
	return b.String()
}
