package testresults

import (
	"fmt"
	"strings"
)

// tap is the Test Anything Protocol, versions 12 to 14 (https://testanything.org), with
// the comments in which bats says where.
type tap struct {
	planned bool // else it only looks like TAP
	groups  []string
	tests   []Test
	passed  []string
	within  bool // the lines that say more of the last test
	failed  bool // it does
	waits   bool // for the first line of a message of several
}

var (
	tapPlan  = lazily(`^ *(?:TAP version [0-9]+|1\.\.[0-9]+(?: *#.*)?)$`)
	tapTest  = lazily(`^( *)(not )?ok\b *([0-9]*) *(?:- )?(.*)$`)
	tapGroup = lazily(`^( *)# Subtest: (.+)$`)
	tapSkip  = lazily(`(?i)(?:^|[^\\])# *(?:skip|todo)`)
	tapSays  = lazily(`^ *(message|error|at|file|line|location): *['"]?(.*?)['"]?$`)
	tapAt    = lazily(`^(?:file://)?(.+?):([0-9]+)(?::[0-9]+)?$`)
	tapBats  = lazily(`^# \((?:in test file|from function .* in (?:test )?file) ([^,]+), line ([0-9]+)\)?,?$`)
	tapTime  = lazily(` +# +(?:time=|in )[0-9.]+ *(?:ms|s|sec)?$`)
)

func (p *tap) line(text string) {
	body := strings.TrimLeft(text, " ")
	switch {
	case strings.HasPrefix(body, "ok") || strings.HasPrefix(body, "not ok"):
		if m := tapTest().FindStringSubmatch(text); m != nil {
			p.test(len(m[1])/4, m[2] != "", m[3], m[4])
		}
	case strings.HasPrefix(body, "# Subtest: "):
		if m := tapGroup().FindStringSubmatch(text); m != nil {
			p.enter(len(m[1])/4, m[2])
		}
	case strings.HasPrefix(body, "1..") || strings.HasPrefix(body, "TAP version"):
		p.planned = p.planned || tapPlan().MatchString(text)
	case body == "---":
		p.within = p.failed
	case body == "...":
		p.within, p.failed = false, false
	case p.within:
		p.says(body)
	case p.failed && strings.HasPrefix(text, "# "):
		p.bats(text)
	}
}

// enter begins a group of tests, whose own line comes after them.
func (p *tap) enter(depth int, name string) {
	for len(p.groups) <= min(depth, 20) {
		p.groups = append(p.groups, "")
	}
	p.groups = p.groups[:min(depth, 20)+1]
	p.groups[min(depth, 20)] = name
}

func (p *tap) test(depth int, failed bool, number, about string) {
	p.within, p.failed, p.waits = false, false, false
	skipped := tapSkip().MatchString(about)
	about = strings.TrimSpace(tapTime().ReplaceAllString(about, ""))
	if about == "" {
		about = fmt.Sprintf("test %s", number)
	}
	outer := p.groups[:min(depth, len(p.groups))]
	name := strings.Join(append(append([]string{}, outer...), strings.ReplaceAll(about, `\#`, "#")), " > ")
	switch {
	case len(p.tests)+len(p.passed) >= maxTests:
	case failed && !skipped:
		p.failed = true
		p.tests = append(p.tests, Test{Name: name})
	case !skipped:
		p.passed = append(p.passed, name)
	}
}

func (p *tap) last() *Test { return &p.tests[len(p.tests)-1] }

// says takes a line of the YAML below a test.
func (p *tap) says(body string) {
	t := p.last()
	if p.waits {
		t.Message, p.waits = body, false
		return
	}
	m := tapSays().FindStringSubmatch(body)
	if m == nil || m[2] == "" {
		return
	}
	switch m[1] {
	case "message", "error":
		if p.waits = strings.Trim(m[2], "|->+") == ""; t.Message == "" && !p.waits {
			t.Message = m[2]
		}
	case "line":
		t.Line = number(m[2])
	case "file":
		t.File = m[2]
	default:
		if at := tapAt().FindStringSubmatch(m[2]); at != nil && t.File == "" {
			t.File, t.Line = at[1], number(at[2])
		}
	}
}

func (p *tap) bats(text string) {
	t := p.last()
	if m := tapBats().FindStringSubmatch(text); m != nil {
		if t.File == "" {
			t.File, t.Line = m[1], number(m[2])
		}
		return
	}
	if t.Message == "" {
		t.Message = strings.TrimSpace(text[2:])
	}
}

func (p *tap) end() *Results {
	if !p.planned {
		return nil
	}
	told := &Results{}
	for _, t := range withoutParents(p.tests, " > ") {
		told.fail(t)
	}
	for _, name := range p.passed {
		told.pass(name)
	}
	return told
}
