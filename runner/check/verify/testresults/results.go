package testresults

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// maxFailing limits the listed failing tests. Further ones are counted.
const maxFailing = 10_000

// maxPackages limits the packages that are distinguished.
const maxPackages = 500

// Bounds on what is kept of an output.
const (
	maxNames  = 100_000 // names of tests of one kind: failing, passed, skipped
	maxScopes = 2000
	maxText   = 300 // bytes of a name or a message
)

// Test is a failing test.
type Test struct {
	Name    string // as its tool names it, with its package or file
	File    string // as in the output; may be empty
	Line    int    // 0 if unknown
	Message string // the first line of the reason; may be empty
	Package string // its Go package
	// AtThrowSite means that File and Line are the place of the failure, maybe in code under test.
	AtThrowSite bool
	// LoadError means that the file does not compile or load, so no test ran.
	LoadError  bool
	OtherFiles []string // further files that do not compile
}

// Results are the tests in an output.
type Results struct {
	Failing []Test // in the order of the output, each name once
	More    int    // number of failing tests beyond maxFailing

	failing map[string]bool // all names, also beyond maxFailing
	passed  map[string]bool
	skipped map[string]bool
	ran     []scope       // groups of tests that all ran
	units   map[unit]bool // files, packages and classes that ran
	seen    bool          // a tool reported that it ran tests, perhaps none
	partial bool          // more tests may fail than are listed
}

// setPlace sets the file and line of a test.
func (t *Test) setPlace(file, line string) { t.File, t.Line = cleanLine(file), parseNumber(line) }

// setMessage sets the reason of a failure, unless there is one.
func (t *Test) setMessage(text string) {
	if t.Message == "" {
		t.Message = cleanLine(text)
	}
}

// considerPlace considers a place in a failure's stack trace. A place in the test's own file, or in a file
// named after its class, wins. Without one, the first place counts.
func (t *Test) considerPlace(file string, line int) {
	isKnownFile := !t.AtThrowSite && t.File != "" && strings.HasSuffix("/"+t.File, "/"+file)
	isOwn := isKnownFile || t.isInClassFile(file)
	switch {
	case isOwn && t.AtThrowSite || t.File == "":
		t.File, t.Line, t.AtThrowSite = file, line, !isOwn
	case isOwn && t.Line == 0:
		t.Line = line
	}
}

// isInClassFile reports whether a file is named after the test's class or module.
func (t *Test) isInClassFile(file string) bool {
	stem, _, _ := strings.Cut(file[strings.LastIndexByte(file, '/')+1:], ".")
	return stem != "" && slices.Contains(strings.FieldsFunc(t.Name, func(r rune) bool { return strings.ContainsRune(`.$\:`, r) }), stem)
}

// unit is something whose tests ran: a file, package or class.
type unit struct{ kind, name string }

// Kinds of units.
const (
	File    = "file"    // its name is a path, as in the output
	Package = "package" // of Go
	Class   = "class"   // of Java and similar languages
)

// Units returns the units of a kind that ran. It returns nil if there are too many to list.
func (r *Results) Units(kind string) (names []string) {
	if len(r.units) >= maxScopes {
		return nil
	}
	for u := range r.units {
		if u.kind == kind {
			names = append(names, u.name)
		}
	}
	return names
}

// addUnit records a unit that ran.
func (r *Results) addUnit(kind, name string) {
	if r.units == nil {
		r.units = map[unit]bool{}
	}
	if len(r.units) < maxScopes {
		r.units[unit{kind, cleanLine(name)}] = true
	}
}

// scope describes a group of tests that all ran, so the output would name a failure. Their names
// begin with prefix, and the rest matches.
type scope struct {
	prefix string
	rest   func() *regexp.Regexp // nil for anything
}

// contains reports whether a test's name belongs to the scope.
func (s scope) contains(name string) bool {
	after, ok := strings.CutPrefix(name, s.prefix)
	return ok && (s.rest == nil || s.rest().MatchString(after))
}

// hasAny reports whether the output said anything about tests.
func (r *Results) hasAny() bool {
	return r.seen || len(r.Failing) > 0 || len(r.passed) > 0 || len(r.skipped) > 0 || len(r.ran) > 0
}

// Complete reports whether Failing and More are all failures: nothing stopped, crashed or failed to compile.
func (r *Results) Complete() bool { return r.hasAny() && !r.partial }

// AnyPassed reports whether at least one test passed.
func (r *Results) AnyPassed() bool { return len(r.passed) > 0 || len(r.ran) > 0 }

// NamesEach reports whether the output names every passed test.
func (r *Results) NamesEach() bool { return len(r.passed) > 0 && len(r.ran) == 0 }

// NamesAny reports whether the output names a test for which fits is true, with any result.
func (r *Results) NamesAny(fits func(name string) bool) bool {
	for _, names := range []map[string]bool{r.passed, r.skipped, r.failing} {
		for name := range names {
			if fits(name) {
				return true
			}
		}
	}
	return false
}

// NamesPassed reports whether the output names a test as passed, and never as failed.
func (r *Results) NamesPassed(name string) bool { return r.passed[name] && !r.failing[name] }

// Passed reports whether a test passed. Outputs name all failures, so an unnamed test passed if its group ran.
func (r *Results) Passed(name string) bool {
	if isNamed := r.passed[name] || r.failing[name] || r.skipped[name]; isNamed {
		return r.isNamedPassed(name)
	}
	return slices.ContainsFunc(r.ran, func(s scope) bool { return s.contains(name) })
}

// isNamedPassed reports whether the output names a test as passed, and never as failed or skipped.
func (r *Results) isNamedPassed(name string) bool {
	return r.passed[name] && !r.failing[name] && !r.skipped[name]
}

// addFailure records a failing test, once for each name. Beyond maxFailing, it only counts them.
func (r *Results) addFailure(t Test) {
	t.Name, t.File, t.Message = cleanLine(t.Name), cleanLine(t.File), cleanLine(t.Message)
	t.Package = cleanLine(t.Package)
	for i := range t.OtherFiles {
		t.OtherFiles[i] = cleanLine(t.OtherFiles[i])
	}
	r.partial = r.partial || t.LoadError // tests of a file that does not load did not run
	if t.Name == "" || r.failing[t.Name] {
		return
	}
	if len(r.failing) < maxNames {
		addName(&r.failing, t.Name)
	}
	if len(r.Failing) < maxFailing {
		r.Failing = append(r.Failing, t)
	} else {
		r.More++
	}
}

// addPassed records a passed test.
func (r *Results) addPassed(name string) { addName(&r.passed, cleanLine(name)) }

// addSkipped records a skipped test.
func (r *Results) addSkipped(name string) { addName(&r.skipped, cleanLine(name)) }

// addName adds a name to a set, unless the set is full.
func addName(names *map[string]bool, name string) {
	if *names == nil {
		*names = map[string]bool{}
	}
	if name != "" && len(*names) < maxNames {
		(*names)[name] = true
	}
}

// addScope records a group of tests that all ran.
func (r *Results) addScope(s scope) {
	s.prefix = cleanLine(s.prefix)
	if len(r.ran) < maxScopes {
		r.ran = append(r.ran, s)
	}
}

// Join adds the results of another part or run.
func (r *Results) Join(more *Results) {
	for _, t := range more.Failing {
		r.addFailure(t)
	}
	r.More += more.More
	for name := range more.passed {
		addName(&r.passed, name)
	}
	for name := range more.skipped {
		addName(&r.skipped, name)
	}
	r.seen, r.partial = r.seen || more.seen, r.partial || more.partial
	for _, s := range more.ran {
		r.addScope(s)
	}
	for u := range more.units {
		r.addUnit(u.kind, u.name)
	}
}

// cleanLine returns a text as one visible line of up to maxText bytes.
func cleanLine(s string) string {
	if len(s) > 4*maxText {
		s = s[:4*maxText]
	}
	return clip.Line(markdown.Screen(s), maxText)
}
