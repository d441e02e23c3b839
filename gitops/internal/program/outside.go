package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PathOutside is a list as in PATH without the folders in which commands that
// work at root, a work tree, may have put programs: what lies in it or is reached
// through it, whether it is there yet or not, and relative parts. root may be ""
// for none.
func PathOutside(pathEnv, root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil && root != "" {
		root = real
	}
	dirs := slices.DeleteFunc(filepath.SplitList(pathEnv), func(dir string) bool {
		return !filepath.IsAbs(dir) || root != "" && passes(dir, root)
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// LeadsThrough says whether a path lies in a folder or is reached through it,
// whether it is there yet or not.
func LeadsThrough(path, folder string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return passes(path, folder)
}

// mostLinks are followed for one path, as Linux does (path_resolution(7)).
const mostLinks = 40

// passes says whether the way that a path leads goes through root.
func passes(path, root string) bool {
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, part) // which is real so far, so that ".." is right
		if within, err := filepath.Rel(root, at); err != nil || filepath.IsLocal(within) {
			return true
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > mostLinks {
			return true
		}
		rest = append(strings.Split(to, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
	}
	return false
}
