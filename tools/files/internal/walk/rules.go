package walk

import (
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Rules say what is left out. The zero value leaves out what the .gitignore
// files of the tree say. In each case git's own directories are left out.
type Rules struct {
	All        bool           // leave out nothing else
	Outer      []rules.Ignore // from outside of the tree, the weakest first
	Prefix     string         // of the tree below the top of the checkout: "" or ending with a slash
	IgnoreCase bool
	// Tracked gives the paths of the files that git tracks, from the top of the
	// checkout and sorted by bytes: no pattern ignores them. It is asked for when
	// something is ignored, and may be nil.
	Tracked func() []string
	// Hidden are paths of the tree, without a slash at the end, that are left out
	// in each case.
	Hidden []string
	// View also leaves out what is not shown under any name; nil for nothing.
	View *grants.View
}

// Into gives the rules for a tree that starts at a folder of this one, which
// begins at top. path is "." or a clean path without links. Where the folder is
// ignored itself somebody asked for it by name, and nothing in it is left out.
func (r Rules) Into(top *os.Root, path string) (Rules, error) {
	if path == "." || r.All {
		return r, nil
	}
	t, err := Open(top, r)
	if err != nil {
		return r, err
	}
	defer t.Close()
	f, ignored := t.follow(path, true)
	if ignored {
		return Rules{All: true}, nil
	}
	r.Outer, r.Prefix = f.lists, r.Prefix+f.Path
	if len(t.present(f, ".git")) > 0 {
		r.Outer = nil
	}
	return r, nil
}

// Ignores says whether git leaves out a file of this tree, which begins at top.
// path is clean and without links.
func (r Rules) Ignores(top *os.Root, path string) (bool, error) {
	t, err := Open(top, r)
	if err != nil {
		return false, err
	}
	defer t.Close()
	_, ignored := t.follow(path, false)
	return ignored && !r.tracks(r.Prefix+path, false), nil
}

// follow gives the folder at the end of a path, or says that something on it is
// ignored. The last of the path may be a file.
func (t *Tree) follow(path string, toFolder bool) (f Folder, ignored bool) {
	f = t.Top()
	parts := strings.Split(path, "/")
	for i, part := range parts {
		f = t.withIgnoreFile(f, t.present(f, ".git", ".gitignore"))
		isFolder := toFolder || i < len(parts)-1
		if Ignored(f.lists, t.rules.Prefix+f.Path+part, isFolder, t.rules.IgnoreCase) {
			return f, true
		}
		f = f.Below(Entry{Name: part})
	}
	return f, false
}

// present are those of some names, which are sorted, that a folder has.
func (t *Tree) present(f Folder, names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := t.root.Lstat(f.Path + name)
		return err != nil
	})
}

// Folder is a folder of the tree and what is ignored in it.
type Folder struct {
	Path    string // "" or ending with a slash
	lists   []rules.Ignore
	ignored bool // all that is not tracked
}

// Below is a folder in f. Its own ignore file is not yet read.
func (f Folder) Below(e Entry) Folder {
	return Folder{Path: f.Path + e.Name + "/", lists: f.lists, ignored: e.ignored}
}

// judge says whether an entry of a folder is seen, and whether only for what
// git tracks in it.
func (r *Rules) judge(f Folder, name string, isDir bool) (ignored, seen bool) {
	switch {
	case strings.EqualFold(name, ".git"), len(r.Hidden) > 0 && slices.Contains(r.Hidden, f.Path+name):
		return true, false
	case r.All || len(f.lists) == 0 && !f.ignored:
		return false, true
	}
	path := r.Prefix + f.Path + name
	if !f.ignored && !Ignored(f.lists, path, isDir, r.IgnoreCase) {
		return false, true
	}
	return true, r.tracks(path, isDir)
}

// tracks says whether git tracks a file, or something in a folder.
func (r *Rules) tracks(path string, isDir bool) bool {
	if r.Tracked == nil {
		return false
	}
	tracked := r.Tracked()
	if isDir {
		path += "/"
	}
	at, exact := slices.BinarySearch(tracked, path)
	return exact || isDir && at < len(tracked) && strings.HasPrefix(tracked[at], path)
}

// Ignored asks lists of patterns, the weakest first, of one path whose folder
// is not ignored.
func Ignored(lists []rules.Ignore, path string, isDir, ignoreCase bool) bool {
	for _, list := range slices.Backward(lists) {
		if ignored, decided := list.Decide(path, isDir, ignoreCase); decided {
			return ignored
		}
	}
	return false
}
