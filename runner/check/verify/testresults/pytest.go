package testresults

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// pytest parses pytest's output (https://docs.pytest.org/en/stable/how-to/output.html): the short
// summary of failures, and with -v a line for each test.
type pytest struct {
	results   Results
	section   string
	block     string          // the test whose failure is printed
	places    map[pyPlace]int // the first line of each block in each file
	began     bool            // a section began and its total is missing
	partial   bool            // more tests may fail than the summary lists
	summaries []Test
	file      string          // the file whose tests are printed
	files     map[string]bool // true if the output counts its tests without names, and none was skipped
}

type pyPlace struct{ block, file string }

var (
	pySection = lazyregexp.New(`^=+ (.+?) =+$`)
	pyBlock   = lazyregexp.New(`^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.+?) _{3,}$`)
	pyFound   = lazyregexp.New(`^(\S+\.py):([0-9]+): `)
	pyShort   = lazyregexp.New(`^(FAILED|ERROR) (\S.*?)(?: - (.*))?$`)
	pyEach    = lazyregexp.New(`^(\S+\.py::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: +\(.*\))?(?: +\[ *[0-9]+%\])?$`)
	pyDots    = lazyregexp.New(`^(?:(\S+\.py) )?([.FEsxXR]+)(?: *\[ *[0-9]+%\])?$`)
	pyTotal   = lazyregexp.New(`^(?:=+ )?(?:[0-9]+ [a-z]+, )*(?:[0-9]+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|rerun|warnings?)|no tests ran)(?:, [0-9]+ [a-z]+)* in [0-9.]+s`)
	pyFails   = lazyregexp.New(`([0-9]+) (?:failed|errors?)\b`)
)

// line reads the next line. Its first character and the current section decide its meaning.
func (p *pytest) line(text string) {
	if text == "" {
		return
	}
	isQuietTotal := strings.HasPrefix(text, "no tests ran in ") || text[0] >= '0' && text[0] <= '9' // with -q, totals have no "="
	switch {
	case text[0] == '=' || isQuietTotal:
		p.headingOrTotal(text)
	case text[0] == '!': // "!!!!! Interrupted: 1 error during collection !!!!!"
		p.partial = p.partial || strings.Contains(text, "Interrupted") || strings.Contains(text, "stopping after")
	case text[0] == '_' && (p.section == "FAILURES" || p.section == "ERRORS"): // "_____ TestA.test_b _____"
		if m := pyBlock().FindStringSubmatch(text); m != nil {
			p.block = cleanLine(m[1])
		}
	case p.section == "short test summary info":
		p.summary(text)
	case p.block != "":
		p.findPlace(text)
	case strings.Contains(text, ".py::"):
		p.verboseLine(text)
	case p.section == "test session starts":
		p.progressLine(text)
	}
}

// headingOrTotal begins a section at its title, or ends the run at the line with the totals.
func (p *pytest) headingOrTotal(text string) {
	if pyTotal().MatchString(text) {
		p.endRun(text)
		return
	}
	if m := pySection().FindStringSubmatch(text); m != nil {
		p.section, p.block, p.began = cleanLine(m[1]), "", true
	}
}

// verboseLine records the test of a line that -v prints.
func (p *pytest) verboseLine(text string) {
	m := pyEach().FindStringSubmatch(text)
	if m == nil {
		return
	}
	file, _, _ := strings.Cut(m[1], "::")
	p.results.addPassed(file) // a file with results was loaded
	p.results.addUnit(File, file)
	p.markFile(cleanLine(file), false)
	switch m[2] {
	case "PASSED", "XPASS":
		p.results.addPassed(m[1])
	case "SKIPPED", "XFAIL":
		p.results.addSkipped(m[1])
	}
}

// progressLine records the file of a line with a letter for each test, such as "tests/test_a.py ..F [ 50%]". A
// line without a file continues the line before.
func (p *pytest) progressLine(text string) {
	m := pyDots().FindStringSubmatch(text)
	if m == nil {
		return
	}
	if m[1] != "" {
		p.file = cleanLine(m[1])
		p.results.addPassed(p.file)
		p.results.addUnit(File, p.file)
	}
	hasSkipped := strings.ContainsAny(m[2], "sxX") // skipped, xfailed, xpassed
	p.markFile(p.file, !hasSkipped)
}

// markFile stores in p.files whether the output only counts the tests of a file, and none was skipped.
// isCountedOnly says so for one line. One line with false decides for the file.
func (p *pytest) markFile(file string, isCountedOnly bool) {
	if p.files == nil {
		p.files = map[string]bool{}
	}
	was, known := p.files[file]
	if file != "" && (known || len(p.files) < maxScopes) {
		p.files[file] = isCountedOnly && (was || !known)
	}
}

// endRun ends the results of one run of pytest. text is its last line, with the totals.
func (p *pytest) endRun(text string) {
	fails := 0
	for _, m := range pyFails().FindAllStringSubmatch(text, 2) { // "1 failed", and "2 errors"
		fails += parseNumber(m[1])
	}
	p.results.seen = true
	p.results.partial = p.results.partial || p.partial || fails > len(p.summaries)
	if !p.partial && !strings.Contains(text, " deselected") {
		for _, file := range slices.Sorted(maps.Keys(p.files)) {
			if p.files[file] {
				p.results.addScope(scope{prefix: file + "::"})
			}
		}
	}
	p.addSummaries()
	*p = pytest{results: p.results}
}

// summary adds the failing test of a line of the short summary.
func (p *pytest) summary(text string) {
	m := pyShort().FindStringSubmatch(text)
	if m == nil || !strings.Contains(m[2], ".py") || len(p.summaries) >= maxTests {
		return
	}
	t := Test{Name: cleanLine(m[2]), Message: cleanLine(m[3])}
	t.File, _, _ = strings.Cut(t.Name, "::")
	t.LoadError = m[1] == "ERROR" && t.File == t.Name
	p.summaries = append(p.summaries, t)
}

// findPlace records the place in a line such as "tests/test_a.py:3: AssertionError", in the block of a failure. The
// first place in each file counts.
func (p *pytest) findPlace(text string) {
	m := pyFound().FindStringSubmatch(text + " ") // some lines end after the second colon
	if m == nil || len(p.places) >= maxNames {
		return
	}
	if p.places == nil {
		p.places = map[pyPlace]int{}
	}
	at := pyPlace{p.block, cleanLine(m[1])}
	p.places[at] = cmp.Or(p.places[at], parseNumber(m[2]))
}

// addSummaries adds the tests of the summary to the results, each with the first place in its file.
func (p *pytest) addSummaries() {
	for _, t := range p.summaries {
		_, block, _ := strings.Cut(t.Name, "::")
		block = strings.ReplaceAll(block, "::", ".")
		if t.LoadError {
			block = t.Name
		}
		t.Line = p.places[pyPlace{block, t.File}]
		p.results.addFailure(t)
	}
	p.summaries = nil
}

// end returns the results. If the last run of pytest did not end, more tests may fail than are listed.
func (p *pytest) end() *Results {
	p.results.partial = p.results.partial || p.began && len(p.summaries) > 0
	p.addSummaries()
	return &p.results
}
