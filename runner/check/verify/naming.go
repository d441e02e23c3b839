package verify

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
)

// naming finds out which of some test files a failing test is of, as the output of a check
// names it. A name that fits more than one file is nobody's.
type naming struct {
	checkout *gitops.Checkout
	files    []testFile
	tests    []finder          // of the files
	modules  map[string]string // of Go, by folder
	alone    map[string]bool   // ends of paths, by whether one file of the repository has it
	owners   map[Failure]int   // indexes of files, of failures that were looked for
}

func newNaming(checkout *gitops.Checkout, files []testFile) *naming {
	tests := make([]finder, len(files))
	for i, f := range files {
		tests[i] = f.finder()
	}
	return &naming{checkout, files, tests, map[string]string{}, map[string]bool{}, map[Failure]int{}}
}

// of gives the files that a failure is of: one, or those of a folder that do not compile
// together. shared says that it is another one of the folder that is named.
func (n *naming) of(ctx context.Context, x Failure, f testFile) (is, shared bool, err error) {
	at, err := n.owner(ctx, x)
	if err != nil || at < 0 {
		return false, false, err
	}
	named := n.files[at].path
	return named == f.path || x.Load && samePackage(named, f.path), named != f.path, nil
}

// owner is the index of the file that a failure names; -1 for none.
func (n *naming) owner(ctx context.Context, x Failure) (at int, err error) {
	if at, known := n.owners[x]; known {
		return at, nil
	}
	if ctx.Err() != nil { // outputs name as many tests as they like
		return -1, context.Cause(ctx)
	}
	if at = -1; x.File == "" || x.Thrown {
		at = n.byName(x)
	}
	if at < 0 && x.File != "" && (!x.Thrown || noClasses[path.Ext(x.File)]) {
		at, err = n.byPath(ctx, x)
	}
	if err == nil {
		n.owners[x] = at
	}
	return at, err
}

// noClasses are the languages whose reports have titles where others have the class that a
// file is named after.
var noClasses = map[string]bool{".js": true, ".jsx": true, ".ts": true, ".tsx": true, ".mjs": true, ".cjs": true, ".mts": true, ".cts": true}

// byPath is the index of the file that a path of an output names; -1 for none.
func (n *naming) byPath(ctx context.Context, x Failure) (int, error) {
	found, longest := -1, 0
	for i, f := range n.files {
		switch {
		case f.path == x.File:
			return i, nil
		case filepath.IsAbs(x.File) && strings.HasSuffix(x.File, "/"+f.path):
			if len(f.path) > longest {
				found, longest = i, len(f.path)
			}
		case !strings.HasSuffix(f.path, "/"+x.File):
		case x.Package != "" && n.packageOf(f) != "":
			if x.Package == n.packageOf(f) {
				return i, nil
			}
		default:
			if is, err := n.only(ctx, x.File, f.path); err != nil || is {
				return i, err
			}
		}
	}
	return found, nil
}

// only says whether no other file of the base or of the change has the end of a path:
// an output tells paths from where a tool was started.
func (n *naming) only(ctx context.Context, end, of string) (bool, error) {
	if is, known := n.alone[end]; known {
		return is, nil
	}
	others, err := n.checkout.Ending(ctx, end)
	if err != nil {
		return false, err
	}
	for _, f := range n.files {
		if f.path == end || strings.HasSuffix(f.path, "/"+end) {
			others = append(others, f.path)
		}
	}
	n.alone[end] = true
	for _, other := range others {
		n.alone[end] = n.alone[end] && other == of
	}
	return n.alone[end], nil
}

// byName is the index of the one file that has a test of that name; -1 for none or more.
func (n *naming) byName(x Failure) int {
	found := -1
	for i, f := range n.files {
		if _, has := n.tests[i].find(x.Name); !has || x.Package != "" && n.packageOf(f) != x.Package {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// packageOf is the path of import of a file's package of Go; empty where no module is known.
func (n *naming) packageOf(f testFile) string {
	folder := path.Dir(f.path)
	for dir := folder; ; dir = path.Dir(dir) {
		if module := n.module(dir); module != "" {
			return path.Join(module, strings.TrimPrefix(folder, dir))
		}
		if dir == "." {
			return ""
		}
	}
}

var moduleLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)`) })

// module is the module of Go that a folder of the base is the root of; empty for none, and
// where what says so can't be read.
func (n *naming) module(dir string) string {
	if name, known := n.modules[dir]; known {
		return name
	}
	n.modules[dir] = ""
	const most = 1 << 20
	if raw, err := n.checkout.ReadBase(path.Join(dir, "go.mod"), most); err == nil {
		if m := moduleLine().FindSubmatch(raw); m != nil {
			n.modules[dir] = string(m[1])
		}
	}
	return n.modules[dir]
}

// samePackage says whether two files of Go stand or fall together: those of a folder
// are compiled as one.
func samePackage(a, b string) bool {
	return strings.HasSuffix(a, ".go") && strings.HasSuffix(b, ".go") && path.Dir(a) == path.Dir(b)
}

// lacks says whether an output tells what ran, by packages, files, classes or the names of
// tests, and the file is not among it.
func (n *naming) lacks(told *testresults.Results, f testFile) bool {
	if strings.HasSuffix(f.path, ".go") {
		folder, packages := n.packageOf(f), told.Units(testresults.Package)
		return folder != "" && len(packages) > 0 && !slices.Contains(packages, folder)
	}
	if files := told.Units(testresults.File); len(files) > 0 {
		ending := path.Ext(f.path)
		same := func(file string) bool { return path.Ext(file) == ending }
		return slices.ContainsFunc(files, same) && !slices.ContainsFunc(files, func(file string) bool { return endsAs(file, f.path) })
	}
	if classes := told.Units(testresults.Class); len(classes) > 0 {
		return (path.Ext(f.path) == ".java" || path.Ext(f.path) == ".kt") && !slices.ContainsFunc(classes, f.isClass)
	}
	return n.noneOf(told, f)
}

// noneOf says whether an output names each test, and none that the file declares.
func (n *naming) noneOf(told *testresults.Results, f testFile) bool {
	all, _ := f.declares()
	template := func(t declared) bool { return strings.ContainsAny(t.name, "%$#") }
	if len(all) == 0 || slices.ContainsFunc(all, template) || !told.NamesEach() {
		return false
	}
	tests := f.finder()
	return !told.Tells(func(name string) bool {
		_, is := tests.find(name)
		return is
	})
}

// endsAs says whether one of two paths is the end of the other: an output has them from where
// a tool was started.
func endsAs(a, b string) bool {
	a, b = "/"+path.Clean(a), "/"+b
	return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
}

// ran says whether an output names a file as one whose tests ran.
func (n *naming) ran(told *testresults.Results, f testFile) bool {
	return slices.ContainsFunc(told.Units(testresults.File), func(file string) bool { return endsAs(file, f.path) })
}

// passed returns whether an output tells that a test which the file declares passed, and none
// of its name failed.
func (n *naming) passed(told *testresults.Results, f testFile) func(name string) bool {
	switch path.Ext(f.path) {
	case ".go":
		folder := n.packageOf(f)
		return func(name string) bool { return folder != "" && told.Passed(folder+"."+name) }
	case ".py":
		return func(name string) bool { return told.Named(f.path + "::" + name) }
	}
	named, tests := map[string]bool{}, f.finder()
	told.Tells(func(name string) bool {
		if t, is := tests.find(name); is {
			all, before := named[t.name]
			named[t.name] = told.Named(name) && (all || !before)
		}
		return false
	})
	return func(name string) bool { return named[name] }
}
