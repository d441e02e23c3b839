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
	// minDescription is the length in characters to which descriptions are cut before skills are left out.
	minDescription = 60
)

// catalogue returns a list of skills as text, one per line, and the skills in it. The list fits a window of this many
// tokens; 0 means unknown. If not all skills fit, it first shortens descriptions, then leaves out the last skills.
func catalogue(all []Skill, window int64) (list string, listed []Skill) {
	room := maxCatalogue
	if window > 0 {
		room = int(min(int64(room), window*bytesInToken/windowShare))
	}
	room -= aroundList
	listed = all
	for len(listed) > 0 && len(listOf(listed, minDescription)) > room {
		listed = listed[:len(listed)-1]
	}
	if len(listed) == 0 {
		return "", nil
	}
	// Find the fewest characters by which the longest descriptions must be cut.
	cut := sort.Search(maxDescription-minDescription, func(n int) bool { return len(listOf(listed, maxDescription-n)) <= room })
	return listOf(listed, maxDescription-cut), listed
}

// listOf returns the list of skills as text. It cuts each description to maxLength characters.
func listOf(listed []Skill, maxLength int) string {
	var s strings.Builder
	for _, skill := range listed {
		s.WriteString("- " + skill.Name + ": " + oneLine(skill.Description, maxLength) + "\n")
	}
	return s.String()
}
