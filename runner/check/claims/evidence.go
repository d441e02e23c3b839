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
	// Diff reads the change. It is called once, and only if a claim needs it.
	Diff func() (*lines.Diff, error)
	// Texts yields arguments and outputs of all calls, and commands and outputs of checks. It is
	// used only if a claim needs it. It is nil for a bundle without a transcript. Then only files
	// and numbers in the change are checked.
	Texts iter.Seq2[Text, error]
}

// Text is the text of one call or check.
type Text struct {
	Input  string // arguments or commands
	Output string
}

// Unfounded returns the claims of a summary that lack evidence: names of files, commands and tests,
// and numbers of them. In doubt it believes the claim.
func Unfounded(summary string, e Evidence) (names []string, err error) {
	var unproven []claim
	var diff *lines.Diff
	cases := sync.OnceValue(func() int { return countTestCases(diff) })
	for _, c := range readClaims(summary) {
		isRepeated := slices.ContainsFunc(unproven, func(o claim) bool { return o.text == c.text })
		if isRepeated || e.provenByPaths(c) {
			continue
		}
		if c.kind == command || c.kind == files { // the changed lines are no evidence
			unproven = append(unproven, c)
			continue
		}
		if diff == nil {
			if diff, err = e.Diff(); err != nil {
				return nil, err
			}
		}
		if !provenByDiff(c, diff, cases) {
			unproven = append(unproven, c)
		}
	}
	if unproven, err = e.dropProven(unproven); err != nil {
		return nil, err
	}
	for _, c := range unproven[:min(len(unproven), maxListed)] {
		names = append(names, c.text)
	}
	return names, nil
}

// provenByPaths reports whether the changed paths prove a claim. A claimed path may start at any folder
// above or below the checkout, and may differ in case.
func (e Evidence) provenByPaths(c claim) bool {
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

// provenByDiff reports whether the changed lines prove a claim about files or tests. A changed line that
// names a file is enough: it may be an import or a list entry. cases returns the number of the change's tests.
func provenByDiff(c claim, diff *lines.Diff, cases func() int) bool {
	name := ownTestName(c.text)
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

// countTestCases estimates how many tests and cases the changed lines declare. The estimate is rather high.
func countTestCases(diff *lines.Diff) (n int) {
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

// dropProven returns the claims that no call and no check proves. The claims must have different texts.
func (e Evidence) dropProven(unproven []claim) ([]claim, error) {
	searches := map[string]evidenceSearch{} // unfinished searches, by the text of the claim
	for _, c := range unproven {
		if search := c.newSearch(); search != nil {
			searches[c.text] = search
		}
	}
	if e.Texts == nil { // nothing to search in: believe the claims
		return slices.DeleteFunc(unproven, func(c claim) bool { return searches[c.text] != nil }), nil
	}
	if len(searches) == 0 {
		return unproven, nil
	}
	for text, err := range e.Texts {
		if err != nil {
			return nil, err
		}
		text.Output = colors().ReplaceAllString(text.Output, "")
		inputParts := map[string]bool{}
		for _, part := range pathParts(commandWords(text.Input)) {
			inputParts[part] = true
		}
		unproven = slices.DeleteFunc(unproven, func(c claim) bool {
			search := searches[c.text]
			isShown := search != nil && search(text, inputParts)
			if isShown {
				delete(searches, c.text)
			}
			return isShown
		})
		if len(searches) == 0 {
			break
		}
	}
	return unproven, nil
}

// evidenceSearch reports whether a text proves a claim. It may remember earlier texts. inputParts has the
// parts of the words in the text's input.
type evidenceSearch func(t Text, inputParts map[string]bool) bool

// newSearch returns the search for a claim's evidence. It returns nil if no call or check can prove the claim.
func (c claim) newSearch() evidenceSearch {
	switch c.kind {
	case command:
		return searchCommand(c.text)
	case test:
		name := ownTestName(c.text)
		return func(t Text, _ map[string]bool) bool {
			return strings.Contains(t.Input, name) || strings.Contains(t.Output, name)
		}
	case passing:
		return searchPassing(c.count, strings.Fields(c.text)[0])
	}
	return nil
}

// searchCommand returns the search for a command line. The commands in it may have run in different calls.
func searchCommand(line string) evidenceSearch {
	missing := stepsOf(line)
	return func(t Text, inputParts map[string]bool) bool {
		missing = slices.DeleteFunc(missing, func(step []string) bool {
			return containsAll(inputParts, pathParts(step)) || echoesCommand(t.Output, step)
		})
		return len(missing) == 0
	}
}

// searchPassing returns the search for a number of passed tests, as one number or as the sum of the numbers
// in two texts. written is the number as the claim has it, such as 1,234.
func searchPassing(count int, written string) evidenceSearch {
	number := regexp.MustCompile(`(?:^|[^\w.,])(?:` + strconv.Itoa(count) + `|` + written + `)(?:$|[^\w.]|\.(?:\s|$))`)
	seen := map[int]bool{} // numbers of tests that passed in earlier texts
	return func(t Text, _ map[string]bool) bool {
		if number.MatchString(t.Output) {
			return true
		}
		for _, n := range passedCounts(t.Output) {
			if n == count || seen[count-n] {
				return true
			}
			seen[n] = true
		}
		return false
	}
}

// ownTestName returns a test's own name, without file, class and parentheses.
func ownTestName(name string) string {
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
		words := commandWords(step)
		for len(words) > 1 && assignment().MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && words[0] != "cd" {
			steps = append(steps, words)
		}
	}
	return steps
}

// commandWords splits a text into words for comparing commands. It drops quotes, and the folder and
// version of programs.
func commandWords(text string) []string {
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

// pathParts splits words at slashes, because a path may start at another folder. `go test ./src/...`
// equals `cd src && go test ./...`.
func pathParts(words []string) (all []string) {
	for _, word := range words {
		for part := range strings.SplitSeq(word, "/") {
			if strings.Trim(part, ".") != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// containsAll reports whether a set contains all parts.
func containsAll(text map[string]bool, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !text[part] })
}

// echoesCommand reports whether a line of an output begins with a command. make, for example, prints its
// commands.
func echoesCommand(printed string, step []string) bool {
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

// passedCounts returns the numbers of passed tests in an output, one for each way to count.
func passedCounts(printed string) (all []int) {
	for _, lines := range passedLines {
		if n := len(lines().FindAllStringIndex(printed, -1)); n > 0 {
			all = append(all, n)
		}
	}
	sum := 0
	for _, m := range passedTotal().FindAllStringSubmatch(printed, -1) {
		n, _ := strconv.Atoi(m[1] + m[2] + m[3]) // one of the groups has the number, the others are empty
		sum += n
	}
	if sum > 0 {
		all = append(all, sum)
	}
	return all
}
