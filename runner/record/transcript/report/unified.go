package report

import (
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// hunkHead matches the first line of a hunk.
var hunkHead = lazyregexp.New(`^@@ -[0-9,]+ \+([0-9]+)(?:,[0-9]+)? @@ ?(.*)$`)

// parseUnified parses a git patch into the hunks of each file, by path. Binary files have no hunks. Every
// line of a hunk begins with a sign, so any other line ends the hunk.
func parseUnified(patch string) map[string][]v4a.Hunk {
	all := map[string][]v4a.Hunk{}
	path, inHunk := "", false
	for text := range strings.Lines(patch) {
		text = strings.TrimSuffix(text, "\n")
		if m := hunkHead().FindStringSubmatch(text); m != nil {
			var h v4a.Hunk
			if m[1] != "0" { // 0 means that the file was deleted
				h.Context = append(h.Context, "line "+m[1])
			}
			if m[2] != "" {
				h.Context = append(h.Context, m[2])
			}
			inHunk = path != ""
			if inHunk {
				all[path] = append(all[path], h)
			}
			continue
		}
		switch {
		case inHunk && text != "" && strings.ContainsRune(" -+", rune(text[0])):
			h := &all[path][len(all[path])-1]
			h.Lines = append(h.Lines, v4a.Line{Kind: v4a.Kind(text[0]), Text: text[1:]})
		case strings.HasPrefix(text, "diff --git "):
			path, inHunk = "", false
		case !inHunk && (strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ ")):
			if name := text[len("--- "):]; name != "/dev/null" {
				path = unifiedPath(name)
			}
		}
	}
	return all
}

// unifiedPath returns the path in a line such as "+++ b/path", which git may quote.
func unifiedPath(name string) string {
	name = strings.TrimSuffix(name, "\t")
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	_, path, _ := strings.Cut(name, "/")
	return path
}
