// Package claims owns which files an agent's summary says it changed, and which of them the change does not
// touch. It refuses to know what becomes of a claim.
package claims

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Bounds on the texts searched and the claims listed.
const (
	longest = 64 << 10 // bytes of a summary
	most    = 20
)

var (
	// says finds a sentence that claims a change that was made.
	says = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s*+>#-]*(?:i (?:have |also )*|we (?:have |also )*|also )?(?:added|created|updated|changed|edited|modified|fixed|rewrote|removed|deleted|renamed|extended|implemented)\b`)
	})
	// doubts finds what takes a claim back, or is about another time or change.
	doubts = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:not|no|never|without|unchanged|untouched|would|could|should|can|will|must|earlier|already|previous(?:ly)?|before|upstream|if|see|like|per|from|in the same way|as in)\b|n't\b`)
	})
	// file finds a path of a common kind of file in a code span.
	file = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("`((?:[\\w.@+-]+/)*[\\w@+-][\\w.@+-]*\\.(?:go|mod|py|js|jsx|mjs|cjs|ts|tsx|java|kt|rs|rb|php|cs|c|cc|cpp|h|swift|sh|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|html|css|sql|tf|proto))`")
	})
)

// Unfounded lists the files that a summary says were changed, and that no path of the change is or ends in.
// Only sentences count that begin with a change made, such as "Updated", and take nothing back.
func Unfounded(summary string, paths []string) (names []string) {
	summary = clip.Start(summary, longest)
	inCode := false
	for line := range strings.Lines(summary) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		for sentence := range strings.SplitSeq(strings.ReplaceAll(line, "; ", ". "), ". ") {
			if inCode || !says().MatchString(sentence) || doubts().MatchString(sentence) {
				continue
			}
			for _, m := range file().FindAllStringSubmatch(sentence, most) {
				if name := m[1]; len(names) < most && !slices.Contains(names, name) && !touched(name, paths) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func touched(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return path == name || strings.HasSuffix(path, "/"+name) })
}
