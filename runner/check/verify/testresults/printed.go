package testresults

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// layout describes the default output of a tool.
type layout struct {
	rules          []rule // the first rule that matches a line applies
	section        string // the section at the beginning of the output
	suiteSeparator string // the text between a suite and a test's name
	groupSeparator string // the text between a group and its tests; " > " if empty
	indent         int    // the indentation of outermost tests, if indentation shows groups
	failsGroups    bool   // a group is reported as failed, too, under its own name
}

// rule gives a meaning to matching lines. The named groups of pattern are the parts of the line.
type rule struct {
	section string // the section where the rule applies; empty for all
	pattern string
	action  func(*toolParser, lineParts)

	expression func() *regexp.Regexp // pattern, compiled at its first use
	literal    string                // a text in each matching line, which is found faster
}

// readyPrinters returns the printers with the fields of their rules that follow from the patterns.
var readyPrinters = sync.OnceValue(func() []layout {
	for _, tool := range printers {
		for i, r := range tool.rules {
			parsed, err := syntax.Parse(r.pattern, syntax.Perl)
			if err != nil {
				panic(err)
			}
			tool.rules[i].expression, tool.rules[i].literal = lazyregexp.New(r.pattern), longestLiteral(parsed)
		}
	}
	return printers
})

// longestLiteral returns the longest text that is in each match of an expression without (?i).
func longestLiteral(e *syntax.Regexp) (longest string) {
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCapture, syntax.OpConcat, syntax.OpPlus:
		for _, part := range e.Sub {
			if text := longestLiteral(part); len(text) > len(longest) {
				longest = text
			}
		}
	}
	return longest
}

// lineParts maps the names of a rule's groups to their text in a line.
type lineParts map[string]string

// toolParser parses the output of one tool by its layout. The result counts only if the line with the
// totals appears, which other programs do not print.
type toolParser struct {
	layout
	results      Results
	section      string
	groupPath    []string // the groups around the next test, by indentation
	suite        string   // the suite whose tests are printed
	tests        []*Test  // failing tests
	openFailures []*Test  // the failing tests that the next lines are about
	skipsReason  bool     // the next lines do not say why they fail
	nextPlace    Test     // the place of the test whose name follows
	title        []string // the first lines of a name with several lines
	loadError    string   // why the file whose name follows did not load
	unloaded     *Test    // that file
	totals
	// files has the files since the last totals, with true if each of their tests has a line.
	files map[string]bool
}

// totals are what a tool prints of all its tests.
type totals struct {
	failedTotal int  // failing tests
	hasTotals   bool // numbers were printed
	stopped     bool // other tests did not run
}

// line applies the first matching rule. A line without a rule may be the reason of a failure.
func (p *toolParser) line(text string) {
	for _, r := range p.rules {
		isForSection := r.section == "" || r.section == p.section
		if !isForSection || !strings.Contains(text, r.literal) {
			continue
		}
		m := r.expression().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		groups := lineParts{}
		for i, name := range r.expression().SubexpNames() {
			if name != "" {
				groups[name] = m[i]
			}
		}
		r.action(p, groups)
		return
	}
	text = strings.TrimSpace(text)
	if text == "" {
		p.skipsReason = false
	} else if !p.skipsReason {
		p.keepReason(text)
	}
}

// keepReason keeps the first line with the reason for the open failures.
func (p *toolParser) keepReason(says string) {
	for _, t := range p.openFailures {
		t.setMessage(says)
	}
}

// fullName returns a test's name, with its suite and groups. The group in is the line's indentation: two blanks for
// each group around the test, after the tool's own indentation.
func (p *toolParser) fullName(groups lineParts) string {
	name := groups["name"]
	if in, found := groups["in"]; found {
		depth := max(0, min((len(in)-p.indent)/2, len(p.groupPath)))
		name = strings.Join(append(slices.Clone(p.groupPath[:depth]), name), cmp.Or(p.groupSeparator, " > "))
	}
	if suite := cmp.Or(groups["suite"], p.suite); suite != "" {
		name = suite + p.suiteSeparator + name
	}
	return cleanLine(name)
}

// enterGroup enters a group of tests, at the depth that its indentation shows. It leaves deeper groups.
func enterGroup(p *toolParser, groups lineParts) {
	depth := max(0, (len(groups["in"])-p.indent)/2)
	if depth < 20 && depth <= len(p.groupPath) {
		p.groupPath = append(p.groupPath[:depth:depth], cleanLine(groups["name"]))
	}
}

// recordPass records a passed test.
func recordPass(p *toolParser, groups lineParts) {
	recordFile(p, groups)
	p.results.addPassed(p.fullName(groups))
}

// recordSkip records a skipped test.
func recordSkip(p *toolParser, groups lineParts) {
	recordFile(p, groups)
	p.results.addSkipped(p.fullName(groups))
}

// recordFile records the file of a test that did not fail, and whether other numbered tests are missing.
func recordFile(p *toolParser, groups lineParts) {
	p.openFailures = nil
	if groups["file"] != "" {
		p.results.addUnit(File, groups["file"])
	}
	if groups["at"] != "" { // a complete run prints the last test
		p.stopped = groups["at"] != groups["of"]
	}
}

// openFailure adds a failing test. Consecutive tests without a reason in between share the next reason.
func (p *toolParser) openFailure(t Test) {
	if len(p.tests) >= maxNames {
		p.stopped = true
		return
	}
	if len(p.openFailures) > 0 && p.openFailures[0].Message != "" {
		p.openFailures = nil
	}
	p.tests = append(p.tests, &t)
	p.openFailures, p.skipsReason = append(p.openFailures, &t), false
}

// continueFailures adds a failing test. If it follows other failing tests, they share the reason below.
func continueFailures(p *toolParser, groups lineParts) {
	t := Test{Name: p.fullName(groups)}
	t.setPlace(groups["file"], groups["line"])
	p.openFailure(t)
}

// startFailure adds a failing test. The reason of earlier tests ends here.
func startFailure(p *toolParser, groups lineParts) {
	p.openFailures = nil
	continueFailures(p, groups)
}

// recordFailure adds a failing test whose reason, if any, is in the same line.
func recordFailure(p *toolParser, groups lineParts) {
	startFailure(p, groups)
	p.keepReason(groups["says"])
	p.openFailures = nil
}

// recordLoadError adds a file that did not load.
func recordLoadError(p *toolParser, groups lineParts) {
	file := cleanLine(cmp.Or(groups["path"], groups["file"]))
	p.openFailure(Test{Name: file, File: file, LoadError: true})
}

// setThrowSite sets the place where the open failures happened. It may be in code that they call.
func setThrowSite(p *toolParser, groups lineParts) {
	for _, t := range p.openFailures {
		if t.Line == 0 {
			t.setPlace(groups["file"], groups["line"])
			t.AtThrowSite = true
		}
	}
	p.keepReason(groups["says"])
}

// considerFrame sets the place of the open failures from a line of a stack trace, if that is better.
func considerFrame(p *toolParser, groups lineParts) {
	for _, t := range p.openFailures {
		t.considerPlace(cleanLine(groups["file"]), parseNumber(groups["line"]))
	}
	p.keepReason(groups["says"])
}

// addTotals adds the number of failing tests from a line with totals.
func addTotals(p *toolParser, groups lineParts) {
	p.hasTotals = true
	p.failedTotal += sumNumbers(groups["fails"])
}

var counts = lazyregexp.New(`[0-9]+`)

// sumNumbers adds up the first five numbers in a text.
func sumNumbers(text string) (all int) {
	for _, count := range counts().FindAllString(text, 5) {
		all += parseNumber(count)
	}
	return all
}

// markStopped records that other tests did not run.
func markStopped(p *toolParser, _ lineParts) { p.stopped = true }

// enterSection returns an action that begins a section of the output.
func enterSection(section string) func(*toolParser, lineParts) {
	return func(p *toolParser, _ lineParts) {
		p.section, p.openFailures, p.title = section, nil, nil
	}
}

// ignoreLine is the action for lines without a meaning.
func ignoreLine(*toolParser, lineParts) {}

// end returns the results, or nil if no totals were printed.
func (p *toolParser) end() *Results {
	if !p.hasTotals {
		return nil
	}
	tests := make([]Test, len(p.tests))
	for i, t := range p.tests {
		tests[i] = *t
	}
	if p.failsGroups {
		tests = withoutParents(tests, " > ")
	}
	for _, t := range tests {
		p.results.addFailure(t)
	}
	p.results.seen = true
	p.results.partial = p.results.partial || p.stopped || p.failedTotal > len(tests) || len(p.files) > 0
	return &p.results
}
