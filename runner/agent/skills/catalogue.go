package skills

import (
	"sort"
	"strings"
)

// Limits of the list of skills, for a window in tokens: 2 % of the window including the surrounding
// words, at most 8,000 characters.
const (
	windowShare   = 50
	bytesInToken  = 4
	mostCatalogue = 8_000
	aroundList    = 700 // bytes of the words and marks around the list
	// shortestTold is to how many characters descriptions are cut before skills are left out.
	shortestTold = 60
)

// catalogue returns the list of skills for a window, one per line, and the skills in it. To fit, it
// cuts descriptions first, then leaves out the last skills.
func catalogue(all []Skill, window int64) (list string, told []Skill) {
	room := mostCatalogue
	if window > 0 {
		room = int(min(int64(room), window*bytesInToken/windowShare))
	}
	room -= aroundList
	told = all
	for len(told) > 0 && len(lines(told, shortestTold)) > room {
		told = told[:len(told)-1]
	}
	if len(told) == 0 {
		return "", nil
	}
	shorter := sort.Search(mostDescription-shortestTold, func(by int) bool { return len(lines(told, mostDescription-by)) <= room })
	return lines(told, mostDescription-shorter), told
}

func lines(told []Skill, longest int) string {
	var s strings.Builder
	for _, skill := range told {
		s.WriteString("- " + skill.Name + ": " + oneLine(skill.Description, longest) + "\n")
	}
	return s.String()
}
