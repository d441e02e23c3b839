package walk

import (
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Rules say which files are ignored. The zero value uses the .gitignore files in the tree. .git folders are always
// ignored.
type Rules struct {
	All        bool           // no ignore patterns apply
	Outer      []rules.Ignore // patterns from outside of the tree, the weakest first
	prefix     string         // path of the tree in the checkout: "" or ending with a slash
	IgnoreCase bool
	// Tracked returns the paths that git tracks, relative to the checkout's top and sorted by bytes. No pattern ignores
	// them. It is called when a pattern ignores something. It may be nil.
	Tracked func() []string
	// Hidden lists further paths of the tree to ignore, without a final slash.
	Hidden []string
	// View hides files under any name. It may be nil.
	View *grants.View
}

// Into returns the rules for the folder at path. path is clean and without links, relative to top, the root of the tree
// of r. If the folder itself is ignored, nothing in it is, because the call names it.
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
	if len(t.existingNames(f, ".git")) > 0 {
		r.Outer = nil
	}
	return r, nil
}

// Ignores reports whether git ignores a file. path is clean and without links, relative to top, the root of the tree.
func (r Rules) Ignores(top *os.Root, path string) (bool, error) {
	t, err := Open(top, r)
	if err != nil {
		return false, err
	}
	defer t.Close()
	_, ignored := t.findFolder(path, false)
	return ignored && !r.isTracked(r.prefix+path, false), nil
}

// findFolder returns the folder at a path. ignored means that an element of the path is ignored. The last element may be
// a file unless toFolder is true.
func (t *Tree) findFolder(path string, toFolder bool) (f Folder, ignored bool) {
	f = t.Top()
	parts := strings.Split(path, "/")
	for i, part := range parts {
		f = t.withIgnoreFile(f, t.existingNames(f, ".git", ".gitignore"))
		isFolder := toFolder || i < len(parts)-1
		if isIgnored(f.ignoreLists, t.rules.prefix+f.path+part, isFolder, t.rules.IgnoreCase) {
			return f, true
		}
		f = f.Below(Entry{Name: part})
	}
	return f, false
}

// existingNames returns those of names that exist in a folder, in the same order.
func (t *Tree) existingNames(f Folder, names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := t.root.Lstat(f.path + name)
		return err != nil
	})
}

// Folder is a folder of the tree with its ignore rules.
type Folder struct {
	path        string // "" or ending with a slash
	ignoreLists []rules.Ignore
	ignored     bool // all files that are not tracked are ignored
}

// Below returns the folder that is the entry e of f, without the rules of its own ignore file.
func (f Folder) Below(e Entry) Folder {
	return Folder{path: f.path + e.Name + "/", ignoreLists: f.ignoreLists, ignored: e.ignored}
}

// visibility reports whether git ignores an entry of a folder, and whether the entry is listed: because it is not
// ignored, or because it is tracked or contains tracked files.
func (r *Rules) visibility(f Folder, name string, isDir bool) (ignored, visible bool) {
	isHidden := len(r.Hidden) > 0 && slices.Contains(r.Hidden, f.path+name)
	if isHidden || strings.EqualFold(name, ".git") {
		return true, false
	}
	hasRules := f.ignored || len(f.ignoreLists) > 0
	if r.All || !hasRules {
		return false, true
	}
	path := r.prefix + f.path + name
	if !f.ignored && !isIgnored(f.ignoreLists, path, isDir, r.IgnoreCase) {
		return false, true
	}
	return true, r.isTracked(path, isDir)
}

// isTracked reports whether git tracks a file, or a file in a folder.
func (r *Rules) isTracked(path string, isDir bool) bool {
	if r.Tracked == nil {
		return false
	}
	tracked := r.Tracked()
	if isDir {
		path += "/"
	}
	i, found := slices.BinarySearch(tracked, path)
	containsTracked := isDir && i < len(tracked) && strings.HasPrefix(tracked[i], path)
	return found || containsTracked
}

// isIgnored reports whether lists of patterns ignore a path in a folder that is not ignored. Later lists take precedence.
func isIgnored(lists []rules.Ignore, path string, isDir, ignoreCase bool) bool {
	for _, list := range slices.Backward(lists) {
		if ignored, decided := list.Decide(path, isDir, ignoreCase); decided {
			return ignored
		}
	}
	return false
}
