package testsource

import (
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
)

// Failure is a failing test as the output of a check names it.
type Failure struct {
	OutputName  string // its name in the output
	Name        string // that without its package; empty where a file as a whole failed
	Package     string // in which the test is, where the output tells it
	File        string // slash-separated; may be a name alone
	Line        int
	LoadError   bool // nothing of it ran: it does not compile or load
	AtThrowSite bool // File and Line are where it failed, perhaps in what the test calls
}

// Failures lists the failing tests of results in their order: one for each file that does not load.
func Failures(results *testresults.Results) (all []Failure) {
	for _, t := range results.Failing {
		name := strings.TrimPrefix(strings.TrimPrefix(t.Name, t.Package), ".")
		switch {
		case t.Load && t.File != "":
			for _, file := range append([]string{t.File}, t.Also...) {
				all = append(all, Failure{OutputName: t.Name, Package: t.Package, File: path.Clean(file), Line: t.Line, LoadError: true})
			}
		case t.Package != "" && (t.Load || name == ""): // the package as a whole, and no file of it
		case t.Package != "": // its file may be that of what the test called
			all = append(all, Failure{OutputName: t.Name, Name: name, Package: t.Package, Line: t.Line})
		default:
			f := Failure{OutputName: t.Name, Name: name, Line: t.Line, LoadError: t.Load, AtThrowSite: t.Thrown}
			if t.File != "" {
				f.File = path.Clean(t.File)
			}
			all = append(all, f)
		}
	}
	return all
}
