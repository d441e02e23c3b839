package files

import (
	"errors"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// include selects the searched files. The zero value selects all.
type include struct {
	glob    string
	negated bool
	byName  bool // the glob has no slash, so it matches the last part of a path
}

// newInclude parses a glob in the form of rg --glob. Without a slash it matches names at any depth. A leading "!" inverts
// it. A final slash includes everything below a folder.
func newInclude(glob string) (include, error) {
	var i include
	i.glob, i.negated = strings.CutPrefix(glob, "!")
	i.byName = !strings.Contains(i.glob, "/")
	if strings.HasSuffix(i.glob, "/") {
		i.glob += "**"
	}
	i.glob = strings.TrimPrefix(strings.TrimPrefix(i.glob, "./"), "/")
	switch err := pathname.CheckGlob(i.glob); {
	case errors.Is(err, pathname.ErrAlternatives):
		return include{}, refusal("include has too many alternatives in braces: use a shorter glob, or several calls")
	case err != nil:
		return include{}, refusal("include is not a valid glob: " + glob)
	}
	return i, nil
}

// includes reports whether the glob selects a file. file is its path relative to folder, the searched folder.
func (i include) includes(file, folder string) bool {
	switch {
	case i.glob == "":
		return true
	case i.byName:
		return doublestar.MatchUnvalidated(i.glob, path.Base(file)) != i.negated
	}
	matched := doublestar.MatchUnvalidated(i.glob, file) || folder != "." && doublestar.MatchUnvalidated(i.glob, folder+"/"+file)
	return matched != i.negated
}
