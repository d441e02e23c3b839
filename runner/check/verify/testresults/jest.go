package testresults

import (
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// jest parses jest's output (https://jestjs.io/docs/cli): a line per file, and a part with a bullet
// per failing test.
type jest struct {
	told    Results
	file    string // whose results come
	verbose []string
	open    *Test           // whose part it is
	seen    bool            // a line that only jest prints
	files   map[string]bool // since the last end; whether each test of it has a line
}

var (
	jestFile = lazyregexp.New(`^(PASS|FAIL) +(?:\S+ +)??(\S+\.[cm]?[jt]sx?)(?: \([0-9.]+ m?s\))?$`)
	jestTest = lazyregexp.New(`^( +)([✓✕√×○✎]) (?:skipped |todo )?(.+?)(?: \([0-9.]+ m?s\))?$`)
	jestAt   = lazyregexp.New(`^ +at .*?\(?([^ ()]+):([0-9]+):[0-9]+\)?$`)
	jestEnd  = lazyregexp.New(`^Tests: +(?:[0-9]+ [a-z]+, )*[0-9]+ total$`)
)

// line reads the next line of what Jest prints.
func (j *jest) line(text string) {
	switch {
	case strings.HasPrefix(text, "PASS ") || strings.HasPrefix(text, "FAIL "):
		if m := jestFile().FindStringSubmatch(text); m != nil {
			j.beginFile(m[2], m[1] == "PASS")
		}
	case strings.HasPrefix(text, "  ● ") && j.file != "":
		j.bullet(strings.TrimSpace(text[len("  ● "):]))
	case strings.HasPrefix(text, "Tests:"):
		j.close()
		if jestEnd().MatchString(text) {
			j.total(text)
		}
	case strings.HasPrefix(text, "Test Suites:"):
		j.told.partial = j.told.partial || strings.Contains(text, " of ")
	case j.open != nil:
		j.says(text)
	case j.file != "" && strings.HasPrefix(text, "  "):
		j.each(text)
	}
}

// beginFile handles the line that names a test file and whether all its tests passed.
func (j *jest) beginFile(file string, passed bool) {
	j.close()
	j.file, j.verbose = clean(file, maxName), nil
	j.told.unit(File, j.file)
	if passed {
		j.told.pass(j.file)
	}
	if j.files == nil {
		j.files = map[string]bool{}
	}
	if len(j.files) < maxScopes && !j.files[j.file] {
		j.files[j.file] = false
	}
}

// each handles a test's line below its groups.
func (j *jest) each(text string) {
	name := strings.TrimLeft(text, " ")
	depth := min((len(text)-len(name))/2-1, 20)
	m := jestTest().FindStringSubmatch(text)
	if m == nil {
		if depth >= 0 && depth <= len(j.verbose) {
			j.verbose = append(j.verbose[:depth:depth], clean(name, maxName))
		}
		return
	}
	if _, is := j.files[j.file]; is {
		j.files[j.file] = true
	}
	test := func() string {
		return strings.Join(append(append([]string{j.file}, j.verbose[:max(0, min(depth, len(j.verbose)))]...), m[3]), " › ")
	}
	switch m[2] {
	case "✓", "√":
		if len(j.told.passed) < maxNames {
			j.told.pass(test())
		}
	case "○", "✎":
		if len(j.told.skipped) < maxNames {
			j.told.skip(test())
		}
	}
}

// total handles the line with test totals. After skipped tests, a file without test lines may have
// them.
func (j *jest) total(text string) {
	j.seen = true
	if !strings.Contains(text, "skipped") && !strings.Contains(text, "todo") {
		for _, file := range slices.Sorted(maps.Keys(j.files)) {
			if !j.files[file] {
				j.told.addScope(scope{begins: file + " › "})
			}
		}
	}
	j.files = nil
	j.file = ""
}

// notTests are titles of messages that have a bullet like that of a failing test.
var notTests = []string{"Console", "Cannot log after tests are done", "Validation Warning", "Deprecation Warning"}

func (j *jest) bullet(title string) {
	j.close()
	for _, other := range notTests {
		if strings.HasPrefix(title, other) {
			return
		}
	}
	j.open = &Test{Name: j.file + " › " + clean(title, maxName), File: j.file}
	if title == "Test suite failed to run" {
		j.open.Name, j.open.Load = j.file, true
		delete(j.files, j.file)
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
		j.open.Message = clean(text, maxMessage)
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
	j.told.seen, j.told.partial = true, j.told.partial || len(j.files) > 0
	return &j.told
}
