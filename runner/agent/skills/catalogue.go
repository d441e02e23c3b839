package skills

import (
	"sort"
	"strings"
)

// Limits of the list of skills. With its surrounding words it takes at most 2 % of the model's window (1/50), and
// at most 8,000 characters.
const (
	windowShare  = 50
	bytesInToken = 4
	maxCatalogue = 8_000
	aroundList   = 700 // bytes of the words around the list
	// minTold is the length in characters to which descriptions are cut before skills are left out.
	minTold = 60
)

// catalogue returns the list of skills, one per line, that fits a window of this many tokens, and the skills in
// it. If they do not fit, it shortens descriptions first, then leaves out the last skills.
func catalogue(all []Skill, window int64) (list string, told []Skill) {
	room := maxCatalogue
	if window > 0 {
		room = int(min(int64(room), window*bytesInToken/windowShare))
	}
	room -= aroundList
	told = all
	for len(told) > 0 && len(lines(told, minTold)) > room {
		told = told[:len(told)-1]
	}
	if len(told) == 0 {
		return "", nil
	}
	shorter := sort.Search(maxDescription-minTold, func(by int) bool { return len(lines(told, maxDescription-by)) <= room })
	return lines(told, maxDescription-shorter), told
}

// lines returns the list of skills, with descriptions of at most longest characters.
func lines(told []Skill, longest int) string {
	var s strings.Builder
	for _, skill := range told {
		s.WriteString("- " + skill.Name + ": " + oneLine(skill.Description, longest) + "\n")
	}
	return s.String()
}
