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
	files         []finder
	modules       map[string]string // Go modules by folder
	uniqueEndings map[string]bool   // endings of paths; true if only one file of the repository has it
	owners        map[Failure]int   // results of ownerIndex
}

// NewLocator returns a locator for test files.
func NewLocator(checkout *gitops.Checkout, files []File) *Locator {
	finders := make([]finder, len(files))
	for i, f := range files {
		finders[i] = f.finder()
	}
	return &Locator{checkout, finders, map[string]string{}, map[string]bool{}, map[Failure]int{}}
}

// BelongsTo reports whether a failure belongs to a file. shared means that the output named another Go file of
// the folder: files that compile together share a compile error.
func (n *Locator) BelongsTo(ctx context.Context, x Failure, f File) (belongs, shared bool, err error) {
	owner, err := n.ownerIndex(ctx, x)
	if err != nil || owner < 0 {
		return false, false, err
	}
	named := n.files[owner].Path
	if named == f.Path {
		return true, false, nil
	}
	shared = x.LoadError && samePackage(named, f.Path)
	return shared, shared, nil
}

// ownerIndex returns the index of the file that a failure belongs to, or -1. It remembers the results.
func (n *Locator) ownerIndex(ctx context.Context, x Failure) (owner int, err error) {
	if owner, known := n.owners[x]; known {
		return owner, nil
	}
	if ctx.Err() != nil { // an output may name very many tests
		return -1, context.Cause(ctx)
	}
	owner = -1
	if x.File == "" || x.AtThrowSite {
		owner = n.indexByName(x)
	}
	isTestFile := x.File != "" && (!x.AtThrowSite || slices.Contains(javaScript, path.Ext(x.File)))
	if owner < 0 && isTestFile {
		owner, err = n.indexByPath(ctx, x)
	}
	if err == nil {
		n.owners[x] = owner
	}
	return owner, err
}

// indexByPath returns the index of the file with the failure's path, or -1.
func (n *Locator) indexByPath(ctx context.Context, x Failure) (int, error) {
	found, longest := -1, 0
	for i, f := range n.files {
		switch {
		case f.Path == x.File:
			return i, nil
		case filepath.IsAbs(x.File) && strings.HasSuffix(x.File, "/"+f.Path):
			if len(f.Path) > longest {
				found, longest = i, len(f.Path)
			}
		case !strings.HasSuffix(f.Path, "/"+x.File): // another file
		case x.Package != "" && n.packageOf(f.Path) != "":
			if x.Package == n.packageOf(f.Path) {
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

// isOnlyFile reports whether file is the only one, in base and change, whose path has the ending end. Outputs name
// paths from a tool's folder on.
func (n *Locator) isOnlyFile(ctx context.Context, end, file string) (bool, error) {
	if isOnly, known := n.uniqueEndings[end]; known {
		return isOnly, nil
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
	n.uniqueEndings[end] = !slices.ContainsFunc(others, func(other string) bool { return other != file })
	return n.uniqueEndings[end], nil
}

// indexByName returns the index of the only file that declares the failing test, or -1.
func (n *Locator) indexByName(x Failure) int {
	found := -1
	for i, f := range n.files {
		if _, declares := f.find(x.Name); !declares {
			continue
		}
		if x.Package != "" && x.Package != n.packageOf(f.Path) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// Find returns the test in file f that a name in an output means. ok is false if there is none.
func (n *Locator) Find(f File, name string) (t Test, ok bool) {
	for _, each := range n.files {
		if each.Path == f.Path {
			return each.find(name)
		}
	}
	return t, false
}

// packageOf returns the import path of the package of a Go file, or "" if it is unknown.
func (n *Locator) packageOf(file string) string {
	folder := path.Dir(file)
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

// Module returns the Go module whose root is a folder of the base, or "" without a readable go.mod.
func (n *Locator) Module(dir string) string {
	if name, known := n.modules[dir]; known {
		return name
	}
	n.modules[dir] = ""
	const maxBytes = 1 << 20
	if raw, err := n.checkout.ReadBase(path.Join(dir, "go.mod"), maxBytes); err == nil {
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

// ListsOthersOnly reports whether an output lists what ran, and the file is not in that list. Tools list
// packages, files, classes or tests.
func (n *Locator) ListsOthersOnly(results *testresults.Results, f File) bool {
	if strings.HasSuffix(f.Path, ".go") {
		folder, packages := n.packageOf(f.Path), results.Units(testresults.Package)
		return folder != "" && len(packages) > 0 && !slices.Contains(packages, folder)
	}
	if files := results.Units(testresults.File); len(files) > 0 {
		ending := path.Ext(f.Path)
		isSameKind := func(file string) bool { return path.Ext(file) == ending }
		return slices.ContainsFunc(files, isSameKind) && !n.Ran(results, f)
	}
	if classes := results.Units(testresults.Class); len(classes) > 0 {
		hasClasses := path.Ext(f.Path) == ".java" || path.Ext(f.Path) == ".kt"
		return hasClasses && !slices.ContainsFunc(classes, f.isNamedAfterClass)
	}
	return n.ranWithoutNamed(results, f)
}

// ranWithoutNamed reports whether an output names all tests and none of the file's. It is false if the file
// declares names with placeholders.
func (n *Locator) ranWithoutNamed(results *testresults.Results, f File) bool {
	all, _ := f.Tests()
	isTemplate := func(t Test) bool { return strings.ContainsAny(t.Name, "%$#") }
	if len(all) == 0 || slices.ContainsFunc(all, isTemplate) || !results.NamesEach() {
		return false
	}
	tests := f.finder()
	return !results.NamesAny(func(name string) bool {
		_, found := tests.find(name)
		return found
	})
}

// isPathEnd reports whether one path is the end of the other.
func isPathEnd(a, b string) bool {
	a, b = "/"+path.Clean(a), "/"+b
	return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
}

// Ran reports whether an output lists a file.
func (n *Locator) Ran(results *testresults.Results, f File) bool {
	return slices.ContainsFunc(results.Units(testresults.File), func(file string) bool { return isPathEnd(file, f.Path) })
}

// PassedTests returns a function that reports whether a test of the file passed. The function returns false if
// the output also names a failure of that name.
func (n *Locator) PassedTests(results *testresults.Results, f File) func(name string) bool {
	switch path.Ext(f.Path) {
	case ".go":
		folder := n.packageOf(f.Path)
		return func(name string) bool { return folder != "" && results.Passed(folder+"."+name) }
	case ".py":
		return func(name string) bool { return results.NamesPassed(f.Path + "::" + name) }
	}
	passed, tests := map[string]bool{}, f.finder()
	results.NamesAny(func(name string) bool {
		if t, found := tests.find(name); found {
			othersPassed, hasOthers := passed[t.Name]
			passed[t.Name] = results.NamesPassed(name) && (othersPassed || !hasOthers)
		}
		return false // visit the next name
	})
	return func(name string) bool { return passed[name] }
}
