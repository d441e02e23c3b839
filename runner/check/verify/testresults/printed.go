package testresults

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// layout describes a tool's default output.
type layout struct {
	tool    string // whose output it is
	rules   []rule // the first that fits a line counts
	section string // in which the output begins
	joined  string // stands between a suite and a test's name
	groups  string // stands between a group and its tests; " > " if empty
	indent  int    // of the outermost tests, where indentation shows groups
	nested  bool   // groups fail too, under their own names
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
	around   []string // the groups of the tests, as indentation shows them
	suite    string   // whose tests run
	tests    []*Test  // that fail
	open     []*Test  // of which the next lines tell
	holds    bool     // the next lines do not say why
	place    Test     // of the test whose name comes
	title    []string // the beginning of a name of several lines
	noLoad   string   // why a file did not load, whose name comes
	unloaded *Test    // such a file
	count    int      // of failing tests, by the totals
	total    bool     // they were told
	stopped  bool     // other tests did not run
	// files has the files since the last totals, by whether each of their tests has a line.
	files map[string]bool
}

func printedBy(tools []layout) (all []format) {
	for _, of := range tools {
		of.groups = cmp.Or(of.groups, " > ")
		all = append(all, &printed{layout: of, section: of.section})
	}
	return all
}

// line acts on a line by the first rule that fits. Other lines may say why a test fails.
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
		t.says(of["says"])
	}
}

// named returns a test's name with its suite and groups.
func (p *printed) named(of parts) string {
	name := of["name"]
	if in, is := of["in"]; is {
		depth := max(0, min((len(in)-p.indent)/2, len(p.around)))
		name = strings.Join(append(slices.Clone(p.around[:depth]), name), p.groups)
	}
	if suite := cmp.Or(of["suite"], p.suite); suite != "" {
		name = suite + p.joined + name
	}
	return clean(name, maxName)
}

func (p *printed) group(of parts) {
	depth := max(0, (len(of["in"])-p.indent)/2)
	if depth < 20 && depth <= len(p.around) {
		p.around = append(p.around[:depth:depth], clean(of["name"], maxName))
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

// ran notes the file of a test that did not fail, and the test's position among all.
func (p *printed) ran(of parts) {
	p.open = nil
	if of["file"] != "" {
		p.told.unit(File, of["file"])
	}
	if of["at"] != "" { // a run that is not stopped prints the last test too
		p.stopped = of["at"] != of["of"]
	}
}

// failing opens a failing test. Tests with the same reason follow each other.
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

func (p *printed) failed(of parts) {
	t := Test{Name: p.named(of)}
	t.at(of["file"], of["line"])
	p.failing(t)
}

// fails adds a failing test with a reason of its own.
func (p *printed) fails(of parts) {
	p.open = nil
	p.failed(of)
}

// alone adds a failing test whose reason is in its line, if anywhere.
func (p *printed) alone(of parts) {
	p.fails(of)
	p.says(of)
	p.open = nil
}

// load adds a file whose tests did not run.
func (p *printed) load(of parts) {
	file := clean(cmp.Or(of["path"], of["file"]), maxName)
	p.failing(Test{Name: file, File: file, Load: true})
}

// thrown sets the place of a failure, possibly in called code.
func (p *printed) thrown(of parts) {
	for _, t := range p.open {
		if t.Line == 0 {
			t.at(of["file"], of["line"])
			t.Thrown = true
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
	p.count += sum(of["fails"])
}

var counts = lazyregexp.New(`[0-9]+`)

// sum adds up the first numbers in a text.
func sum(text string) (all int) {
	for _, count := range counts().FindAllString(text, 5) {
		all += number(count)
	}
	return all
}

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
	p.told.partial = p.told.partial || p.stopped || p.count > len(tests) || len(p.files) > 0
	return &p.told
}
