package testresults

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxMatchers is how long a file of problem matchers may be, in bytes.
const MaxMatchers = 64 << 10

// Bounds on what one file has.
const (
	mostMatchers = 20
	mostPatterns = 10
	longestRegex = 2000
)

// Matcher finds problems in an output as GitHub's problem matchers do
// (https://github.com/actions/toolkit/blob/main/docs/problem-matchers.md). Its patterns
// are those of RE2.
type Matcher struct {
	owner    string
	severity string
	patterns []pattern
}

type pattern struct {
	regexp                              *regexp.Regexp
	file, line, severity, code, message int
	loop                                bool
}

// ParseMatchers reads a file of problem matchers. A pattern that RE2 does not have, such
// as one that looks ahead, is an error.
func ParseMatchers(raw []byte) ([]Matcher, error) {
	if len(raw) > MaxMatchers {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxMatchers)
	}
	var file struct {
		ProblemMatcher []struct {
			Owner, Severity string
			Pattern         []struct {
				Regexp                              string
				File, Line, Severity, Code, Message int
				Loop                                bool
			}
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	if len(file.ProblemMatcher) == 0 || len(file.ProblemMatcher) > mostMatchers {
		return nil, fmt.Errorf("it has %d problem matchers; from 1 to %d are read", len(file.ProblemMatcher), mostMatchers)
	}
	var all []Matcher
	for _, m := range file.ProblemMatcher {
		matcher := Matcher{owner: m.Owner, severity: m.Severity}
		for _, p := range m.Pattern {
			compiled, err := compile(p.Regexp, max(p.File, p.Line, p.Severity, p.Code, p.Message), min(p.File, p.Line, p.Severity, p.Code, p.Message))
			if err != nil {
				return nil, fmt.Errorf("problem matcher %q: %w", m.Owner, err)
			}
			matcher.patterns = append(matcher.patterns, pattern{compiled, p.File, p.Line, p.Severity, p.Code, p.Message, p.Loop})
		}
		if len(matcher.patterns) == 0 || len(matcher.patterns) > mostPatterns {
			return nil, fmt.Errorf("problem matcher %q has %d patterns; from 1 to %d are read", m.Owner, len(matcher.patterns), mostPatterns)
		}
		all = append(all, matcher)
	}
	return all, nil
}

func compile(source string, last, least int) (*regexp.Regexp, error) {
	if len(source) > longestRegex {
		return nil, fmt.Errorf("a pattern is longer than %d bytes", longestRegex)
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	if least < 0 || last > compiled.NumSubexp() {
		return nil, errors.New("a pattern names a group that it does not have")
	}
	return compiled, nil
}

// Bounds on what is matched.
const (
	longestMatched = 2000     // bytes of a line
	mostMatched    = 64 << 20 // bytes, and lineCost for each line, by all matchers in all
	lineCost       = 200
)

// problems are what matchers find. A problem goes by its file and message, since its
// line moves.
type problems struct {
	matchers []Matcher
	states   []match
	told     Results
	left     int // of mostMatched
}

// match is how far a matcher is in its patterns.
type match struct {
	next  int // pattern
	found problem
}

type problem struct {
	file, severity, code, message string
	line                          int
}

func newProblems(matchers []Matcher) *problems {
	return &problems{matchers: matchers, states: make([]match, len(matchers)), left: mostMatched}
}

func (p *problems) line(text string) {
	text = text[:min(len(text), longestMatched)]
	if p.left -= len(p.matchers) * (len(text) + lineCost); p.left < 0 {
		p.told.partial = true
		return
	}
	for i, m := range p.matchers {
		p.step(m, &p.states[i], text)
	}
}

func (p *problems) step(m Matcher, s *match, text string) {
	at := m.patterns[s.next]
	groups := at.regexp.FindStringSubmatch(text)
	if groups == nil {
		looped := at.loop && s.next == len(m.patterns)-1
		*s = match{}
		if again := m.patterns[0].regexp; looped && again != at.regexp && again.MatchString(text) {
			p.step(m, s, text)
		}
		return
	}
	s.found.take(at, groups)
	if s.next < len(m.patterns)-1 {
		s.next++
		return
	}
	p.report(m, s.found)
	if at.loop && len(m.patterns) > 1 { // what the earlier patterns found stands for the next line too
		return
	}
	*s = match{}
}

func (f *problem) take(by pattern, groups []string) {
	set := func(to *string, group int) {
		if group > 0 {
			*to = groups[group]
		}
	}
	set(&f.file, by.file)
	set(&f.severity, by.severity)
	set(&f.code, by.code)
	set(&f.message, by.message)
	if by.line > 0 {
		f.line = number(groups[by.line])
	}
}

// report tells of a problem that is an error: warnings fail no check.
func (p *problems) report(m Matcher, f problem) {
	severity := f.severity
	if severity == "" {
		severity = m.severity
	}
	if s := strings.ToLower(severity); s != "" && s != "error" {
		return
	}
	p.told.fail(Test{Name: strings.TrimSpace(strings.Join([]string{f.file + ":", f.code, f.message}, " ")), File: f.file, Line: f.line, Message: f.message})
}

// ofFile is how the name of a problem begins.
var ofFile = lazily(`^[^\s:]*[./][^\s:]*: `)

// end takes it that an output with one problem has all of them.
func (p *problems) end() *Results {
	if len(p.told.Failing) > 0 && !p.told.partial {
		p.told.whole(scope{rest: ofFile})
	}
	return &p.told
}
