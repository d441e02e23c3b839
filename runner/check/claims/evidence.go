package claims

import (
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/check/lines"
)

// Evidence is what a run shows of its work.
type Evidence struct {
	Paths []string // of the change
	// Diff reads the change. It is asked only for claims that need it.
	Diff func() (*lines.Diff, error)
	// Texts are the arguments of all calls, what they printed, and the commands and output of checks. It
	// is asked only for claims that need it. Without it, as for a bundle without a transcript, only files
	// and numbers in the change are compared.
	Texts iter.Seq2[Text, error]
}

// Text is a text of a call or check.
type Text struct {
	Asked   string // arguments or commands
	Printed string
}

// Unfounded lists what a summary claims and the run does not show: names of files, commands and tests, and
// numbers of them. It prefers to miss a claim over doubting a true one.
func Unfounded(summary string, e Evidence) (names []string, err error) {
	var open []claim
	var diff *lines.Diff
	cases := sync.OnceValue(func() int { return testCases(diff) })
	for _, c := range read(summary) {
		if slices.ContainsFunc(open, func(o claim) bool { return o.text == c.text }) || e.inPaths(c) {
			continue
		}
		if c.kind == test || c.kind == added || c.kind == passing {
			if diff == nil {
				if diff, err = e.Diff(); err != nil {
					return nil, err
				}
			}
			if inDiff(c, diff, cases) {
				continue
			}
		}
		open = append(open, c)
	}
	if open, err = e.lookedUp(open); err != nil {
		return nil, err
	}
	for _, c := range open[:min(len(open), most)] {
		names = append(names, c.text)
	}
	return names, nil
}

// inPaths reports whether the names of the changed files show a claim.
func (e Evidence) inPaths(c claim) bool {
	switch c.kind {
	case file:
		return slices.ContainsFunc(e.Paths, func(p string) bool { return p == c.text || strings.HasSuffix(p, "/"+c.text) })
	case files:
		return c.count <= len(e.Paths)
	}
	return false
}

// inDiff reports whether the lines of the change show a claim of tests. cases counts those of the change.
func inDiff(c claim, diff *lines.Diff, cases func() int) bool {
	if c.kind != test {
		return diff.Left > 0 || cases() >= c.count
	}
	name := bare(c.text)
	for line := range changedLines(diff) {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

// mayBeTest finds a line that declares a test or may be a case of one.
var mayBeTest = lazyregexp.New(`(?i)\btest|\bit\(|\bspec|t\.Run\(|^\s*[-{(\["'` + "`" + `|]|,$`)

// testCases counts the lines of a change that may be tests or cases of them.
func testCases(diff *lines.Diff) (n int) {
	for line := range changedLines(diff) {
		if mayBeTest().MatchString(line) {
			n++
		}
	}
	return n
}

// changedLines yields the lines that a change adds and removes.
func changedLines(diff *lines.Diff) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, file := range diff.Files {
			for _, side := range [][]lines.Line{file.Added, file.Removed} {
				for _, line := range side {
					if !yield(line.Text) {
						return
					}
				}
			}
		}
	}
}

// lookedUp returns the claims that no call and no check shows. Each claim has another text.
func (e Evidence) lookedUp(open []claim) ([]claim, error) {
	searches := map[string]search{} // those that go on, by the text of the claim
	for _, c := range open {
		if search := c.search(); search != nil {
			searches[c.text] = search
		}
	}
	if e.Texts == nil {
		return slices.DeleteFunc(open, func(c claim) bool { return searches[c.text] != nil }), nil
	}
	if len(searches) == 0 {
		return open, nil
	}
	for text, err := range e.Texts {
		if err != nil {
			return nil, err
		}
		asked := map[string]bool{}
		for _, word := range tokens(text.Asked) {
			asked[word] = true
		}
		open = slices.DeleteFunc(open, func(c claim) bool {
			shows := searches[c.text]
			if shows == nil || !shows(text, asked) {
				return false
			}
			delete(searches, c.text)
			return true
		})
		if len(searches) == 0 {
			break
		}
	}
	return open, nil
}

// search reports whether a text, with the words that it asked, shows a claim.
type search func(t Text, asked map[string]bool) bool

// search looks for a claim in one text after the other; nil for a claim that no text shows.
func (c claim) search() search {
	switch c.kind {
	case command:
		steps := stepsOf(c.text)
		return func(t Text, asked map[string]bool) bool {
			steps = slices.DeleteFunc(steps, func(step []string) bool { return hasAll(asked, step) })
			return len(steps) == 0 || echoes(t.Printed, c.text)
		}
	case test:
		name := bare(c.text)
		return func(t Text, _ map[string]bool) bool {
			return strings.Contains(t.Asked, name) || strings.Contains(t.Printed, name)
		}
	case passing:
		digits := strconv.Itoa(c.count)
		alone := regexp.MustCompile(`(?:^|[^\w.])` + digits + `(?:$|[^\w.]|\.(?:\s|$))`)
		return func(t Text, _ map[string]bool) bool {
			return strings.Contains(t.Printed, digits) && alone.MatchString(t.Printed) || passed(t.Printed) == c.count
		}
	}
	return nil
}

// bare returns a test's own name, without its file, class and parentheses.
func bare(name string) string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return strings.TrimSuffix(name, "()")
}

var separators = lazyregexp.New(`&&|\|\||[;|]`)

// stepsOf splits a command line into the words of its commands. Folders may be given in other ways, so cd
// does not count.
func stepsOf(line string) (steps [][]string) {
	for _, step := range separators().Split(line, -1) {
		if parts := tokens(step); len(parts) > 0 && parts[0] != "cd" {
			steps = append(steps, parts)
		}
	}
	return steps
}

// tokens splits a text into words, as far as commands are compared: without quotes, and programs without
// their folder and version.
func tokens(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;&|()$,{}\\", r) })
	for i, word := range all {
		if _, known := programs[path.Base(word)]; known {
			word = path.Base(word)
		}
		if word == "python3" {
			word = "python"
		}
		all[i] = strings.TrimPrefix(word, "./")
	}
	return all
}

func hasAll(text map[string]bool, parts []string) bool {
	return !slices.ContainsFunc(parts, func(word string) bool { return !text[word] })
}

// echoes reports whether a line of an output begins with a command, as make prints its own.
func echoes(printed, command string) bool {
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(strings.TrimLeft(line, "$>+# \t"), command) {
			return true
		}
	}
	return false
}

var passedLine = lazyregexp.New(`(?m)^\s*(?:--- PASS|=== RUN|ok\b|✓|✔|√)|\.\.\. ok$|\bPASSED\b`)

// passed counts the lines of an output that report a passed test.
func passed(printed string) int { return len(passedLine().FindAllStringIndex(printed, -1)) }
