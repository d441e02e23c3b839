package testresults

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// maxFailing bounds the listed failing tests. More are counted.
const maxFailing = 10_000

// maxPackages is how many packages are told apart.
const maxPackages = 500

// Bounds of the kept output.
const (
	maxNames   = 100_000 // of tests of one kind: failing, passed, skipped
	maxScopes  = 2000
	maxName    = 300 // bytes
	maxMessage = 300 // bytes
)

// Test is a failing test.
type Test struct {
	Name    string // as its own tool names it, with its package or file
	File    string // as the output names it; empty where it doesn't
	Line    int    // 0 where the output doesn't tell
	Message string // the first line that says why; may be empty
	Package string // of Go, in which it is
	// Thrown marks File and Line as the failure's place, possibly in called code.
	Thrown bool
	// Load reports a file that does not compile or load, so no test ran.
	Load bool
	Also []string // files besides File that do not compile
}

// Results are the tests in an output.
type Results struct {
	Failing []Test // in the order of the output, each name once
	More    int    // failing tests beyond MaxFailing

	failing map[string]bool // names, those beyond MaxFailing too
	passed  map[string]bool
	skipped map[string]bool
	ran     []scope
	units   map[unit]bool // that ran
	seen    bool          // a tool told that it ran tests, perhaps none
	partial bool          // more tests may fail than those
}

// at sets the test's place.
func (t *Test) at(file, line string) { t.File, t.Line = clean(file, maxName), number(line) }

// says keeps the first line that says why the test fails.
func (t *Test) says(text string) {
	if t.Message == "" {
		t.Message = clean(text, maxMessage)
	}
}

// from considers a place in a failure's trace: the test's own if the file is the test's, or named
// after its class. Without such a place, the first one counts.
func (t *Test) from(file string, line int) {
	own := !t.Thrown && t.File != "" && strings.HasSuffix("/"+t.File, "/"+file) || t.inClass(file)
	switch {
	case own && t.Thrown || t.File == "":
		t.File, t.Line, t.Thrown = file, line, !own
	case own && t.Line == 0:
		t.Line = line
	}
}

// inClass reports whether a file is named after the test's class or module.
func (t *Test) inClass(file string) bool {
	stem, _, _ := strings.Cut(file[strings.LastIndexByte(file, '/')+1:], ".")
	return stem != "" && slices.Contains(strings.FieldsFunc(t.Name, func(r rune) bool { return strings.ContainsRune(`.$\:`, r) }), stem)
}

// unit is a tool's unit of work that ran.
type unit struct{ kind, name string }

// Kinds of units.
const (
	File    = "file"    // its name is a path as the output has it
	Package = "package" // of Go
	Class   = "class"   // of Java and the like
)

// Units returns the units of a kind that ran, or nil if the output does not list all.
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

func (r *Results) unit(kind, name string) {
	if r.units == nil {
		r.units = map[unit]bool{}
	}
	if len(r.units) < maxScopes {
		r.units[unit{kind, clean(name, maxName)}] = true
	}
}

// scope describes tests that would be named if they failed, because all of them ran: those with a
// prefix and a matching rest.
type scope struct {
	begins string
	rest   func() *regexp.Regexp // nil for anything
}

func (s scope) has(name string) bool {
	after, ok := strings.CutPrefix(name, s.begins)
	return ok && (s.rest == nil || s.rest().MatchString(after))
}

// known says whether the output told anything of tests.
func (r *Results) known() bool {
	return r.seen || len(r.Failing) > 0 || len(r.passed) > 0 || len(r.skipped) > 0 || len(r.ran) > 0
}

// Complete reports whether Failing and More are all failures: nothing was stopped, crashed,
// uncompiled or omitted.
func (r *Results) Complete() bool { return r.known() && !r.partial }

// Ran reports whether a test passed.
func (r *Results) Ran() bool { return len(r.passed) > 0 || len(r.ran) > 0 }

// NamesEach reports whether the output names passed tests instead of counting them.
func (r *Results) NamesEach() bool { return len(r.passed) > 0 && len(r.ran) == 0 }

// Tells reports whether the output names a test that fits, with any result.
func (r *Results) Tells(fits func(name string) bool) bool {
	for _, names := range []map[string]bool{r.passed, r.skipped, r.failing} {
		for name := range names {
			if fits(name) {
				return true
			}
		}
	}
	return false
}

// Named reports whether the output names a test as passed.
func (r *Results) Named(name string) bool { return r.passed[name] && !r.failing[name] }

// Passed reports whether a test passed: by name, or because its failure would have been named.
func (r *Results) Passed(name string) bool {
	return r.named(name) || !r.failing[name] && !r.skipped[name] && slices.ContainsFunc(r.ran, func(s scope) bool { return s.has(name) })
}

// named reports whether the output only names a test as passed.
func (r *Results) named(name string) bool {
	return r.passed[name] && !r.failing[name] && !r.skipped[name]
}

// fail records a failing test once, under its name. Beyond MaxFailing tests are only counted.
func (r *Results) fail(t Test) {
	t.Name, t.File, t.Message = clean(t.Name, maxName), clean(t.File, maxName), clean(t.Message, maxMessage)
	t.Package = clean(t.Package, maxName)
	for i := range t.Also {
		t.Also[i] = clean(t.Also[i], maxName)
	}
	r.partial = r.partial || t.Load // what it has did not run
	if t.Name == "" || r.failing[t.Name] {
		return
	}
	if len(r.failing) < maxNames {
		note(&r.failing, t.Name)
	}
	if len(r.Failing) < maxFailing {
		r.Failing = append(r.Failing, t)
	} else {
		r.More++
	}
}

func (r *Results) pass(name string) { note(&r.passed, clean(name, maxName)) }

func (r *Results) skip(name string) { note(&r.skipped, clean(name, maxName)) }

// note puts a name into a set, as long as there is room.
func note(names *map[string]bool, name string) {
	if *names == nil {
		*names = map[string]bool{}
	}
	if name != "" && len(*names) < maxNames {
		(*names)[name] = true
	}
}

// addScope notes a group of tests that all ran: tests of the group without a name in the output passed.
func (r *Results) addScope(s scope) {
	if s.begins = clean(s.begins, maxName); len(r.ran) < maxScopes {
		r.ran = append(r.ran, s)
	}
}

// Join adds the results of another part or run.
func (r *Results) Join(more *Results) {
	for _, t := range more.Failing {
		r.fail(t)
	}
	r.More += more.More
	for name := range more.passed {
		note(&r.passed, name)
	}
	for name := range more.skipped {
		note(&r.skipped, name)
	}
	r.seen, r.partial = r.seen || more.seen, r.partial || more.partial
	for _, s := range more.ran {
		r.addScope(s)
	}
	for u := range more.units {
		r.unit(u.kind, u.name)
	}
}

// clean returns one visible line up to most bytes.
func clean(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	return clip.Line(markdown.Screen(s), most)
}
