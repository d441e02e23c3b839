package testresults

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// layout describes the default output of a tool.
type layout struct {
	tool    string // the name of the tool
	rules   []rule // the first rule that matches a line applies
	section string // the section at the beginning of the output
	joined  string // the text between a suite and a test's name
	groups  string // the text between a group and its tests; " > " if empty
	indent  int    // the indentation of outermost tests, if indentation shows groups
	nested  bool   // a group is reported as failed, too, under its own name
}

// rule gives a meaning to matching lines. The named groups of fits are the parts of the line.
type rule struct {
	in   string // the section where the rule applies; empty for all
	has  string // a text in each such line, for a faster search
	fits func() *regexp.Regexp
	does func(*printed, parts)
}

// parts maps the names of a rule's groups to their text in a line.
type parts map[string]string

// printed parses the output of one tool by its layout. The result counts only if the line with the
// totals appears, which other programs do not print.
type printed struct {
	layout
	told     Results
	section  string
	around   []string // the groups around the next test, by indentation
	suite    string   // the suite whose tests are printed
	tests    []*Test  // failing tests
	open     []*Test  // the failing tests that the next lines are about
	holds    bool     // the next lines do not say why they fail
	place    Test     // the place of the test whose name follows
	title    []string // the first lines of a name with several lines
	noLoad   string   // why the file whose name follows did not load
	unloaded *Test    // that file
	count    int      // failing tests by the totals
	total    bool     // the totals were printed
	stopped  bool     // other tests did not run
	// files has the files since the last totals. The value is true if each of their tests has a
	// line.
	files map[string]bool
}

// printedBy returns a parser for each tool.
func printedBy(tools []layout) (all []format) {
	for _, tool := range tools {
		tool.groups = cmp.Or(tool.groups, " > ")
		all = append(all, &printed{layout: tool, section: tool.section})
	}
	return all
}

// line applies the first matching rule to a line. A line without a rule may be the reason of a
// failure.
func (p *printed) line(text string) {
	for _, r := range p.rules {
		if r.in != "" && r.in != p.section || !strings.Contains(text, r.has) {
			continue
		}
		m := r.fits().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		groups := parts{}
		for i, name := range r.fits().SubexpNames() {
			if name != "" {
				groups[name] = m[i]
			}
		}
		r.does(p, groups)
		return
	}
	text = strings.TrimSpace(text)
	if text == "" {
		p.holds = false
	} else if !p.holds {
		p.says(parts{"says": text})
	}
}

// says keeps the first line with the reason for the failure of the open tests.
func (p *printed) says(groups parts) {
	for _, t := range p.open {
		t.says(groups["says"])
	}
}

// named returns a test's full name, with its suite and groups.
func (p *printed) named(groups parts) string {
	name := groups["name"]
	if in, is := groups["in"]; is {
		depth := max(0, min((len(in)-p.indent)/2, len(p.around)))
		name = strings.Join(append(slices.Clone(p.around[:depth]), name), p.groups)
	}
	if suite := cmp.Or(groups["suite"], p.suite); suite != "" {
		name = suite + p.joined + name
	}
	return clean(name, maxName)
}

// group enters a group of tests.
func (p *printed) group(groups parts) {
	depth := max(0, (len(groups["in"])-p.indent)/2)
	if depth < 20 && depth <= len(p.around) {
		p.around = append(p.around[:depth:depth], clean(groups["name"], maxName))
	}
}

func (p *printed) passes(of parts) {
	p.ran(of)
	p.told.pass(p.named(of))
}

func (p *printed) skips(of parts) {
	p.ran(of)
	p.told.skip(p.named(of))
}

// ran records the file of a test that did not fail. If the tool numbers its tests, it also records
// whether this is the last one.
func (p *printed) ran(groups parts) {
	p.open = nil
	if groups["file"] != "" {
		p.told.unit(File, groups["file"])
	}
	if groups["at"] != "" { // a complete run prints the last test
		p.stopped = groups["at"] != groups["of"]
	}
}

// failing opens a failing test. Consecutive tests without a reason in between share the next one.
func (p *printed) failing(t Test) {
	if len(p.tests) >= maxNames {
		p.stopped = true
		return
	}
	if len(p.open) > 0 && p.open[0].Message != "" {
		p.open = nil
	}
	p.tests = append(p.tests, &t)
	p.open, p.holds = append(p.open, &t), false
}

func (p *printed) failed(groups parts) {
	t := Test{Name: p.named(groups)}
	t.at(groups["file"], groups["line"])
	p.failing(t)
}

// fails adds a failing test. The reason of earlier tests ends here.
func (p *printed) fails(of parts) {
	p.open = nil
	p.failed(of)
}

// alone adds a failing test whose reason, if any, is in the same line.
func (p *printed) alone(groups parts) {
	p.fails(groups)
	p.says(groups)
	p.open = nil
}

// load adds a file that did not load.
func (p *printed) load(groups parts) {
	file := clean(cmp.Or(groups["path"], groups["file"]), maxName)
	p.failing(Test{Name: file, File: file, Load: true})
}

// thrown sets the place where the open tests failed. It may be in code that they call.
func (p *printed) thrown(groups parts) {
	for _, t := range p.open {
		if t.Line == 0 {
			t.at(groups["file"], groups["line"])
			t.Thrown = true
		}
	}
	p.says(groups)
}

// frame handles a line of a failure's stack trace.
func (p *printed) frame(groups parts) {
	for _, t := range p.open {
		t.from(clean(groups["file"], maxName), number(groups["line"]))
	}
	p.says(groups)
}

// totals handles a line with the number of failing tests.
func (p *printed) totals(groups parts) {
	p.total = true
	p.count += sum(groups["fails"])
}

var counts = lazyregexp.New(`[0-9]+`)

// sum adds up the first five numbers in a text.
func sum(text string) (all int) {
	for _, count := range counts().FindAllString(text, 5) {
		all += number(count)
	}
	return all
}

func (p *printed) stops(parts) { p.stopped = true }

// enter returns an action that begins a section.
func enter(section string) func(*printed, parts) {
	return func(p *printed, _ parts) {
		p.section, p.open, p.title = section, nil, nil
	}
}

func ignore(*printed, parts) {}

// end returns the results, or nil if no totals were printed.
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
	p.told.partial = p.told.partial || p.stopped || p.count > len(tests) || len(p.files) > 0
	return &p.told
}
