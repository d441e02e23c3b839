package tree

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// splitPath checks a path from a patch and splits it into its elements. problem is "" for a valid
// path.
func splitPath(name string) (parts []string, problem string) {
	clean := path.Clean(name)
	switch {
	case name == "":
		return nil, "the path is empty"
	case strings.ContainsRune(name, 0):
		return nil, "the path holds a NUL"
	case path.IsAbs(name):
		return nil, "a patch changes files below the working directory only, named relative to it"
	case !filepath.IsLocal(clean):
		return nil, "the path leaves the working directory, and a patch changes files below it only"
	case namesDirectory(name):
		return nil, "this names a directory; name a file"
	}
	return strings.Split(clean, "/"), ""
}

// namesDirectory reports whether a path can only name a directory.
func namesDirectory(name string) bool {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "", ".", "..":
		return true
	}
	return false
}

// In returns a patch whose paths are relative to the root, from one whose paths are relative to
// dir. dir is a slash-separated path below the root. Invalid paths, such as absolute ones, stay
// unchanged.
func In(dir string, p v4a.Patch) v4a.Patch {
	if dir == "" || dir == "." {
		return p
	}
	moved := slices.Clone(p)
	for i := range moved {
		s := &moved[i]
		s.Path, s.MoveTo = pathBelow(dir, s.Path), pathBelow(dir, s.MoveTo)
	}
	return moved
}

// pathBelow returns name, relative to dir, as a path from the root. A final slash stays, so that it
// still names a directory.
func pathBelow(dir, name string) string {
	switch {
	case name == "" || path.IsAbs(name):
		return name
	case namesDirectory(name):
		return path.Join(dir, name) + "/"
	}
	return path.Join(dir, name)
}
