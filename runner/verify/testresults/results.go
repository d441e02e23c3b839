package testresults

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// MaxFailing is the most failing tests that results list. More are counted.
const MaxFailing = 10_000

// maxPackages is how many packages are told apart.
const maxPackages = 500

// Bounds on what is kept of an output.
const (
	maxPassed  = 100_000 // names of tests
	maxScopes  = 2000
	maxName    = 300 // bytes
	maxMessage = 300 // bytes
)

// Test is a test that fails.
type Test struct {
	Name    string // as its own tool names it, with its package or file
	File    string // as the output names it; empty where it doesn't
	Line    int    // 0 where the output doesn't tell
	Message string // the first line that says why; may be empty
	Package string // of Go, in which it is
	// Load says that no test ran: something does not compile or load.
	Load bool
	Also []string // files besides File that do not compile
}

// Results are what an output says of tests.
type Results struct {
	Failing []Test // in the order of the output, each name once
	More    int    // failing tests beyond MaxFailing

	failing map[string]bool // names, those beyond MaxFailing too
	passed  map[string]bool
	ran     []scope
}

// scope says which tests an output would name if they failed: it has gone through all
// of them.
type scope struct{ begins, contains string }

func (s scope) has(name string) bool {
	return strings.HasPrefix(name, s.begins) && strings.Contains(name, s.contains)
}

// Known says whether the output told anything of tests.
func (r *Results) Known() bool { return len(r.Failing) > 0 || len(r.passed) > 0 || len(r.ran) > 0 }

// Ran says whether the output tells of a test that passed.
func (r *Results) Ran() bool { return len(r.passed) > 0 || len(r.ran) > 0 }

// Named says whether the output names a test as one that passed.
func (r *Results) Named(name string) bool { return r.passed[name] && !r.failing[name] }

// Passed says whether the output tells that a test passed: by its name, or since it
// would have named one that fails.
func (r *Results) Passed(name string) bool {
	return !r.failing[name] && (r.passed[name] || slices.ContainsFunc(r.ran, func(s scope) bool { return s.has(name) }))
}

func (r *Results) fail(t Test) {
	t.Name, t.File, t.Message = clean(t.Name, maxName), clean(t.File, maxName), clean(t.Message, maxMessage)
	t.Package = clean(t.Package, maxName)
	for i := range t.Also {
		t.Also[i] = clean(t.Also[i], maxName)
	}
	if t.Name == "" || r.failing[t.Name] {
		return
	}
	if r.failing == nil {
		r.failing = map[string]bool{}
	}
	if len(r.failing) < maxPassed {
		r.failing[t.Name] = true
	}
	if len(r.Failing) < MaxFailing {
		r.Failing = append(r.Failing, t)
	} else {
		r.More++
	}
}

func (r *Results) pass(name string) {
	if r.passed == nil {
		r.passed = map[string]bool{}
	}
	if name = clean(name, maxName); name != "" && len(r.passed) < maxPassed {
		r.passed[name] = true
	}
}

func (r *Results) whole(s scope) {
	if s.begins = clean(s.begins, maxName); len(r.ran) < maxScopes {
		r.ran = append(r.ran, s)
	}
}

// join adds what another part of the output said.
func (r *Results) join(more *Results) {
	for _, t := range more.Failing {
		r.fail(t)
	}
	r.More += more.More
	for name := range more.passed {
		r.pass(name)
	}
	for _, s := range more.ran {
		r.whole(s)
	}
}

// clean is one line of at most so many bytes, without what cannot be seen.
func clean(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most]
	}
	s = strings.Join(strings.Fields(markdown.Screen(s)), " ")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
