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
	remaining     *int   // how many more tests may be kept, of all packages together
	current       string // the test whose output is read
	failing       []string
	failed        map[string]bool  // the same names as a set
	tests         map[string]*Test // tests with output or a failure
	passed        []string
	skipped       []string
	namesAll      bool // the output names every test, not only failed ones
	inRunningList bool // the list of tests that ran at the timeout has begun
	crashed       bool // a panic kept other tests from running
	truncated     bool // some tests were not kept
	ended         bool // the test program printed its final line
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
			p.current, p.namesAll = cleanLine(m[1]), true
		}
	case strings.Contains(text, "--- "):
		if m := goEnd().FindStringSubmatch(text); m != nil {
			p.current = cleanLine(m[2])
			p.recordEnd(p.current, m[1])
		}
	case text == "PASS" || text == "FAIL":
		p.ended = true
	case text == "\trunning tests:":
		p.inRunningList = true
	case strings.HasPrefix(text, "panic: "):
		p.crashed = true
		if p.current != "" {
			p.keepMessage(p.current, "", 0, text)
		}
	case p.inRunningList && strings.HasPrefix(text, "\t\t"):
		if m := goHung().FindStringSubmatch(text); m != nil {
			name := cleanLine(m[1])
			p.recordEnd(name, "FAIL")
			p.keepMessage(name, "", 0, "still ran when the time was over")
		}
	case p.current != "":
		if m := goPlace().FindStringSubmatch(text); m != nil {
			p.keepMessage(p.current, m[1], parseNumber(m[2]), m[3])
		}
	}
}

// testNamed returns the record of a test, and adds it if it is new. It returns nil if there are too many tests.
func (p *goPackage) testNamed(name string) *Test {
	if p.tests == nil {
		p.tests = map[string]*Test{}
	}
	if t := p.tests[name]; t != nil {
		return t
	}
	if !p.takeRoom() {
		return nil
	}
	t := &Test{Name: name}
	p.tests[name] = t
	return t
}

// takeRoom reports whether one more test may be kept, and counts it.
func (p *goPackage) takeRoom() bool {
	p.truncated = p.truncated || *p.remaining <= 0
	*p.remaining--
	return !p.truncated
}

// keepMessage keeps the first message of a test, with its place.
func (p *goPackage) keepMessage(name, file string, line int, message string) {
	if t := p.testNamed(name); t != nil && t.Message == "" {
		t.File, t.Line, t.Message = cleanLine(file), line, cleanLine(message)
	}
}

// recordEnd records how a test ended: PASS, SKIP or FAIL.
func (p *goPackage) recordEnd(name, end string) {
	p.namesAll = p.namesAll || end != "FAIL"
	switch {
	case end == "PASS" && p.takeRoom():
		p.passed = append(p.passed, name)
	case end == "SKIP" && p.takeRoom():
		p.skipped = append(p.skipped, name)
	case end == "FAIL" && !p.failed[name] && p.testNamed(name) != nil:
		addName(&p.failed, name)
		p.failing = append(p.failing, name)
	}
}

// addTo adds a package's tests to results, and resets p. If no test failed, it adds failure, which may be nil.
func (p *goPackage) addTo(name string, results *Results, failure *Test) {
	prefix := name + "."
	if name == "" {
		prefix = ""
	}
	for _, test := range p.passed {
		results.addPassed(prefix + test)
	}
	for _, test := range p.skipped {
		results.addSkipped(prefix + test)
	}
	var failing []Test
	for _, test := range p.failing {
		failing = append(failing, *p.testNamed(test))
	}
	for _, t := range withoutParents(failing, "/") {
		t.Name, t.Package = prefix+t.Name, name
		results.addFailure(t)
	}
	results.partial = results.partial || p.crashed || p.inRunningList || p.truncated
	if len(failing) == 0 && failure != nil {
		failure.Package = name
		results.addFailure(*failure)
		results.partial = true
	}
	*p = goPackage{remaining: p.remaining}
}

// noTest is the message for a package that failed without a failed test.
const noTest = "the package failed, and none of its tests"

// goText parses the text output of go test, with or without -v.
type goText struct {
	current     goPackage // the package whose output is read
	results     Results
	builds      goBuilds
	failedBuild string // the package whose compiler errors follow
}

// newGoText returns a parser for the text output of go test.
func newGoText() *goText {
	left := maxNames
	return &goText{current: goPackage{remaining: &left}, builds: goBuilds{}}
}

// line reads the next line. The lines before a package's last line belong to that package.
func (g *goText) line(text string) {
	switch {
	case strings.HasPrefix(text, "# "):
		g.failedBuild = cleanLine(builtPackage(text[2:]))
	case strings.HasPrefix(text, "?   \t"):
		g.results.seen = true
	case strings.HasPrefix(text, "ok  ") || strings.HasPrefix(text, "FAIL"):
		if !g.endPackage(text) {
			g.current.line(text)
		}
	default:
		isCompilerError := g.failedBuild != "" && g.builds.recordError(g.failedBuild, text)
		if !isCompilerError {
			g.current.line(text)
		}
	}
}

// builtPackage returns the package in a line of go build: "p_test [p.test]" is package p.
func builtPackage(of string) string {
	if _, test, ok := strings.Cut(of, " ["); ok {
		return strings.TrimSuffix(strings.TrimSuffix(test, "]"), ".test")
	}
	return strings.TrimSuffix(strings.Trim(of, "[]"), "_test")
}

// maxOtherFiles limits the further files listed for a package that does not compile.
const maxOtherFiles = 100

// goBuilds has the compiler errors by package: the first error, and the files of the others.
type goBuilds map[string]*Test

// recordError records the compiler error in a line. It returns false for any other line.
func (g goBuilds) recordError(pkg, text string) bool {
	m := goError().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	file, t := strings.TrimPrefix(m[1], "./"), g[pkg]
	switch {
	case t == nil && len(g) < maxPackages:
		g[pkg] = &Test{Message: cleanLine(m[3])}
		g[pkg].setPlace(file, m[2])
	case t != nil && t.File != file && len(t.OtherFiles) < maxOtherFiles && !slices.Contains(t.OtherFiles, file):
		t.OtherFiles = append(t.OtherFiles, cleanLine(file))
	}
	return true
}

// endPackage ends the results of a package at its last line. It returns false for any other line.
func (g *goText) endPackage(text string) bool {
	fields := strings.Fields(text)
	isEnd := len(fields) >= 2 && strings.Contains(text, "\t") && (fields[0] == "ok" || fields[0] == "FAIL")
	if !isEnd {
		return false
	}
	const maxFields = 10
	name, rest := cleanLine(fields[1]), cleanLine(strings.Join(fields[2:min(len(fields), maxFields)], " "))
	if fields[0] == "ok" {
		addPackage(name, &g.current, &g.results, nil, !strings.Contains(rest, "[no tests to run]"))
		return true
	}
	other := &Test{Name: name, Message: noTest}
	if strings.HasSuffix(rest, " failed]") {
		other = loadFailure(name, rest, g.builds[name])
	}
	addFailed(name, &g.current, &g.results, other)
	return true
}

// addFailed adds a package that failed. Its tests ran unless it did not load.
func addFailed(name string, p *goPackage, results *Results, failure *Test) {
	addPackage(name, p, results, failure, !failure.LoadError)
}

// addPackage adds a package that ended. failure is nil if it passed. Otherwise it is what addTo adds if no test failed.
// hasTests is false if no test ran.
func addPackage(name string, p *goPackage, results *Results, failure *Test, hasTests bool) {
	passed, crashed, namesAll := failure == nil, p.crashed, p.namesAll || !hasTests // addTo resets p
	p.addTo(name, results, failure)
	if passed {
		results.addPassed(name)
	}
	if hasTests {
		results.addUnit(Package, name)
	}
	if passed || hasTests && !crashed {
		recordRan(name, results, namesAll)
	}
}

// goTest matches the name of a test, and not the rest of a longer package name.
var goTest = lazyregexp.New(`^(?:Test|Fuzz|Example|Benchmark)[^./]*(?:/|$)`)

// recordRan records that the tests of a package ran. Unless the output names all tests, the unnamed ones passed.
func recordRan(name string, results *Results, namesAll bool) {
	results.seen = true
	if !namesAll {
		results.addScope(scope{prefix: name + ".", rest: goTest})
	}
	results.addScope(scope{prefix: name + " ["})
}

// loadFailure returns the failure of a package that does not compile, with its first compiler error or nil.
func loadFailure(name, reason string, compilerError *Test) *Test {
	t := Test{Name: name + " " + reason, Message: strings.Trim(reason, "[]"), LoadError: true}
	if compilerError != nil {
		t.File, t.Line, t.Message, t.OtherFiles = compilerError.File, compilerError.Line, compilerError.Message, compilerError.OtherFiles
	}
	return &t
}

// end adds the output after the last package, from a test program run without go test, and returns the results.
// They are partial if that output has failures but no end.
func (g *goText) end() *Results {
	g.results.partial = g.results.partial || len(g.current.failing) > 0 && !g.current.ended
	g.current.addTo("", &g.results, nil)
	return &g.results
}

// goJSON parses the output of go test -json and test2json.
type goJSON struct {
	packages  map[string]*goPackage
	builds    goBuilds
	order     []string
	results   Results
	remaining int
}

// goEvent is an event of a package, or of a test. FailedBuild is a package that did not compile, or "".
type goEvent struct{ Action, Package, ImportPath, Test, Output, FailedBuild string }

// line reads the next event. It skips lines that are no event.
func (g *goJSON) line(text string) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"Action"`) {
		return
	}
	var event goEvent
	if json.Unmarshal([]byte(text), &event) != nil {
		return
	}
	for _, name := range []*string{&event.Package, &event.ImportPath, &event.FailedBuild, &event.Test} {
		*name = cleanLine(*name)
	}
	if event.Action == "build-output" {
		g.builds.recordError(event.ImportPath, strings.TrimSpace(event.Output))
		return
	}
	if event.Package == "" {
		return
	}
	p := g.packages[event.Package]
	if p == nil && len(g.packages) >= maxPackages {
		g.results.partial = true
		return
	}
	if p == nil {
		p = &goPackage{remaining: &g.remaining}
		g.packages[event.Package] = p
		g.order = append(g.order, event.Package)
	}
	p.namesAll = true // in JSON each test has an event
	g.recordEvent(p, event)
}

// recordEvent records an event of package p.
func (g *goJSON) recordEvent(p *goPackage, e goEvent) {
	name, isEnd := e.Package, slices.Contains([]string{"pass", "fail", "skip"}, e.Action)
	switch {
	case e.Action == "output" && (e.Test != "" || strings.HasPrefix(e.Output, "panic: ")):
		p.current = e.Test
		p.line(strings.TrimSuffix(e.Output, "\n"))
	case isEnd && e.Test != "":
		p.recordEnd(e.Test, strings.ToUpper(e.Action))
	case e.Action == "pass":
		addPackage(name, p, &g.results, nil, len(p.passed)+len(p.skipped) > 0)
	case e.Action == "skip": // the package has no tests
		p.addTo(name, &g.results, nil)
		g.results.seen = true
	case e.Action == "fail" && e.FailedBuild != "":
		addFailed(name, p, &g.results, loadFailure(name, "[build failed]", g.builds[e.FailedBuild]))
	case e.Action == "fail":
		addFailed(name, p, &g.results, &Test{Name: name, Message: noTest})
	}
}

// end adds the packages whose end was not reported.
func (g *goJSON) end() *Results {
	for _, name := range g.order {
		p := g.packages[name]
		g.results.partial = g.results.partial || len(p.failing) > 0
		p.addTo(name, &g.results, nil)
	}
	return &g.results
}
