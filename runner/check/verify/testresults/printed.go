package testresults

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// layout describes a tool's default output.
type layout struct {
	tool   string // whose output it is
	rules  []rule // the first that fits a line counts
	indent int    // of the outermost tests, where indentation shows groups
	nested bool   // groups fail too, under their own names
}

// rule gives matching lines a meaning. Its named groups are the line's parts.
type rule struct {
	in   string // the section of the output in which it holds; empty for all
	has  string // what each such line contains, which is faster to look for
	fits func() *regexp.Regexp
	does func(*printed, parts)
}

// parts are a line's named groups.
type parts map[string]string

// printed parses one tool's output by its layout. It only counts if the line with the totals
// appears, which other programs do not print.
type printed struct {
	layout
	told     Results
	section  string
	groups   []string // around the tests, as indentation shows them
	suite    string   // whose tests run
	tests    []*Test  // that fail
	open     []*Test  // of which the next lines tell
	holds    bool     // the next lines do not say why
	place    Test     // of the test whose name comes
	title    []string // the beginning of a name of several lines
	noLoad   string   // why a file did not load, whose name comes
	unloaded *Test    // such a file
	fails    int      // by the totals
	total    bool     // they were told
	stopped  bool     // other tests did not run
}

func printedBy(tools []layout) (all []format) {
	for _, of := range tools {
		all = append(all, &printed{layout: of})
	}
	return all
}

func (p *printed) line(text string) {
	for _, r := range p.rules {
		if r.in != "" && r.in != p.section || !strings.Contains(text, r.has) {
			continue
		}
		m := r.fits().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		of := parts{}
		for i, name := range r.fits().SubexpNames() {
			if name != "" {
				of[name] = m[i]
			}
		}
		r.does(p, of)
		return
	}
	text = strings.TrimSpace(text)
	if text == "" {
		p.holds = false
	} else if !p.holds {
		p.says(parts{"says": text})
	}
}

// says keeps the first line with the reason of the open tests' failure.
func (p *printed) says(of parts) {
	for _, t := range p.open {
		if t.Message == "" {
			t.Message = clean(of["says"], maxMessage)
		}
	}
}

// named returns a test's name with its groups.
func (p *printed) named(of parts) string {
	name := of["name"]
	if in, is := of["in"]; is {
		depth := max(0, min((len(in)-p.indent)/2, len(p.groups)))
		name = strings.Join(append(slices.Clone(p.groups[:depth]), name), " > ")
	}
	suite := of["suite"]
	if suite == "" {
		suite = p.suite
	}
	if suite != "" {
		name = suite + of["joined"] + name
	}
	return clean(name, maxName)
}

func (p *printed) group(of parts) {
	depth := max(0, (len(of["in"])-p.indent)/2)
	if depth < 20 && depth <= len(p.groups) {
		p.groups = append(p.groups[:depth:depth], clean(of["name"], maxName))
	}
}

func (p *printed) passes(of parts) {
	if p.open = nil; len(p.told.passed) < maxTests {
		p.told.pass(p.named(of))
	}
}

func (p *printed) skips(of parts) {
	if p.open = nil; len(p.told.skipped) < maxTests {
		p.told.skip(p.named(of))
	}
}

// failing opens a failing test. Tests with the same reason follow each other.
func (p *printed) failing(t Test) {
	if len(p.tests) >= maxTests {
		p.stopped = true
		return
	}
	if len(p.open) > 0 && p.open[0].Message != "" {
		p.open = nil
	}
	p.tests = append(p.tests, &t)
	p.open, p.holds = append(p.open, &t), false
}

func (p *printed) failed(of parts) {
	p.failing(Test{Name: p.named(of), File: clean(of["file"], maxName), Line: number(of["line"])})
}

// alone adds a failing test without a reason.
func (p *printed) alone(of parts) {
	p.open = nil
	p.failed(of)
	p.open = nil
}

// load adds a file whose tests did not run.
func (p *printed) load(of parts) {
	p.failing(Test{Name: p.named(parts{"name": of["file"]}), File: clean(of["file"], maxName), Load: true})
}

// thrown sets the place of a failure, possibly in called code.
func (p *printed) thrown(of parts) {
	for _, t := range p.open {
		if t.Line == 0 {
			t.File, t.Line, t.Thrown = clean(of["file"], maxName), number(of["line"]), true
		}
	}
	p.says(of)
}

// frame takes a line of the trace of a failure.
func (p *printed) frame(of parts) {
	for _, t := range p.open {
		t.from(clean(of["file"], maxName), number(of["line"]))
	}
	p.says(of)
}

// totals handles the line with the number of failing tests.
func (p *printed) totals(of parts) {
	p.total = true
	for _, count := range counts().FindAllString(of["fails"], 5) {
		p.fails += number(count)
	}
}

var counts = lazyregexp.New(`[0-9]+`)

func (p *printed) stops(parts) { p.stopped = true }

// enter returns the action that begins a section.
func enter(section string) func(*printed, parts) {
	return func(p *printed, _ parts) {
		p.section, p.open, p.title = section, nil, nil
	}
}

func ignore(*printed, parts) {}

func (p *printed) end() *Results {
	if !p.total {
		return nil
	}
	tests := make([]Test, len(p.tests))
	for i, t := range p.tests {
		tests[i] = *t
	}
	if p.nested {
		tests = withoutParents(tests, " > ")
	}
	for _, t := range tests {
		p.told.fail(t)
	}
	p.told.seen = true
	p.told.partial = p.told.partial || p.stopped || p.fails > len(tests)
	return &p.told
}
