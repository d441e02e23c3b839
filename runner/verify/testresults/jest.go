package testresults

import (
	"slices"
	"strings"
)

// jest is what jest prints (https://jestjs.io/docs/cli): a line for each file, and for
// each test that fails a part that begins with a bullet.
type jest struct {
	told    Results
	file    string // whose results come
	verbose []string
	open    *Test // whose part it is
	seen    bool  // a line that only jest prints
	files   []scope
}

var (
	jestFile = lazily(`^(PASS|FAIL) +(?:\S+ +)??(\S+\.[cm]?[jt]sx?)(?: \([0-9.]+ m?s\))?$`)
	jestTest = lazily(`^( +)([✓✕√×]) (.+?)(?: \([0-9.]+ m?s\))?$`)
	jestAt   = lazily(`^ +at .*?\(?([^ ()]+):([0-9]+):[0-9]+\)?$`)
	jestEnd  = lazily(`^Tests: +(?:[0-9]+ [a-z]+, )*[0-9]+ total$`)
)

func (j *jest) line(text string) {
	switch {
	case strings.HasPrefix(text, "PASS ") || strings.HasPrefix(text, "FAIL "):
		if m := jestFile().FindStringSubmatch(text); m != nil {
			j.begin(m[2], m[1] == "PASS")
		}
	case strings.HasPrefix(text, "  ● ") && j.file != "":
		j.bullet(strings.TrimSpace(text[len("  ● "):]))
	case strings.HasPrefix(text, "Tests:"):
		j.seen = j.seen || jestEnd().MatchString(text)
		j.close()
	case j.open != nil:
		j.says(text)
	case j.file != "" && strings.HasPrefix(text, "  "):
		j.each(text)
	}
}

func (j *jest) begin(file string, passed bool) {
	j.close()
	j.file, j.verbose = file, nil
	if passed {
		j.told.pass(file)
	}
	if len(j.files) < maxTests {
		j.files = append(j.files, scope{begins: file + " › "})
	}
}

// each takes the line of a test of a file, below those of its groups.
func (j *jest) each(text string) {
	name := strings.TrimLeft(text, " ")
	depth := min((len(text)-len(name))/2-1, 20)
	if m := jestTest().FindStringSubmatch(text); m != nil {
		if m[2] == "✓" || m[2] == "√" {
			groups := append([]string{j.file}, j.verbose[:min(depth, len(j.verbose))]...)
			j.told.pass(strings.Join(append(groups, m[3]), " › "))
		}
		return
	}
	if depth >= 0 && depth <= len(j.verbose) {
		j.verbose = append(j.verbose[:depth:depth], name)
	}
}

// notTests are the bullets of other messages.
var notTests = []string{"Console", "Cannot log after tests are done", "Validation Warning", "Deprecation Warning"}

func (j *jest) bullet(title string) {
	j.close()
	for _, other := range notTests {
		if strings.HasPrefix(title, other) {
			return
		}
	}
	j.open = &Test{Name: j.file + " › " + title, File: j.file}
	if title == "Test suite failed to run" {
		j.open.Name, j.open.Load = j.file, true
		j.files = slices.DeleteFunc(j.files, func(s scope) bool { return s.begins == j.file+" › " })
	}
}

func (j *jest) says(text string) {
	if m := jestAt().FindStringSubmatch(text); m != nil {
		if j.open.Line == 0 && strings.HasSuffix(m[1], j.file) {
			j.open.Line = number(m[2])
		}
		return
	}
	if j.open.Message == "" {
		j.open.Message = strings.TrimSpace(text)
	}
}

func (j *jest) close() {
	if j.open != nil {
		j.told.fail(*j.open)
	}
	j.open = nil
}

func (j *jest) end() *Results {
	j.close()
	if !j.seen {
		return nil
	}
	for _, s := range j.files {
		j.told.whole(s)
	}
	return &j.told
}
