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
	modules       map[string]string // Go modules by folder
	uniqueEndings map[string]bool   // endings of paths; true if only one file of the repository has it
}

// NewLocator returns a locator for test files.
func NewLocator(checkout *gitops.Checkout, files []File) *Locator {
	return &Locator{checkout, files, map[string]string{}, map[string]bool{}}
}

// Locate sets the owners of failures.
func (n *Locator) Locate(ctx context.Context, all []Failure) (err error) {
	for i, x := range all {
		if ctx.Err() != nil { // an output may name very many tests
			return context.Cause(ctx)
		}
		var owner *File
		if x.File == "" || x.AtThrowSite {
			owner = n.findByName(x)
		}
		isTestFile := x.File != "" && (!x.AtThrowSite || slices.Contains(javaScript, path.Ext(x.File)))
		if owner == nil && isTestFile {
			if owner, err = n.findByPath(ctx, x); err != nil {
				return err
			}
		}
		all[i].Owner = owner
	}
	return nil
}

// findByPath returns the file with the failure's path, or nil.
func (n *Locator) findByPath(ctx context.Context, x Failure) (longest *File, err error) {
	for i := range n.files {
		f := &n.files[i]
		switch {
		case f.Path == x.File:
			return f, nil
		case filepath.IsAbs(x.File) && strings.HasSuffix(x.File, "/"+f.Path):
			if longest == nil || len(f.Path) > len(longest.Path) {
				longest = f
			}
		case !strings.HasSuffix(f.Path, "/"+x.File): // another file
		case x.Package != "" && n.packageOf(f.Path) != "":
			if x.Package == n.packageOf(f.Path) {
				return f, nil
			}
		default:
			if is, err := n.isOnlyFile(ctx, x.File, f.Path); err != nil || is {
				return f, err
			}
		}
	}
	return longest, nil
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

// findByName returns the only file that declares the failing test, or nil.
func (n *Locator) findByName(x Failure) (found *File) {
	for i := range n.files {
		f := &n.files[i]
		_, declares := f.Find(x.Name)
		if !declares || x.Package != "" && x.Package != n.packageOf(f.Path) {
			continue
		}
		if found != nil {
			return nil
		}
		found = f
	}
	return found
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
	isTemplate := func(t Test) bool { return strings.ContainsAny(t.Name, "%$#") }
	if len(f.Tests) == 0 || slices.ContainsFunc(f.Tests, isTemplate) || !results.NamesEach() {
		return false
	}
	return !results.NamesAny(func(name string) bool {
		_, found := f.Find(name)
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
	passed := map[string]bool{}
	results.NamesAny(func(name string) bool {
		if t, found := f.Find(name); found {
			othersPassed, hasOthers := passed[t.Name]
			passed[t.Name] = results.NamesPassed(name) && (othersPassed || !hasOthers)
		}
		return false // visit the next name
	})
	return func(name string) bool { return passed[name] }
}
