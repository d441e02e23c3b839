package testsource

import (
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
)

// Failure is a failing test in the output of a check.
type Failure struct {
	OutputName  string // its whole name in the output
	Name        string // the name without its package; empty if a whole file failed
	Package     string // its package, if the output names it
	File        string // with slashes; may be a bare name
	Line        int
	LoadError   bool // it does not compile or load, so nothing ran
	AtThrowSite bool // File and Line are where it failed, which may be in code that it calls

	Owner *File // the file that the failure belongs to, or nil; Locate sets it
}

// BelongsTo reports whether the failure belongs to a file. Go files that compile together share a load error.
func (x Failure) BelongsTo(f File) bool {
	if x.Owner == nil {
		return false
	}
	return x.Owner.Path == f.Path || x.LoadError && samePackage(x.Owner.Path, f.Path)
}

// Failures returns the failing tests of results, in their order. Each file that does not load is one failure.
// Failures omits packages that failed as a whole, because their files are unknown. A test with a package has no
// File: the output may name the file of code that the test calls.
func Failures(results *testresults.Results) (all []Failure) {
	for _, t := range results.Failing {
		name := strings.TrimPrefix(strings.TrimPrefix(t.Name, t.Package), ".") // "pkg/a.TestX" is TestX of pkg/a
		fileFailed := t.LoadError && t.File != ""
		packageFailed := !fileFailed && t.Package != "" && (t.LoadError || name == "")
		switch {
		case fileFailed:
			for _, file := range append([]string{t.File}, t.OtherFiles...) {
				all = append(all, Failure{OutputName: t.Name, Package: t.Package, File: path.Clean(file), Line: t.Line, LoadError: true})
			}
		case packageFailed:
		case t.Package != "":
			all = append(all, Failure{OutputName: t.Name, Name: name, Package: t.Package, Line: t.Line})
		default:
			f := Failure{OutputName: t.Name, Name: name, Line: t.Line, LoadError: t.LoadError, AtThrowSite: t.AtThrowSite}
			if t.File != "" {
				f.File = path.Clean(t.File)
			}
			all = append(all, f)
		}
	}
	return all
}
