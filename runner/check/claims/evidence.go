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

// Evidence is what a run shows about its work.
type Evidence struct {
	Paths []string // of the change
	// Diff reads the change. It is called only if a claim needs it.
	Diff func() (*lines.Diff, error)
	// Texts yields arguments and outputs of all calls, and commands and outputs of checks. It is
	// used only if a claim needs it. It is nil for a bundle without a transcript. Then only files
	// and numbers in the change are checked.
	Texts iter.Seq2[Text, error]
}

// Text is the text of one call or check.
type Text struct {
	Asked   string // arguments or commands
	Printed string
}

// Unfounded returns the claims of a summary without evidence: names of files, commands and tests,
// and numbers of them. It would rather miss a false claim than doubt a true one.
func Unfounded(summary string, e Evidence) (names []string, err error) {
	var open []claim
	var diff *lines.Diff
	cases := sync.OnceValue(func() int { return testCases(diff) })
	for _, c := range read(summary) {
		isRepeated := slices.ContainsFunc(open, func(o claim) bool { return o.text == c.text })
		if isRepeated || e.inPaths(c) {
			continue
		}
		if c.kind == command || c.kind == files { // the changed lines are no evidence
			open = append(open, c)
			continue
		}
		if diff == nil {
			if diff, err = e.Diff(); err != nil {
				return nil, err
			}
		}
		if !inDiff(c, diff, cases) {
			open = append(open, c)
		}
	}
	if open, err = e.dropShown(open); err != nil {
		return nil, err
	}
	for _, c := range open[:min(len(open), most)] {
		names = append(names, c.text)
	}
	return names, nil
}

// inPaths reports whether the changed paths prove a claim. A claimed path may start at any folder
// above or below the checkout, and may differ in case.
func (e Evidence) inPaths(c claim) bool {
	switch c.kind {
	case file:
		claimed := "/" + strings.ToLower(strings.TrimPrefix(path.Clean(c.text), "/"))
		return slices.ContainsFunc(e.Paths, func(p string) bool {
			p = "/" + strings.ToLower(p)
			return strings.HasSuffix(p, claimed) || strings.HasSuffix(claimed, p)
		})
	case files:
		return c.count <= len(e.Paths)
	}
	return false
}

// inDiff reports whether the changed lines prove a claim about files or tests. A changed line that
// names a file is enough: it may be an import or a list entry. cases counts the tests of the
// change.
func inDiff(c claim, diff *lines.Diff, cases func() int) bool {
	name := bare(c.text)
	switch c.kind {
	case added, passing:
		return diff.OmittedLines > 0 || cases() >= c.count
	case file:
		name = path.Base(c.text)
	}
	for line := range changedLines(diff) {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

var (
	// mayBeTest matches a line that may declare a test or be one of its cases.
	mayBeTest = lazyregexp.New(`(?i)\btest|\bit(?:\.\w+)*\s*[("'` + "`" + `]|\bspec|t\.Run\(|^\s*[-{(\["'` + "`" + `|]|,$`)
	// mayBeTable matches a line that may hold several cases.
	mayBeTable = lazyregexp.New(`(?i)parametri[sz]e|\beach\b|range \[`)
)

// testCases returns how many tests and cases the changed lines may declare. The estimate is high.
func testCases(diff *lines.Diff) (n int) {
	for line := range changedLines(diff) {
		if mayBeTest().MatchString(line) {
			n++
		}
		if mayBeTable().MatchString(line) {
			n += strings.Count(line, ",")
		}
	}
	return n
}

// changedLines yields the added and removed lines of a change.
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

// dropShown returns the claims for which neither calls nor checks are evidence. Each claim must have
// a different text.
func (e Evidence) dropShown(open []claim) ([]claim, error) {
	searches := map[string]search{} // unfinished searches, by the text of the claim
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
		text.Printed = colors().ReplaceAllString(text.Printed, "")
		asked := map[string]bool{}
		for _, part := range parts(tokens(text.Asked)) {
			asked[part] = true
		}
		open = slices.DeleteFunc(open, func(c claim) bool {
			search := searches[c.text]
			isShown := search != nil && search(text, asked)
			if isShown {
				delete(searches, c.text)
			}
			return isShown
		})
		if len(searches) == 0 {
			break
		}
	}
	return open, nil
}

// search reports whether a text is evidence for a claim. asked has the parts of its words.
type search func(t Text, asked map[string]bool) bool

// search returns the search for a claim, which sees the texts one after the other. It returns nil
// if no text can be evidence.
func (c claim) search() search {
	switch c.kind {
	case command:
		return searchCommand(c.text)
	case test:
		name := bare(c.text)
		return func(t Text, _ map[string]bool) bool {
			return strings.Contains(t.Asked, name) || strings.Contains(t.Printed, name)
		}
	case passing:
		return searchPassing(c.count, strings.Fields(c.text)[0])
	}
	return nil
}

// searchCommand returns the search for a command line. Its steps may be in different texts.
func searchCommand(line string) search {
	missing := stepsOf(line)
	return func(t Text, asked map[string]bool) bool {
		missing = slices.DeleteFunc(missing, func(step []string) bool {
			return hasAll(asked, parts(step)) || echoes(t.Printed, step)
		})
		return len(missing) == 0
	}
}

// searchPassing returns the search for a number of passed tests. The numbers of two texts may add
// up to it. written is the number as the claim has it, such as 1,234.
func searchPassing(count int, written string) search {
	number := regexp.MustCompile(`(?:^|[^\w.,])(?:` + strconv.Itoa(count) + `|` + written + `)(?:$|[^\w.]|\.(?:\s|$))`)
	seen := map[int]bool{} // numbers of tests that passed in earlier texts
	return func(t Text, _ map[string]bool) bool {
		if number.MatchString(t.Printed) {
			return true
		}
		for _, n := range passed(t.Printed) {
			if n == count || seen[count-n] {
				return true
			}
			seen[n] = true
		}
		return false
	}
}

// bare returns a test's own name, without file, class and parentheses.
func bare(name string) string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return strings.TrimSuffix(name, "()")
}

var (
	separators = lazyregexp.New(`&&|\|\||[;|]`)
	assignment = lazyregexp.New(`^(?:[A-Za-z_]\w*=.*|env|sudo|time|command)$`)
	versioned  = lazyregexp.New(`^python3?(?:\.\d+)?$`)
)

// stepsOf splits a command line into commands, each a list of words. It removes assignments before
// a command. It omits cd, because the folder may be given in other ways.
func stepsOf(line string) (steps [][]string) {
	for _, step := range separators().Split(line, -1) {
		words := tokens(step)
		for len(words) > 1 && assignment().MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && words[0] != "cd" {
			steps = append(steps, words)
		}
	}
	return steps
}

// tokens splits a text into words for comparing commands. It drops quotes, and the folder and
// version of programs.
func tokens(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;&|()$,{}\\", r) })
	for i, word := range all {
		if base := path.Base(word); versioned().MatchString(base) {
			all[i] = "python"
		} else if _, known := programs[base]; known {
			all[i] = base
		}
	}
	return all
}

// parts splits words at slashes, because a path may start at another folder. `go test ./src/...`
// equals `cd src && go test ./...`.
func parts(words []string) (all []string) {
	for _, word := range words {
		for part := range strings.SplitSeq(word, "/") {
			if strings.Trim(part, ".") != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

func hasAll(text map[string]bool, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !text[part] })
}

// echoes reports whether a line of an output begins with a command. make, for example, prints its
// commands.
func echoes(printed string, step []string) bool {
	for line := range strings.Lines(printed) {
		if !strings.Contains(line, step[0]) {
			continue
		}
		for _, words := range stepsOf(strings.TrimLeft(line, "$>+# \t")) {
			if len(words) >= len(step) && slices.Equal(words[:len(step)], step) {
				return true
			}
		}
	}
	return false
}

var (
	colors = lazyregexp.New(`\x1b\[[0-9;]*m`)
	// passedLines match a line about a passed test, each for another tool.
	passedLines = []func() *regexp.Regexp{
		lazyregexp.New(`(?m)^--- PASS`),
		lazyregexp.New(`(?m)^\s*--- PASS`),
		lazyregexp.New(`(?m)^\s*(?:✓|✔|√)`),
		lazyregexp.New(`(?m)\.\.\. ok$`),
		lazyregexp.New(`(?m)^\s*ok [0-9]+`),
		lazyregexp.New(`\bPASSED\b`),
	}
	// passedTotal matches a total of passed tests.
	passedTotal = lazyregexp.New(`(?i)\b([0-9]+)(?: tests?)? (?:passed|passing|ok)\b|\bTests run: ([0-9]+)|\b([0-9]+) examples\b`)
)

// passed returns the numbers of passed tests in an output, one for each way to count.
func passed(printed string) (all []int) {
	for _, lines := range passedLines {
		if n := len(lines().FindAllStringIndex(printed, -1)); n > 0 {
			all = append(all, n)
		}
	}
	sum := 0
	for _, m := range passedTotal().FindAllStringSubmatch(printed, -1) {
		n, _ := strconv.Atoi(m[1] + m[2] + m[3])
		sum += n
	}
	if sum > 0 {
		all = append(all, sum)
	}
	return all
}
