package testsource

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
)

// Locator finds the test file of a failing test. A name that fits several files belongs to none.
type Locator struct {
	checkout      *gitops.Checkout
	files         []File
	tests         []finder          // one for each file
	modules       map[string]string // Go modules by folder
	uniqueEndings map[string]bool   // endings of paths; true if only one file of the repository has it
	owners        map[Failure]int   // results of ownerIndex
}

// NewLocator returns a locator for test files.
func NewLocator(checkout *gitops.Checkout, files []File) *Locator {
	tests := make([]finder, len(files))
	for i, f := range files {
		tests[i] = f.finder()
	}
	return &Locator{checkout, files, tests, map[string]string{}, map[string]bool{}, map[Failure]int{}}
}

// BelongsTo reports whether a failure belongs to a file. If Go files of one folder do not compile,
// the failure belongs to all of them. shared means that the output named another file of the
// folder.
func (n *Locator) BelongsTo(ctx context.Context, x Failure, f File) (is, shared bool, err error) {
	at, err := n.ownerIndex(ctx, x)
	if err != nil || at < 0 {
		return false, false, err
	}
	named := n.files[at].Path
	return named == f.Path || x.LoadError && samePackage(named, f.Path), named != f.Path, nil
}

// ownerIndex returns the index of the file that a failure belongs to, or -1.
func (n *Locator) ownerIndex(ctx context.Context, x Failure) (at int, err error) {
	if at, known := n.owners[x]; known {
		return at, nil
	}
	if ctx.Err() != nil { // an output may name very many tests
		return -1, context.Cause(ctx)
	}
	if at = -1; x.File == "" || x.AtThrowSite {
		at = n.byName(x)
	}
	if at < 0 && x.File != "" && (!x.AtThrowSite || noClasses[path.Ext(x.File)]) {
		at, err = n.byPath(ctx, x)
	}
	if err == nil {
		n.owners[x] = at
	}
	return at, err
}

// noClasses lists the file endings of languages whose reports name no class after the file.
var noClasses = map[string]bool{".js": true, ".jsx": true, ".ts": true, ".tsx": true, ".mjs": true, ".cjs": true, ".mts": true, ".cts": true}

// byPath returns the index of the file with the failure's path, or -1.
func (n *Locator) byPath(ctx context.Context, x Failure) (int, error) {
	found, longest := -1, 0
	for i, f := range n.files {
		switch {
		case f.Path == x.File:
			return i, nil
		case filepath.IsAbs(x.File) && strings.HasSuffix(x.File, "/"+f.Path):
			if len(f.Path) > longest {
				found, longest = i, len(f.Path)
			}
		case !strings.HasSuffix(f.Path, "/"+x.File):
		case x.Package != "" && n.packageOf(f) != "":
			if x.Package == n.packageOf(f) {
				return i, nil
			}
		default:
			if is, err := n.isOnlyFile(ctx, x.File, f.Path); err != nil || is {
				return i, err
			}
		}
	}
	return found, nil
}

// isOnlyFile reports whether only one file, in base or change, has a path with this ending. Paths
// in outputs start at a tool's folder.
func (n *Locator) isOnlyFile(ctx context.Context, end, file string) (bool, error) {
	if is, known := n.uniqueEndings[end]; known {
		return is, nil
	}
	others, err := n.checkout.TrackedEndingIn(ctx, end)
	if err != nil {
		return false, err
	}
	for _, f := range n.files {
		if f.Path == end || strings.HasSuffix(f.Path, "/"+end) {
			others = append(others, f.Path)
		}
	}
	n.uniqueEndings[end] = true
	for _, other := range others {
		n.uniqueEndings[end] = n.uniqueEndings[end] && other == file
	}
	return n.uniqueEndings[end], nil
}

// byName returns the index of the only file that declares the failing test, or -1.
func (n *Locator) byName(x Failure) int {
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

// Find returns the test in a file that a name in an output means.
func (n *Locator) Find(f File, name string) (t Test, ok bool) {
	for i := range n.files {
		if n.files[i].Path == f.Path {
			return n.tests[i].find(name)
		}
	}
	return t, false
}

// packageOf returns the import path of a Go file's package, or "" if it is unknown.
func (n *Locator) packageOf(f File) string {
	folder := path.Dir(f.Path)
	for dir := folder; ; dir = path.Dir(dir) {
		if module := n.Module(dir); module != "" {
			return path.Join(module, strings.TrimPrefix(folder, dir))
		}
		if dir == "." {
			return ""
		}
	}
}

var moduleLine = lazyregexp.New(`(?m)^module[ \t]+"?([^\s"]+)`)

// Module returns the Go module whose root is a folder of the base. It returns "" if there is none,
// or if go.mod cannot be read.
func (n *Locator) Module(dir string) string {
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

// samePackage reports whether two Go files are in one folder, and so compile together.
func samePackage(a, b string) bool {
	return strings.HasSuffix(a, ".go") && strings.HasSuffix(b, ".go") && path.Dir(a) == path.Dir(b)
}

// RanWithout reports whether an output lists what ran, and the file is not in that list. Tools list
// packages, files, classes or tests.
func (n *Locator) RanWithout(results *testresults.Results, f File) bool {
	if strings.HasSuffix(f.Path, ".go") {
		folder, packages := n.packageOf(f), results.Units(testresults.Package)
		return folder != "" && len(packages) > 0 && !slices.Contains(packages, folder)
	}
	if files := results.Units(testresults.File); len(files) > 0 {
		ending := path.Ext(f.Path)
		same := func(file string) bool { return path.Ext(file) == ending }
		return slices.ContainsFunc(files, same) && !slices.ContainsFunc(files, func(file string) bool { return endsAs(file, f.Path) })
	}
	if classes := results.Units(testresults.Class); len(classes) > 0 {
		return (path.Ext(f.Path) == ".java" || path.Ext(f.Path) == ".kt") && !slices.ContainsFunc(classes, f.isNamedAfterClass)
	}
	return n.noneOf(results, f)
}

// noneOf reports whether an output names all tests and none of the file's.
func (n *Locator) noneOf(results *testresults.Results, f File) bool {
	all, _ := f.Tests()
	template := func(t Test) bool { return strings.ContainsAny(t.Name, "%$#") }
	if len(all) == 0 || slices.ContainsFunc(all, template) || !results.NamesEach() {
		return false
	}
	tests := f.finder()
	return !results.Tells(func(name string) bool {
		_, is := tests.find(name)
		return is
	})
}

// endsAs reports whether one path is the end of the other.
func endsAs(a, b string) bool {
	a, b = "/"+path.Clean(a), "/"+b
	return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
}

// Ran reports whether an output lists a file.
func (n *Locator) Ran(results *testresults.Results, f File) bool {
	return slices.ContainsFunc(results.Units(testresults.File), func(file string) bool { return endsAs(file, f.Path) })
}

// PassedTests returns a function that reports whether a test of the file passed. A failure of the
// same name in the output makes it false.
func (n *Locator) PassedTests(results *testresults.Results, f File) func(name string) bool {
	switch path.Ext(f.Path) {
	case ".go":
		folder := n.packageOf(f)
		return func(name string) bool { return folder != "" && results.Passed(folder+"."+name) }
	case ".py":
		return func(name string) bool { return results.Named(f.Path + "::" + name) }
	}
	named, tests := map[string]bool{}, f.finder()
	results.Tells(func(name string) bool {
		if t, is := tests.find(name); is {
			all, before := named[t.Name]
			named[t.Name] = results.Named(name) && (all || !before)
		}
		return false
	})
	return func(name string) bool { return named[name] }
}
