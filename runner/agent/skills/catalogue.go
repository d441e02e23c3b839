package skills

import (
	"sort"
	"strings"
)

// Limits of the list of skills, for a window in tokens: 2 % of the window including the surrounding
// words, at most 8,000 characters.
const (
	windowShare  = 50
	bytesInToken = 4
	maxCatalogue = 8_000
	aroundList   = 700 // bytes of the words and marks around the list
	// minTold is to how many characters descriptions are cut before skills are left out.
	minTold = 60
)

// catalogue returns the list of skills for a window, one per line, and the skills in it. To fit, it
// cuts descriptions first, then leaves out the last skills.
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

func lines(told []Skill, longest int) string {
	var s strings.Builder
	for _, skill := range told {
		s.WriteString("- " + skill.Name + ": " + oneLine(skill.Description, longest) + "\n")
	}
	return s.String()
}
