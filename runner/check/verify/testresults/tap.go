package testresults

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// tap parses the Test Anything Protocol, versions 12 to 14 (https://testanything.org). It also
// reads places from bats's comments and reasons from mocha's lines.
type tap struct {
	isTAP         bool // a plan or version was printed
	groups        []string
	failed        []Test
	passed        []string
	skipped       []string
	count         int    // tests outside of groups
	plan          int    // planned tests outside of groups
	partial       bool   // more tests may fail than are listed
	inBlock       bool   // the lines of a YAML block about the last test follow
	lastFailed    bool   // the last test failed
	awaitsMessage bool   // the first line of a longer message follows
	afterVersion  bool   // the line before was the version
	isTape        bool   // the dialect of tape: comments name tests, and test lines are assertions
	tapeTest      string // tape's current test
}

var (
	tapPlan  = lazyregexp.New(`^( *)(?:TAP version [0-9]+|1\.\.([0-9]+)(?: *#.*)?)$`)
	tapTest  = lazyregexp.New(`^( *)(not )?ok\b *([0-9]*) *(?:- )?(.*)$`)
	tapGroup = lazyregexp.New(`^( *)# Subtest: (.+)$`)
	tapSkip  = lazyregexp.New(`(?i)^((?:.*?[^\\])??)# *(?:skip|todo)`)
	tapSays  = lazyregexp.New(`^ *(message|error|at|file|line|location): *['"]?(.*?)['"]?$`)
	tapAt    = lazyregexp.New(`^(?:file://)?(.+?):([0-9]+)(?::[0-9]+)?$`)
	tapIn    = lazyregexp.New(`^.+ \((?:file://)?([^()]+):([0-9]+):[0-9]+\)$`)
	tapTitle = lazyregexp.New(`^# (.+)$`)
	tapBats  = lazyregexp.New(`^# \((?:in test file|from function .* in (?:test )?file) ([^,]+), line ([0-9]+)\)?,?$`)
	tapCount = lazyregexp.New(`^# (?:tests|suites|pass|fail|cancelled|skipped|skip|todo|ok|duration_ms|time)\b[ =:]*[0-9.]*(?: *ms)?$`)
	tapMocha = lazyregexp.New(`^at (?:async )?Context\.<anonymous> \((?:file://)?([^()]+):([0-9]+):[0-9]+\)$`)
	tapTime  = lazyregexp.New(` +# +(?:time=|in )[0-9.]+ *(?:ms|s|sec)?$`)
)

// tapIndent is the indentation of the tests in a group.
const tapIndent = 4

// line reads the next line. What follows a failed test depends on the tool: a YAML block, a comment
// of bats, or mocha's indented message.
func (p *tap) line(text string) {
	body := strings.TrimLeft(text, " ")
	afterVersion := p.afterVersion
	p.afterVersion = strings.HasPrefix(text, "TAP version") || afterVersion && text == ""
	switch {
	case (afterVersion || p.isTape) && !p.inBlock && p.tapeComment(text): // a test begins
	case strings.HasPrefix(body, "ok") || strings.HasPrefix(body, "not ok"):
		if m := tapTest().FindStringSubmatch(text); m != nil {
			p.recordTest(len(m[1])/tapIndent, m[2] != "", m[3], m[4])
		}
	case strings.HasPrefix(body, "# Subtest: "):
		if m := tapGroup().FindStringSubmatch(text); m != nil {
			p.enterGroup(len(m[1])/tapIndent, m[2])
		}
	case strings.HasPrefix(body, "1..") || strings.HasPrefix(body, "TAP version"):
		p.readPlan(text)
	case strings.HasPrefix(body, "Bail out!"):
		p.partial = true
	case body == "---":
		p.inBlock = p.lastFailed
	case body == "...":
		p.inBlock, p.lastFailed = false, false
	case p.inBlock:
		p.blockLine(body)
	case p.lastFailed && strings.HasPrefix(text, "# "):
		p.batsComment(text)
	case p.lastFailed && strings.HasPrefix(text, "  "):
		p.mochaLine(body)
	}
}

// tapeComment begins a test at tape's comment with its name. It returns false for any other line.
func (p *tap) tapeComment(text string) bool {
	m := tapTitle().FindStringSubmatch(text)
	if m == nil || tapGroup().MatchString(text) || tapCount().MatchString(text) {
		return false
	}
	p.isTape, p.tapeTest, p.lastFailed = true, cleanLine(m[1]), false
	if name, found := strings.CutPrefix(p.tapeTest, "SKIP "); found {
		p.skipped = append(p.skipped, name)
	}
	return true
}

// readPlan marks the output as TAP at a plan or version, and adds up the outermost plans.
func (p *tap) readPlan(text string) {
	m := tapPlan().FindStringSubmatch(text)
	if m == nil {
		return
	}
	p.isTAP = true
	if isOutermost := m[1] == ""; isOutermost {
		p.plan = min(p.plan+parseNumber(m[2]), maxNames)
	}
}

// enterGroup begins a group of tests, which is in depth other groups. The group's own test line follows its
// tests. Node prints groups and tape does not, so earlier comments were no names of tape's tests.
func (p *tap) enterGroup(depth int, name string) {
	p.isTape = false
	const deepest = 20
	depth = min(depth, deepest)
	for len(p.groups) <= depth {
		p.groups = append(p.groups, "")
	}
	p.groups = p.groups[:depth+1]
	p.groups[depth] = cleanLine(name)
}

// recordTest records a test. Its description may end in a directive: # SKIP or # TODO.
func (p *tap) recordTest(depth int, failed bool, number, description string) {
	p.inBlock, p.lastFailed, p.awaitsMessage = false, false, false
	if depth == 0 {
		p.count++
	}
	if len(p.failed)+len(p.passed)+len(p.skipped) >= maxTests {
		p.partial = true
		return
	}
	directive := tapSkip().FindStringSubmatch(description)
	if directive != nil {
		description = directive[1]
	}
	name := p.fullName(depth, number, description)
	if p.isTape {
		p.tapeAssertion(failed && directive == nil, description)
		return
	}
	switch {
	case directive != nil:
		p.skipped = append(p.skipped, name)
	case failed:
		p.lastFailed = true
		p.failed = append(p.failed, Test{Name: name})
	default:
		p.passed = append(p.passed, name)
	}
}

// tapeAssertion records tape's current test as passed, or as failed at its first failed assertion.
func (p *tap) tapeAssertion(failed bool, description string) {
	switch {
	case !failed:
		p.passed = append(p.passed, p.tapeTest)
	case len(p.failed) == 0 || p.lastFailure().Name != p.tapeTest:
		p.lastFailed = true
		p.failed = append(p.failed, Test{Name: p.tapeTest, Message: cleanLine(strings.TrimSpace(description))})
	}
}

// fullName returns a test's name after the names of its groups.
func (p *tap) fullName(depth int, number, description string) string {
	description = strings.TrimSpace(tapTime().ReplaceAllString(description, ""))
	if description == "" {
		description = "test " + number
	}
	outer := p.groups[:min(depth, len(p.groups))]
	return cleanLine(strings.Join(append(slices.Clone(outer), strings.ReplaceAll(description, `\#`, "#")), " > "))
}

// lastFailure returns the last failed test.
func (p *tap) lastFailure() *Test { return &p.failed[len(p.failed)-1] }

// blockLine sets message and place of the last failure from a line of the YAML block below it, such as
// "message: 'got 1'" or "at: fn (a.js:3:9)". The message of a line such as "error: |-" is the next line.
func (p *tap) blockLine(body string) {
	t := p.lastFailure()
	if p.awaitsMessage {
		t.Message, p.awaitsMessage = cleanLine(body), false
		return
	}
	m := tapSays().FindStringSubmatch(body)
	if m == nil || m[2] == "" {
		return
	}
	switch m[1] {
	case "message", "error":
		p.awaitsMessage = strings.Trim(m[2], "|->+") == ""
		if !p.awaitsMessage {
			t.setMessage(m[2])
		}
	case "line":
		t.Line = parseNumber(m[2])
	case "file":
		t.File = cleanLine(m[2])
	default:
		at := tapIn().FindStringSubmatch(m[2])
		if at == nil {
			at = tapAt().FindStringSubmatch(m[2])
		}
		if at != nil && t.File == "" {
			t.setPlace(at[1], at[2])
		}
	}
}

// mochaLine sets message and place of the last failure from a line that mocha prints below it. The first such
// line is the message. The first line such as "at Context.<anonymous> (test/a.js:3:9)" has the place.
func (p *tap) mochaLine(body string) {
	t := p.lastFailure()
	if m := tapMocha().FindStringSubmatch(body); m != nil && t.File == "" {
		t.setPlace(m[1], m[2])
	}
	t.setMessage(body)
}

// batsComment sets message and place of the last failure from a comment that bats prints below it. A comment
// such as "# (in test file a.bats, line 3)" has the place, and the first other comment is the message. A comment
// with totals ends the failure.
func (p *tap) batsComment(text string) {
	t := p.lastFailure()
	if tapCount().MatchString(text) {
		p.lastFailed = false
		return
	}
	if m := tapBats().FindStringSubmatch(text); m != nil {
		if t.File == "" {
			t.setPlace(m[1], m[2])
		}
		return
	}
	t.setMessage(text[2:])
}

// end returns the results, or nil if the output was not TAP.
func (p *tap) end() *Results {
	if !p.isTAP {
		return nil
	}
	results := &Results{seen: true, partial: p.partial || p.count != p.plan}
	for _, t := range withoutParents(p.failed, " > ") {
		results.addFailure(t)
	}
	for _, name := range p.passed {
		hasFailedAssertion := p.isTape && results.failing[name]
		if !hasFailedAssertion {
			results.addPassed(name)
		}
	}
	for _, name := range p.skipped {
		results.addSkipped(name)
	}
	return results
}
