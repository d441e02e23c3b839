package declare

import (
	"fmt"
	"maps"
	"slices"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// maxName is the maximum length of a tool's name in a script, in bytes.
const maxName = 128

// identifier converts a name to a JavaScript identifier: all characters but ASCII letters, digits, _ and $ become _.
func identifier(name string) string {
	name = clip.Name(name[:min(len(name), maxName)], "_$", '_')
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "_" + name
	}
	return name
}

// Names maps the names of tools to their names in scripts, which are distinct identifiers. A valid identifier stays
// unchanged. If several names become equal, all but the alphabetically first get a number. The order of tools does not
// matter.
func Names(tools []string) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, name := range tools {
		if identifier(name) == name {
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
		base := identifier(name)
		scriptName := base
		for n := 2; taken[scriptName]; n++ {
			scriptName = fmt.Sprintf("%s_%d", base, n)
		}
		names[name], taken[scriptName] = scriptName, true
	}
	return names
}
