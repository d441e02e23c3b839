package testresults

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// maxTests limits the tests of one tool in memory.
const maxTests = 20_000

// goPackage holds go test's results for a package (https://pkg.go.dev/cmd/test2json).
type goPackage struct {
	left    *int   // how many more tests may be kept, of all packages together
	current string // the test whose output is read
	failing []string
	failed  map[string]bool  // the same names as a set
	tests   map[string]*Test // tests with output or a failure
	passed  []string
	skipped []string
	named   bool // the output names every test, not only failed ones
	hung    bool // the list of tests that ran at the timeout has begun
	crashed bool // a panic kept other tests from running
	cut     bool // some tests were not kept
	ended   bool // the test program printed its final line
}

var (
	goEnd   = lazyregexp.New(`^ *--- (FAIL|PASS|SKIP): (\S.*) \([0-9.]+s\)$`)
	goBegin = lazyregexp.New(`^=== (?:RUN|NAME|CONT) +(\S.*)$`)
	goPlace = lazyregexp.New(`^\s*([\w.@+-]+\.go):([0-9]+): (.*)$`)
	goHung  = lazyregexp.New(`^\t\t(Test\S+) \([0-9.]+[a-z0-9.]*\)$`)
	goError = lazyregexp.New(`^(?:vet: )?(\S+\.go):([0-9]+)(?::[0-9]+)?: (.*)$`)
)

// line reads the next line that a package's tests print.
func (p *goPackage) line(text string) {
	switch {
	case strings.HasPrefix(text, "=== "):
		if m := goBegin().FindStringSubmatch(text); m != nil {
			p.current, p.named = clean(m[1], maxName), true
		}
	case strings.Contains(text, "--- "):
		if m := goEnd().FindStringSubmatch(text); m != nil {
			p.current = clean(m[2], maxName)
			p.result(p.current, m[1])
		}
	case text == "PASS" || text == "FAIL":
		p.ended = true
	case text == "\trunning tests:":
		p.hung = true
	case strings.HasPrefix(text, "panic: "):
		p.crashed = true
		if p.current != "" {
			p.say(p.current, "", 0, text)
		}
	case p.hung && strings.HasPrefix(text, "\t\t"):
		if m := goHung().FindStringSubmatch(text); m != nil {
			name := clean(m[1], maxName)
			p.result(name, "FAIL")
			p.say(name, "", 0, "still ran when the time was over")
		}
	case p.current != "":
		if m := goPlace().FindStringSubmatch(text); m != nil {
			p.say(p.current, m[1], number(m[2]), m[3])
		}
	}
}

// test returns a test's record. It returns nil if there are too many tests.
func (p *goPackage) test(name string) *Test {
	if p.tests == nil {
		p.tests = map[string]*Test{}
	}
	if t := p.tests[name]; t != nil || !p.room() {
		return t
	}
	t := &Test{Name: name}
	p.tests[name] = t
	return t
}

// room reports whether one more test may be kept, and counts it.
func (p *goPackage) room() bool {
	p.cut = p.cut || *p.left <= 0
	*p.left--
	return !p.cut
}

// say keeps the first message of a test.
func (p *goPackage) say(name, file string, line int, message string) {
	if t := p.test(name); t != nil && t.Message == "" {
		t.File, t.Line, t.Message = clean(file, maxName), line, clean(message, maxMessage)
	}
}

// result records the end of a test: PASS, SKIP or FAIL.
func (p *goPackage) result(name, end string) {
	p.named = p.named || end != "FAIL"
	switch {
	case end == "PASS" && p.room():
		p.passed = append(p.passed, name)
	case end == "SKIP" && p.room():
		p.skipped = append(p.skipped, name)
	case end == "FAIL" && !p.failed[name] && p.test(name) != nil:
		if p.failed == nil {
			p.failed = map[string]bool{}
		}
		p.failed[name] = true
		p.failing = append(p.failing, name)
	}
}

// end adds a package's results to the output's, and resets p. other is the failure to report if no
// test failed; nil if the package passed.
func (p *goPackage) end(name string, to *Results, other *Test) {
	prefix := name + "."
	if name == "" {
		prefix = ""
	}
	for _, test := range p.passed {
		to.pass(prefix + test)
	}
	for _, test := range p.skipped {
		to.skip(prefix + test)
	}
	var failing []Test
	for _, test := range p.failing {
		failing = append(failing, *p.test(test))
	}
	for _, t := range withoutParents(failing, "/") {
		t.Name, t.Package = prefix+t.Name, name
		to.fail(t)
	}
	to.partial = to.partial || p.crashed || p.hung || p.cut
	if len(failing) == 0 && other != nil {
		other.Package = name
		to.fail(*other)
		to.partial = true
	}
	*p = goPackage{left: p.left}
}

// noTest is the message for a package that failed without a failed test.
const noTest = "the package failed, and none of its tests"

// goText parses the text output of go test, with or without -v.
type goText struct {
	of     goPackage // the package whose output is read
	told   Results
	builds goBuilds
	build  string // the package whose compiler errors follow
}

func newGoText() *goText {
	left := maxNames
	return &goText{of: goPackage{left: &left}, builds: goBuilds{}}
}

// line reads the next line. The lines before the last line of a package belong to that package.
func (g *goText) line(text string) {
	switch {
	case strings.HasPrefix(text, "# "):
		g.build = clean(built(text[2:]), maxName)
	case strings.HasPrefix(text, "?   \t"):
		g.told.seen = true
	case strings.HasPrefix(text, "ok  ") || strings.HasPrefix(text, "FAIL"):
		if !g.ended(text) {
			g.of.line(text)
		}
	case g.build != "" && g.builds.compilerSays(g.build, text):
	default:
		g.of.line(text)
	}
}

// built returns the package in a line of go build: "p_test [p.test]" is package p.
func built(of string) string {
	if _, test, ok := strings.Cut(of, " ["); ok {
		return strings.TrimSuffix(strings.TrimSuffix(test, "]"), ".test")
	}
	return strings.TrimSuffix(strings.Trim(of, "[]"), "_test")
}

// maxAlso limits the further files listed for a package that does not compile.
const maxAlso = 100

// goBuilds has the compiler errors by package: the first error, and the files of the others.
type goBuilds map[string]*Test

// compilerSays records the compiler error in a line. It returns false for any other line.
func (g goBuilds) compilerSays(of, text string) bool {
	m := goError().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	file, t := strings.TrimPrefix(m[1], "./"), g[of]
	switch {
	case t == nil && len(g) < maxPackages:
		g[of] = &Test{Message: clean(m[3], maxMessage)}
		g[of].at(file, m[2])
	case t != nil && t.File != file && len(t.Also) < maxAlso && !slices.Contains(t.Also, file):
		t.Also = append(t.Also, clean(file, maxName))
	}
	return true
}

// ended handles the last line of a package. It returns false for any other line.
func (g *goText) ended(text string) bool {
	fields := strings.Fields(text)
	if len(fields) < 2 || !strings.Contains(text, "\t") || fields[0] != "ok" && fields[0] != "FAIL" {
		return false
	}
	name, rest := clean(fields[1], maxName), clean(strings.Join(fields[2:min(len(fields), 10)], " "), maxName)
	if fields[0] == "ok" {
		well(name, &g.of, &g.told, !strings.Contains(rest, "[no tests to run]"))
		return true
	}
	other := &Test{Name: name, Message: noTest}
	if strings.HasSuffix(rest, " failed]") {
		other = loadFailure(name, rest, g.builds[name])
	}
	crashed, named := g.of.crashed, g.of.named
	if g.of.end(name, &g.told, other); !other.Load {
		g.told.unit(Package, name)
	}
	if !crashed && !other.Load {
		ran(name, &g.told, named)
	}
	return true
}

// well adds a passed package. any is false if it had no tests to run.
func well(name string, p *goPackage, to *Results, any bool) {
	named := p.named || !any
	p.end(name, to, nil)
	to.pass(name)
	if any {
		to.unit(Package, name)
	}
	ran(name, to, named)
}

// goTest matches a test's name after its package. This distinguishes packages whose name begins
// with another package's name.
var goTest = lazyregexp.New(`^(?:Test|Fuzz|Example|Benchmark)[^./]*(?:/|$)`)

// ran records that the tests of a package ran. If named is false, tests without a name in the output passed.
func ran(name string, to *Results, named bool) {
	if to.seen = true; !named {
		to.addScope(scope{begins: name + ".", rest: goTest})
	}
	to.addScope(scope{begins: name + " ["})
}

// loadFailure returns the failure of a package that does not compile. said is its first compiler
// error, or nil.
func loadFailure(name, how string, said *Test) *Test {
	t := Test{Name: name + " " + how, Message: strings.Trim(how, "[]"), Load: true}
	if said != nil {
		t.File, t.Line, t.Message, t.Also = said.File, said.Line, said.Message, said.Also
	}
	return &t
}

// end adds the output after the last package: that of a test program run without go test.
func (g *goText) end() *Results {
	g.told.partial = g.told.partial || len(g.of.failing) > 0 && !g.of.ended
	g.of.end("", &g.told, nil)
	return &g.told
}

// goJSON parses the output of go test -json and test2json.
type goJSON struct {
	packages map[string]*goPackage
	builds   goBuilds
	order    []string
	told     Results
	left     int
}

func newGoJSON() *goJSON {
	return &goJSON{packages: map[string]*goPackage{}, builds: goBuilds{}, left: maxNames}
}

// line reads the next event. It skips lines that are no event.
func (g *goJSON) line(text string) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"Action"`) {
		return
	}
	var e struct{ Action, Package, ImportPath, Test, Output, FailedBuild string }
	if json.Unmarshal([]byte(text), &e) != nil {
		return
	}
	e.Package, e.ImportPath, e.FailedBuild, e.Test = clean(e.Package, maxName), clean(e.ImportPath, maxName), clean(e.FailedBuild, maxName), clean(e.Test, maxName)
	if e.Action == "build-output" {
		g.builds.compilerSays(e.ImportPath, strings.TrimSpace(e.Output))
		return
	}
	p := g.packages[e.Package]
	if e.Package == "" || p == nil && len(g.packages) >= maxPackages {
		g.told.partial = g.told.partial || e.Package != ""
		return
	}
	if p == nil {
		p = &goPackage{left: &g.left, named: true}
		g.packages[e.Package] = p
		g.order = append(g.order, e.Package)
	}
	g.event(p, e.Action, e.Package, e.Test, e.Output, e.FailedBuild)
}

// event records an event of a package, or of a test unless test is "". failedBuild is the package
// that did not compile, or "".
func (g *goJSON) event(p *goPackage, action, name, test, output, failedBuild string) {
	switch {
	case action == "output" && (test != "" || strings.HasPrefix(output, "panic: ")):
		p.current = test
		p.line(strings.TrimSuffix(output, "\n"))
	case (action == "pass" || action == "fail" || action == "skip") && test != "":
		p.result(test, strings.ToUpper(action))
	case action == "pass":
		p.named = true // in JSON each test has an event
		well(name, p, &g.told, len(p.passed)+len(p.skipped) > 0)
	case action == "skip": // the package has no tests
		p.end(name, &g.told, nil)
		g.told.seen = true
	case action == "fail" && failedBuild != "":
		p.end(name, &g.told, loadFailure(name, "[build failed]", g.builds[failedBuild]))
	case action == "fail":
		crashed := p.crashed
		g.told.unit(Package, name)
		if p.end(name, &g.told, &Test{Name: name, Message: noTest}); !crashed {
			ran(name, &g.told, true)
		}
	}
}

// end adds the packages whose end was not reported.
func (g *goJSON) end() *Results {
	for _, name := range g.order {
		p := g.packages[name]
		g.told.partial = g.told.partial || len(p.failing) > 0
		p.end(name, &g.told, nil)
	}
	return &g.told
}
