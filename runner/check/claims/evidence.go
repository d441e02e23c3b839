package claims

import (
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	diff := (*lines.Diff)(nil)
	for _, c := range read(summary) {
		if slices.ContainsFunc(open, func(o claim) bool { return o.text == c.text }) || e.inPaths(c) {
			continue
		}
		if diff == nil && c.kind != command {
			if diff, err = e.Diff(); err != nil {
				return nil, err
			}
		}
		if !inDiff(c, diff) {
			open = append(open, c)
		}
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

// inDiff reports whether the lines of the change show a claim.
func inDiff(c claim, diff *lines.Diff) bool {
	switch c.kind {
	case test:
		return anyLine(diff, func(line string) bool { return strings.Contains(line, bare(c.text)) })
	case added, passing:
		n := 0
		return diff.Left > 0 || anyLine(diff, func(line string) bool {
			if mayBeTest().MatchString(line) {
				n++
			}
			return n >= c.count
		})
	}
	return false
}

// mayBeTest finds a line that declares a test or may be a case of one.
var mayBeTest = pattern(`(?i)\btest|\bit\(|\bspec|t\.Run\(|^\s*[-{(\["'` + "`" + `|]|,$`)

// anyLine reports whether f is true for a line that the change adds or removes.
func anyLine(diff *lines.Diff, f func(line string) bool) bool {
	for _, file := range diff.Files {
		for _, side := range [][]lines.Line{file.Added, file.Removed} {
			if slices.ContainsFunc(side, func(l lines.Line) bool { return f(l.Text) }) {
				return true
			}
		}
	}
	return false
}

// lookedUp returns the claims that no call and no check shows.
func (e Evidence) lookedUp(open []claim) ([]claim, error) {
	inTexts := func(c claim) bool { return c.kind == command || c.kind == test || c.kind == passing }
	if e.Texts == nil {
		return slices.DeleteFunc(open, inTexts), nil
	}
	steps := map[string][][]string{} // of a command, those that no text shows yet
	for _, c := range open {
		if c.kind == command {
			steps[c.text] = stepsOf(c.text)
		}
	}
	if !slices.ContainsFunc(open, inTexts) {
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
			switch c.kind {
			case command:
				steps[c.text] = slices.DeleteFunc(steps[c.text], func(step []string) bool { return hasAll(asked, step) })
				return len(steps[c.text]) == 0 || echoes(text.Printed, c.text)
			case test:
				return strings.Contains(text.Asked, bare(c.text)) || strings.Contains(text.Printed, bare(c.text))
			case passing:
				return hasNumber(text.Printed, c.count) || passed(text.Printed) == c.count
			}
			return false
		})
		if !slices.ContainsFunc(open, inTexts) {
			break
		}
	}
	return open, nil
}

// bare returns a test's own name, without its file, class and parentheses.
func bare(name string) string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return strings.TrimSuffix(name, "()")
}

var separators = pattern(`&&|\|\||[;|]`)

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

// hasNumber reports whether a text has a number that stands alone.
func hasNumber(text string, n int) bool {
	digits := strconv.Itoa(n)
	if !strings.Contains(text, digits) {
		return false
	}
	return regexp.MustCompile(`(?:^|[^\w.])` + digits + `(?:$|[^\w.]|\.(?:\s|$))`).MatchString(text)
}

var passedLine = pattern(`(?m)^\s*(?:--- PASS|=== RUN|ok\b|✓|✔|√)|\.\.\. ok$|\bPASSED\b`)

// passed counts the lines of an output that report a passed test.
func passed(printed string) int { return len(passedLine().FindAllStringIndex(printed, -1)) }
