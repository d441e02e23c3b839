package testresults

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// tap parses the Test Anything Protocol, versions 12 to 14 (https://testanything.org). It also
// reads places from bats's comments and reasons from mocha's lines.
type tap struct {
	planned bool // a plan or version was printed; otherwise the output is not TAP
	groups  []string
	tests   []Test
	passed  []string
	skipped []string
	count   int    // tests outside of groups
	plan    int    // planned tests outside of groups
	partial bool   // more tests may fail than are listed
	within  bool   // the lines of a YAML block about the last test follow
	failed  bool   // the last test failed
	waits   bool   // the first line of a longer message follows
	begun   bool   // the line before was the version
	tape    bool   // the dialect of tape: comments name tests, and test lines are assertions
	title   string // tape's current test
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

// line reads the next line. What follows a failed test depends on the tool: a YAML block, a comment
// of bats, or mocha's indented message.
func (p *tap) line(text string) {
	body := strings.TrimLeft(text, " ")
	begun := p.begun
	p.begun = strings.HasPrefix(text, "TAP version") || begun && text == ""
	switch {
	case (begun || p.tape) && !p.within && p.titled(text):
	case strings.HasPrefix(body, "ok") || strings.HasPrefix(body, "not ok"):
		if m := tapTest().FindStringSubmatch(text); m != nil {
			p.test(len(m[1])/4, m[2] != "", m[3], m[4])
		}
	case strings.HasPrefix(body, "# Subtest: "):
		if m := tapGroup().FindStringSubmatch(text); m != nil {
			p.enter(len(m[1])/4, m[2])
		}
	case strings.HasPrefix(body, "1..") || strings.HasPrefix(body, "TAP version"):
		p.planning(text)
	case strings.HasPrefix(body, "Bail out!"):
		p.partial = true
	case body == "---":
		p.within = p.failed
	case body == "...":
		p.within, p.failed = false, false
	case p.within:
		p.says(body)
	case p.failed && strings.HasPrefix(text, "# "):
		p.bats(text)
	case p.failed && strings.HasPrefix(text, "  "):
		p.mocha(body)
	}
}

// titled handles tape's comment with a test's name. It returns false for any other line.
func (p *tap) titled(text string) bool {
	m := tapTitle().FindStringSubmatch(text)
	if m == nil || tapGroup().MatchString(text) || tapCount().MatchString(text) {
		return false
	}
	p.tape, p.title, p.failed = true, clean(m[1], maxName), false
	if name, is := strings.CutPrefix(p.title, "SKIP "); is {
		p.skipped = append(p.skipped, name)
	}
	return true
}

// planning handles a plan or version.
func (p *tap) planning(text string) {
	m := tapPlan().FindStringSubmatch(text)
	if m == nil {
		return
	}
	if p.planned = true; m[1] == "" {
		p.plan = min(p.plan+number(m[2]), maxNames)
	}
}

// enter begins a group of tests. The group's own test line follows its tests. A group means that
// the output is node's, so earlier comments were output of tests and no names.
func (p *tap) enter(depth int, name string) {
	p.tape = false
	for len(p.groups) <= min(depth, 20) {
		p.groups = append(p.groups, "")
	}
	p.groups = p.groups[:min(depth, 20)+1]
	p.groups[min(depth, 20)] = clean(name, maxName)
}

// test records a test. about is its description, which may end in a directive: # SKIP or # TODO.
func (p *tap) test(depth int, failed bool, number, about string) {
	p.within, p.failed, p.waits = false, false, false
	if depth == 0 {
		p.count++
	}
	if len(p.tests)+len(p.passed)+len(p.skipped) >= maxTests {
		p.partial = true
		return
	}
	directive := tapSkip().FindStringSubmatch(about)
	if directive != nil {
		about = directive[1]
	}
	name := p.name(depth, number, about)
	if p.tape {
		p.asserts(failed && directive == nil, about)
		return
	}
	switch {
	case directive != nil:
		p.skipped = append(p.skipped, name)
	case failed:
		p.failed = true
		p.tests = append(p.tests, Test{Name: name})
	default:
		p.passed = append(p.passed, name)
	}
}

// asserts handles an assertion of tape's current test.
func (p *tap) asserts(failed bool, about string) {
	switch {
	case !failed:
		p.passed = append(p.passed, p.title)
	case len(p.tests) == 0 || p.last().Name != p.title:
		p.failed = true
		p.tests = append(p.tests, Test{Name: p.title, Message: clean(strings.TrimSpace(about), maxMessage)})
	}
}

// name returns a test's name after the names of its groups.
func (p *tap) name(depth int, number, about string) string {
	about = strings.TrimSpace(tapTime().ReplaceAllString(about, ""))
	if about == "" {
		about = "test " + number
	}
	outer := p.groups[:min(depth, len(p.groups))]
	return clean(strings.Join(append(slices.Clone(outer), strings.ReplaceAll(about, `\#`, "#")), " > "), maxName)
}

func (p *tap) last() *Test { return &p.tests[len(p.tests)-1] }

// says handles a line of the YAML block below a test.
func (p *tap) says(body string) {
	t := p.last()
	if p.waits {
		t.Message, p.waits = clean(body, maxMessage), false
		return
	}
	m := tapSays().FindStringSubmatch(body)
	if m == nil || m[2] == "" {
		return
	}
	switch m[1] {
	case "message", "error":
		if p.waits = strings.Trim(m[2], "|->+") == ""; !p.waits {
			t.says(m[2])
		}
	case "line":
		t.Line = number(m[2])
	case "file":
		t.File = clean(m[2], maxName)
	default:
		at := tapIn().FindStringSubmatch(m[2])
		if at == nil {
			at = tapAt().FindStringSubmatch(m[2])
		}
		if at != nil && t.File == "" {
			t.at(at[1], at[2])
		}
	}
}

// mocha handles a line that mocha prints below a test: the reason, or the stack trace.
func (p *tap) mocha(body string) {
	t := p.last()
	if m := tapMocha().FindStringSubmatch(body); m != nil && t.File == "" {
		t.at(m[1], m[2])
	}
	t.says(body)
}

// bats handles a comment that bats prints below a test.
func (p *tap) bats(text string) {
	t := p.last()
	if tapCount().MatchString(text) {
		p.failed = false
		return
	}
	if m := tapBats().FindStringSubmatch(text); m != nil {
		if t.File == "" {
			t.at(m[1], m[2])
		}
		return
	}
	t.says(text[2:])
}

// end returns the results, or nil if the output was not TAP.
func (p *tap) end() *Results {
	if !p.planned {
		return nil
	}
	results := &Results{seen: true, partial: p.partial || p.count != p.plan}
	for _, t := range withoutParents(p.tests, " > ") {
		results.fail(t)
	}
	for _, name := range p.passed {
		if !p.tape || !results.failing[name] { // all that it asserts has to hold
			results.pass(name) // with tape, a test passes only if none of its assertions failed
		}
	}
	for _, name := range p.skipped {
		results.skip(name)
	}
	return results
}
