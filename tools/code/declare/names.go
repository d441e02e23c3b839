package declare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostName is how many bytes the name of a tool may have in a script.
const mostName = 128

// Identifier makes a name one that JavaScript takes behind a dot: what is no ASCII letter, digit, _ or $
// becomes _.
func Identifier(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '$' {
			return r
		}
		return '_'
	}, name[:min(len(name), mostName)])
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// Names gives tools the names by which scripts call them, whatever the order of the tools. One whose name
// is an identifier keeps it; of others that come to the same one, all but the first by the alphabet get a
// number.
func Names(tools []string) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, name := range tools {
		if Identifier(name) == name {
			names[name], taken[name] = name, true
		}
	}
	others := map[string]bool{}
	for _, name := range tools {
		if names[name] == "" {
			others[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		plain := Identifier(name)
		given := plain
		for n := 2; taken[given]; n++ {
			given = fmt.Sprintf("%s_%d", plain, n)
		}
		names[name], taken[given] = given, true
	}
	return names
}
