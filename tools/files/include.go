package files

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// include says which files a search looks into. The zero value takes all.
type include struct {
	glob    string
	negated bool
	byName  bool // no slash in it: compared with the last part of a path
}

// newInclude reads a glob as rg --glob has it: one without a slash is for names
// at any depth, "!" turns it round, a slash at the end means all below.
func newInclude(glob string) (include, error) {
	var i include
	i.glob, i.negated = strings.CutPrefix(glob, "!")
	i.byName = !strings.Contains(i.glob, "/")
	if strings.HasSuffix(i.glob, "/") {
		i.glob += "**"
	}
	i.glob = strings.TrimPrefix(strings.TrimPrefix(i.glob, "./"), "/")
	if !doublestar.ValidatePattern(i.glob) {
		return include{}, refusal("include is not a valid glob: " + glob)
	}
	return i, nil
}

// takes says whether a file is looked into: found below the folder that is
// searched, which is at from in the working directory.
func (i include) takes(found, from string) bool {
	switch {
	case i.glob == "":
		return true
	case i.byName:
		return doublestar.MatchUnvalidated(i.glob, path.Base(found)) != i.negated
	}
	matched := doublestar.MatchUnvalidated(i.glob, found) || from != "." && doublestar.MatchUnvalidated(i.glob, from+"/"+found)
	return matched != i.negated
}
