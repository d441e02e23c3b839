package forge

import (
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// MaxPullFiles is the largest number of files read for a pull request. GitHub lists no more
// (https://docs.github.com/rest/pulls/pulls#list-pull-requests-files).
const MaxPullFiles = 3000

// PullFile is a file changed by a pull request.
type PullFile struct {
	Path   string
	From   string // former path of a moved file
	Status string // added, removed, modified, renamed, copied, changed, unchanged
	// Patch contains the hunks of the diff. It is "" for a binary file, or if the diff is too large
	// for the server.
	Patch string
}

// NewReview is a review with comments that neither approves nor requests changes.
type NewReview struct {
	CommitSHA string // the commit that the lines refer to
	Body      string
	Comments  []LineComment
}

// LineComment is a comment on lines of the new side of a pull request's diff.
type LineComment struct {
	Path string
	Line int // last line
	From int // first line; 0 for Line alone
	Body string
}

// Hunk is a part of a diff. Lines have their first character, which tells the side.
type Hunk struct {
	Head  string // the line "@@ -1,2 +1,3 @@"
	First int    // number of the first line on the new side
	Count int    // number of lines on the new side
	Lines []string
}

// Contains reports whether the hunk contains a line number of the new side.
func (h Hunk) Contains(line int) bool { return line >= h.First && line < h.First+h.Count }

// hunkHead matches the head of a hunk, such as "@@ -1,5 +7,3 @@". The groups are the first line of the new side (7)
// and its number of lines (3), "" for one.
var hunkHead = lazyregexp.New(`^@@ -[0-9]{1,9}(?:,[0-9]{1,9})? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@`)

// Hunks returns the patch's hunks.
func (f PullFile) Hunks() []Hunk {
	var all []Hunk
	for line := range strings.SplitSeq(f.Patch, "\n") {
		if m := hunkHead().FindStringSubmatch(line); m != nil {
			h := Hunk{Head: line, Count: 1}
			h.First, _ = strconv.Atoi(m[1]) // no error: the pattern allows up to 9 digits
			if m[2] != "" {
				h.Count, _ = strconv.Atoi(m[2])
			}
			all = append(all, h)
			continue
		}
		if last := len(all) - 1; last >= 0 {
			all[last].Lines = append(all[last].Lines, line)
		}
	}
	return all
}
