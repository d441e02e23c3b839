package report

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// hunkHead is the line that a hunk of a unified diff begins with.
var hunkHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -[0-9]{1,9}(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@ ?(.*)$`)
})

// unified reads a patch as git writes it, into the hunks of each file by its path. What
// is no text has none.
func unified(patch string) map[string][]v4a.Hunk {
	all := map[string][]v4a.Hunk{}
	path := ""
	rest := strings.Split(strings.TrimSuffix(patch, "\n"), "\n")
	for len(rest) > 0 {
		text := rest[0]
		rest = rest[1:]
		if m := hunkHead().FindStringSubmatch(text); m != nil && path != "" {
			var h v4a.Hunk
			h, rest = unifiedHunk(m, rest)
			all[path] = append(all[path], h)
			continue
		}
		if strings.HasPrefix(text, "diff --git ") {
			path = ""
		}
		for _, mark := range []string{"--- ", "+++ "} {
			if name, found := strings.CutPrefix(text, mark); found && name != "/dev/null" {
				path = unifiedPath(name)
			}
		}
	}
	return all
}

// unifiedPath is the path of a line such as "+++ b/path", which git quotes where it must.
func unifiedPath(name string) string {
	name = strings.TrimSuffix(name, "\t")
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	_, path, _ := strings.Cut(name, "/")
	return path
}

// unifiedHunk takes as many lines as the head of the hunk says, and no others.
func unifiedHunk(head []string, rest []string) (v4a.Hunk, []string) {
	old, fresh := countOf(head[1]), countOf(head[3])
	var h v4a.Hunk
	if head[2] != "0" { // of a file that is gone
		h.Context = append(h.Context, "line "+head[2])
	}
	if head[4] != "" {
		h.Context = append(h.Context, head[4])
	}
	for len(rest) > 0 && (old > 0 || fresh > 0) && rest[0] != "" {
		kind := v4a.Keep
		switch rest[0][0] {
		case '-':
			kind = v4a.Remove
			old--
		case '+':
			kind = v4a.Insert
			fresh--
		case '\\': // no newline at the end of the file
			rest = rest[1:]
			continue
		default:
			old, fresh = old-1, fresh-1
		}
		h.Lines = append(h.Lines, v4a.Line{Kind: kind, Text: rest[0][1:]})
		rest = rest[1:]
	}
	return h, rest
}

// countOf is how many lines a hunk has on one side, which is one where git leaves it out.
func countOf(digits string) int {
	if digits == "" {
		return 1
	}
	n, _ := strconv.Atoi(digits) // digits alone match
	return n
}
