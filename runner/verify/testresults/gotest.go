package testresults

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxTests is how many tests of a package are told apart.
const maxTests = 20_000

// goPackage is what go test says of one package (https://pkg.go.dev/cmd/test2json).
type goPackage struct {
	current string // the test that prints
	failing []string
	failed  map[string]bool  // those
	tests   map[string]*Test // those that print or fail
	passed  []string
	hung    bool // the tests that ran when time was over are listed
	crashed bool // others of its tests did not run
}

var (
	goEnd   = lazily(`^ *--- (FAIL|PASS|SKIP): (\S.*) \([0-9.]+s\)$`)
	goBegin = lazily(`^=== (?:RUN|NAME|CONT) +(\S.*)$`)
	goPlace = lazily(`^\s*([\w.@+-]+\.go):([0-9]+): (.*)$`)
	goHung  = lazily(`^\t\t(Test\S+) \([0-9.]+[a-z0-9.]*\)$`)
	goError = lazily(`^(?:vet: )?(\S+\.go):([0-9]+)(?::[0-9]+)?: (.*)$`)
)

func (p *goPackage) line(text string) {
	switch {
	case strings.HasPrefix(text, "=== "):
		if m := goBegin().FindStringSubmatch(text); m != nil {
			p.current = m[1]
		}
	case strings.Contains(text, "--- "):
		if m := goEnd().FindStringSubmatch(text); m != nil {
			p.current = m[2]
			p.result(m[2], m[1])
		}
	case text == "\trunning tests:":
		p.hung = true
	case strings.HasPrefix(text, "panic: "):
		p.crashed = true
		if p.current != "" {
			p.say(p.current, "", 0, text)
		}
	case p.hung && strings.HasPrefix(text, "\t\t"):
		if m := goHung().FindStringSubmatch(text); m != nil {
			p.result(m[1], "FAIL")
			p.say(m[1], "", 0, "still ran when the time was over")
		}
	case p.current != "":
		if m := goPlace().FindStringSubmatch(text); m != nil {
			p.say(p.current, m[1], number(m[2]), m[3])
		}
	}
}

func (p *goPackage) test(name string) *Test {
	if p.tests == nil {
		p.tests = map[string]*Test{}
	}
	t := p.tests[name]
	if t == nil {
		if t = (&Test{Name: name}); len(p.tests) < maxTests {
			p.tests[name] = t
		}
	}
	return t
}

// say keeps the first thing that a test says of itself.
func (p *goPackage) say(name, file string, line int, message string) {
	if t := p.test(name); t.Message == "" {
		t.File, t.Line, t.Message = file, line, message
	}
}

func (p *goPackage) result(name, end string) {
	switch {
	case len(p.passed)+len(p.failing) >= maxTests:
	case end == "PASS":
		p.passed = append(p.passed, name)
	case end == "FAIL" && !p.failed[name]:
		if p.failed == nil {
			p.failed = map[string]bool{}
		}
		p.failed[name] = true
		p.failing = append(p.failing, name)
	}
}

// end gives what a package of that name has come to. other is what it failed for where
// no test failed; nil where it ended well.
func (p *goPackage) end(name string, to *Results, other *Test) {
	prefix := name + "."
	if name == "" {
		prefix = ""
	}
	for _, test := range p.passed {
		to.pass(prefix + test)
	}
	var failing []Test
	for _, test := range p.failing {
		failing = append(failing, *p.test(test))
	}
	for _, t := range withoutParents(failing, "/") {
		t.Name, t.Package = prefix+t.Name, name
		to.fail(t)
	}
	if len(failing) == 0 && other != nil {
		other.Package = name
		to.fail(*other)
	}
	*p = goPackage{}
}

// noTest is what a package says that fails without a test of it.
const noTest = "the package failed, and none of its tests"

// goText is the text that go test prints, with -v or without.
type goText struct {
	of     goPackage // that prints
	told   Results
	builds map[string]*Test // what the compiler says, by package
	build  string           // of which it speaks
}

func newGoText() *goText { return &goText{builds: map[string]*Test{}} }

func (g *goText) line(text string) {
	switch {
	case strings.HasPrefix(text, "# "):
		g.build = built(text[2:])
	case strings.HasPrefix(text, "ok  ") || strings.HasPrefix(text, "FAIL"):
		if !g.ended(text) {
			g.of.line(text)
		}
	case g.build != "" && goError().MatchString(text):
		g.compilerSays(text)
	default:
		g.of.line(text)
	}
}

func (g *goText) compilerSays(text string) {
	errorIn(g.builds, g.build, goError().FindStringSubmatch(text))
}

// built is the package of which a line of go build tells, without what it is built for:
// "p_test [p.test]" is p.
func built(of string) string {
	if _, test, ok := strings.Cut(of, " ["); ok {
		return strings.TrimSuffix(strings.TrimSuffix(test, "]"), ".test")
	}
	return strings.TrimSuffix(strings.Trim(of, "[]"), "_test")
}

// maxAlso is how many more files than one are named of a package that does not compile.
const maxAlso = 100

// errorIn notes an error of the compiler as goError finds it: the first one of a package,
// and the files of the others.
func errorIn(builds map[string]*Test, of string, m []string) {
	file, t := strings.TrimPrefix(m[1], "./"), builds[of]
	switch {
	case t == nil && len(builds) < maxPackages:
		builds[of] = &Test{File: file, Line: number(m[2]), Message: m[3]}
	case t != nil && t.File != file && len(t.Also) < maxAlso && !slices.Contains(t.Also, file):
		t.Also = append(t.Also, file)
	}
}

// ended takes the line that ends a package.
func (g *goText) ended(text string) bool {
	fields := strings.Fields(text)
	if len(fields) < 2 || !strings.Contains(text, "\t") || fields[0] != "ok" && fields[0] != "FAIL" {
		return false
	}
	name, rest := fields[1], strings.Join(fields[2:], " ")
	if fields[0] == "ok" {
		well(name, &g.of, &g.told)
		return true
	}
	other := &Test{Name: name, Message: noTest}
	if strings.HasSuffix(rest, " failed]") {
		other = loadFailure(name, rest, g.builds[name])
	}
	crashed := g.of.crashed
	g.of.end(name, &g.told, other)
	if !crashed && !other.Load {
		ran(name, &g.told)
	}
	return true
}

// well tells of a package that passed.
func well(name string, p *goPackage, to *Results) {
	p.end(name, to, nil)
	to.pass(name)
	ran(name, to)
}

// ran tells of a package that compiled, and whose tests ran.
func ran(name string, to *Results) {
	to.whole(scope{begins: name + "."})
	to.whole(scope{begins: name + " ["})
}

func loadFailure(name, how string, said *Test) *Test {
	t := Test{Name: name + " " + how, Message: strings.Trim(how, "[]"), Load: true}
	if said != nil {
		t.File, t.Line, t.Message, t.Also = said.File, said.Line, said.Message, said.Also
	}
	return &t
}

// end gives what came after the last package too: the output of a test program that go
// test did not start.
func (g *goText) end() *Results {
	g.of.end("", &g.told, nil)
	return &g.told
}

// goJSON is what go test -json and test2json print.
type goJSON struct {
	packages map[string]*goPackage
	builds   map[string]*Test
	order    []string
	told     Results
}

func newGoJSON() *goJSON {
	return &goJSON{packages: map[string]*goPackage{}, builds: map[string]*Test{}}
}

func (g *goJSON) line(text string) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"Action"`) {
		return
	}
	var e struct{ Action, Package, ImportPath, Test, Output, FailedBuild string }
	if json.Unmarshal([]byte(text), &e) != nil {
		return
	}
	if e.Action == "build-output" {
		g.compilerSays(e.ImportPath, strings.TrimSpace(e.Output))
		return
	}
	p := g.packages[e.Package]
	if e.Package == "" || p == nil && len(g.packages) >= maxPackages {
		return
	}
	if p == nil {
		p = &goPackage{}
		g.packages[e.Package] = p
		g.order = append(g.order, e.Package)
	}
	g.event(p, e.Action, e.Package, e.Test, e.Output, e.FailedBuild)
}

func (g *goJSON) compilerSays(of, text string) {
	if m := goError().FindStringSubmatch(text); m != nil {
		errorIn(g.builds, of, m)
	}
}

func (g *goJSON) event(p *goPackage, action, name, test, output, failedBuild string) {
	switch {
	case action == "output" && (test != "" || strings.HasPrefix(output, "panic: ")):
		p.current = test
		p.line(strings.TrimSuffix(output, "\n"))
	case (action == "pass" || action == "fail") && test != "":
		p.result(test, strings.ToUpper(action))
	case action == "pass":
		well(name, p, &g.told)
	case action == "fail" && failedBuild != "":
		p.end(name, &g.told, loadFailure(name, "[build failed]", g.builds[failedBuild]))
	case action == "fail":
		crashed := p.crashed
		if p.end(name, &g.told, &Test{Name: name, Message: noTest}); !crashed {
			ran(name, &g.told)
		}
	}
}

// end also gives what packages told that had no end.
func (g *goJSON) end() *Results {
	for _, name := range g.order {
		g.packages[name].end(name, &g.told, nil)
	}
	return &g.told
}
