package v4a

import "strings"

// Rename gives a patch with other paths, as text: all else stands as it stood, and the lines that
// name files have no blanks around them. An error is a [*ParseError].
func Rename(text string, name func(path string) string) (string, error) {
	p, err := Parse(text)
	if err != nil {
		return "", err
	}
	body, err := unwrap(text)
	if err != nil {
		return "", err
	}
	lines := strings.Split(body, "\n")
	lines[0] = beginMarker
	markers := map[Op]string{Add: addMarker, Delete: deleteMarker, Update: updateMarker}
	for _, s := range p.Sections {
		at := s.Line - 1 // lines count from 1
		lines[at] = markers[s.Op] + name(s.Path)
		for s.MoveTo != "" && !strings.HasPrefix(lines[at], moveMarker) { // no line of a hunk begins so
			at++
		}
		if s.MoveTo != "" {
			lines[at] = moveMarker + name(s.MoveTo)
		}
	}
	return strings.Join(lines, "\n") + endMarker + "\n", nil
}
