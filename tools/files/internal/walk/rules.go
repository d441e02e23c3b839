package walk

import (
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Rules selects ignored files. The zero value uses the tree's .gitignore files. Git's own
// directories are always ignored.
type Rules struct {
	All        bool           // leave out nothing else
	Outer      []rules.Ignore // from outside of the tree, the weakest first
	prefix     string         // of the tree below the top of the checkout: "" or ending with a slash
	IgnoreCase bool
	// Tracked returns git's tracked paths from the checkout's top, sorted by bytes. No pattern
	// ignores them. It is called when something is ignored; may be nil.
	Tracked func() []string
	// Hidden lists ignored paths of the tree, without a final slash.
	Hidden []string
	// View also ignores files hidden under any name; may be nil.
	View *grants.View
}

// Into returns the rules for a subtree at path, "." or clean without links. top is the tree's root.
// In an ignored folder, requested by name, nothing is ignored.
func (r Rules) Into(top *os.Root, path string) (Rules, error) {
	if path == "." || r.All {
		return r, nil
	}
	t, err := Open(top, r)
	if err != nil {
		return r, err
	}
	defer t.Close()
	f, ignored := t.findFolder(path, true)
	if ignored {
		return Rules{All: true}, nil
	}
	r.Outer, r.prefix = f.ignoreLists, r.prefix+f.path
	if len(t.existing(f, ".git")) > 0 {
		r.Outer = nil
	}
	return r, nil
}

// Ignores reports whether git ignores a file. top is the tree's root, path is clean and without
// links.
func (r Rules) Ignores(top *os.Root, path string) (bool, error) {
	t, err := Open(top, r)
	if err != nil {
		return false, err
	}
	defer t.Close()
	_, ignored := t.findFolder(path, false)
	return ignored && !r.isTracked(r.prefix+path, false), nil
}

// findFolder returns the folder at a path. ignored reports that a part of the path is ignored. The last element may be a
// file, unless toFolder is set.
func (t *Tree) findFolder(path string, toFolder bool) (f Folder, ignored bool) {
	f = t.Top()
	parts := strings.Split(path, "/")
	for i, part := range parts {
		f = t.withIgnoreFile(f, t.existing(f, ".git", ".gitignore"))
		isFolder := toFolder || i < len(parts)-1
		if isIgnored(f.ignoreLists, t.rules.prefix+f.path+part, isFolder, t.rules.IgnoreCase) {
			return f, true
		}
		f = f.Below(Entry{Name: part})
	}
	return f, false
}

// existing returns the sorted names that exist in a folder.
func (t *Tree) existing(f Folder, names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := t.root.Lstat(f.path + name)
		return err != nil
	})
}

// Folder is a folder of the tree with its ignore rules.
type Folder struct {
	path        string // "" or ending with a slash
	ignoreLists []rules.Ignore
	ignored     bool // all that is not tracked
}

// Below is a folder in f. Its own ignore file is not yet read.
func (f Folder) Below(e Entry) Folder {
	return Folder{path: f.path + e.Name + "/", ignoreLists: f.ignoreLists, ignored: e.ignored}
}

// visibility reports whether an entry is visible, or only for tracked files inside.
func (r *Rules) visibility(f Folder, name string, isDir bool) (ignored, visible bool) {
	switch {
	case strings.EqualFold(name, ".git"), len(r.Hidden) > 0 && slices.Contains(r.Hidden, f.path+name):
		return true, false
	case r.All || len(f.ignoreLists) == 0 && !f.ignored:
		return false, true
	}
	path := r.prefix + f.path + name
	if !f.ignored && !isIgnored(f.ignoreLists, path, isDir, r.IgnoreCase) {
		return false, true
	}
	return true, r.isTracked(path, isDir)
}

// isTracked says whether git tracks a file, or something in a folder.
func (r *Rules) isTracked(path string, isDir bool) bool {
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

// isIgnored applies lists of patterns, weakest first, to a path in a folder that is not ignored.
func isIgnored(lists []rules.Ignore, path string, isDir, ignoreCase bool) bool {
	for _, list := range slices.Backward(lists) {
		if ignored, decided := list.Decide(path, isDir, ignoreCase); decided {
			return ignored
		}
	}
	return false
}
