// Package claims owns the claims of an agent's summary about changes, commands and numbers, and
// finds those without evidence in the run. It does not know what happens to a claim.
package claims

import (
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Bounds on the texts searched and the claims listed.
const (
	maxSummaryBytes = 64 << 10 // bytes of a summary that are searched
	maxExamined     = 100      // claims of a summary that are examined
	maxListed       = 20       // claims without evidence that are listed
)

// kind tells where the evidence for a claim must be.
type kind int

const (
	file    kind = iota // one of the paths of the change
	files               // a number of files: no more than the change has paths
	command             // the arguments of a call or check
	test                // the change, or a call
	passing             // a number of tests: the output of calls and checks
	added               // a number of tests: the change
)

// claim is one thing that a summary claims. text is its name or its words, count its number.
type claim struct {
	kind  kind
	text  string
	count int
}

const (
	clauseBegin   = `(?i)^[\s*+>#✅✔-]*(?:[\w ]{1,30}: )?(?:(?:i|we)(?:['’]ve)? (?:have |also |then )*|also |then )?`
	numberPattern = `([1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,5})`
	// testsNoun follows a number of tests.
	testsNoun = `(?: (?:new|more|unit|regression|integration|existing|of the))* (?:tests?|specs|test cases)\b`
	passVerbs = `(?:passes|passed|succeeds|succeeded|(?:is|are|was|were) (?:all )?green|(?:was|were) run|pass|succeed)\b`
	// codeSpans matches a list of code spans. withoutCode has removed their content.
	codeSpans  = "((?:``(?:, and |, | and | & | / ))*``)"
	wereVerb   = `(?:was|were|has been|have been|is now|are now) (?:also |now |newly )?`
	wasChanged = wereVerb + `(?:added|created|updated|changed|edited|modified|rewritten|removed|deleted|renamed|extended|implemented|written|adapted|bumped|regenerated|moved)\b`
)

var (
	// saysWasChanged matches names before a verb of change. "The users of `a.go`" is no match,
	// because it only mentions a.go.
	saysWasChanged = lazyregexp.New("(?i)(?:^[\\s*+>#-]*|[,;] |\\band )(?:and )?(?:both |the )?(?:new )?(?:files? |tests? )?" + codeSpans + ",? (?:" + wasChanged + "|" + wereVerb + "fixed\\b)")
	// saysChangedPlace matches a place after the verb.
	saysChangedPlace = lazyregexp.New("(?i)" + wasChanged + "(?: as well)? (?:in|to|into|from) (?:the )?(``)")
	countsWereFiles  = lazyregexp.New(`(?i)\b(` + numberPattern + ` files) ` + wasChanged)
	countsWereAdded  = lazyregexp.New(`(?i)\b(` + numberPattern + testsNoun + `) ` + wereVerb + `(?:added|created|written|removed|deleted)\b`)
	// saysWasRun matches a command after the verb.
	saysWasRun = lazyregexp.New("(?i)\\b(?:was|were) (?:run|executed|checked|verified|tested) (?:with|using|via|by(?: running)?) (``)")
	// saysPasses matches names of commands or tests that passed.
	saysPasses = lazyregexp.New(`(?i)` + codeSpans + `(?: \([^()]*\))?((?: (?:now|also|still|all|both|each|commands?|suite|tests?))*) ` + passVerbs)
	// saysPassed matches the statement that something passed. Its group is set if it is only meant
	// to pass, as in "to pass".
	saysPassed = lazyregexp.New(`(?i)\b(to |let |make )?` + passVerbs)
	// countsPassed matches a number of tests at the beginning of a phrase. "Python 3.12 tests" is
	// no match.
	countsPassed = lazyregexp.New(`(?i)(?:^[\s*+>#✅✔-]*|[,:(–—-] ?|\b(?:all|the|these|those|both|with|and|now|new|ran) )(` + numberPattern + testsNoun + `)`)
	// countsAdded and countsFiles match a number that is the object of the verb.
	countsAdded = lazyregexp.New(`(?i)^(?: (?:all|the|these|another))? (` + numberPattern + testsNoun + `)`)
	countsFiles = lazyregexp.New(`(?i)^(?: (?:all|the|these|another))? (` + numberPattern + ` files)\b`)

	// doubts matches words that take a claim back, or that are about another time or change.
	doubts = lazyregexp.New(`(?i)\b(?:not|no|never|cannot|unable|skipped|skipping|unavailable|without|unchanged|untouched|would|could|should|can|will|must|may|to run|needs?|requires?|earlier|ago|last|already|previous(?:ly)?|before|until|once|upstream|if|when|unless|see|like|per|in the same way|as in|in ci)\b|n['’]t\b`)
	// harmless matches words that look like a doubt but belong to a claim.
	harmless = lazyregexp.New(`(?i)\b(?:[0-9]+ (?:was |were )?skipped|(?:no|without) (?:any )?(?:new )?(?:errors?|regressions?|problems?|issues?|warnings?|findings|failures))\b`)
	// testsHeading matches a heading above commands that were run. changesHeading matches one above
	// changed files.
	testsHeading   = lazyregexp.New(`(?i)^[#*\s]*(?:testing|tests|tests run|verification|validation|checks|checks run|commands run)[*:\s]*$`)
	changesHeading = lazyregexp.New(`(?i)^[#*\s]*(?:(?:(?:key|main|core) )?changes(?: made)?|summary of changes|what(?:['’]s| i)? changed|changed files|files changed|modified files|files modified)[*:\s]*$`)
	heading        = lazyregexp.New(`^(?:#|\*\*.*\*\*:?$)|^[^-*+].*:$`)
	// item matches a list item that begins with a code span.
	item = lazyregexp.New("^[-*+] (?:✅ |✔ |\\[x\\] )?(?:\\*\\*)?`([^`]+)`(?:\\*\\*)?(.*)$")

	span     = lazyregexp.New("`([^`]+)`")
	link     = lazyregexp.New(`\[([^\[\]]*)\]\([^()]*\)`)
	fileName = lazyregexp.New(`^/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.(?:go|mod|py|js|jsx|mjs|cjs|ts|tsx|java|kt|rs|rb|php|cs|c|cc|cpp|h|swift|sh|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|html|css|sql|tf|proto|lock|gemspec|gradle|properties|mdx|vue|svelte|scss|csv|kts|scala|dart|lua|exs?|ipynb|bat|ps1)$`)
	// product matches names that look like a JavaScript file but are none, such as Node.js.
	product  = lazyregexp.New(`^[A-Z]\w*\.js$`)
	testName = lazyregexp.New(`^(?:(?:Test|Benchmark|Fuzz)[A-Z_]\w*|(?:[\w./-]+::)?(?:\w+::)*test_\w+|(?:\w+::)*tests?::\w+)$`)
	// identifier matches other names that tests may have, of several words.
	identifier    = lazyregexp.New(`^[a-z]+(?:[A-Z]|_[a-z0-9])\w*$`)
	mentionsTests = lazyregexp.New(`(?i)\b(?:tests?|specs)\b`)
)

// programs lists programs that may begin a command. The value is true if the name alone is a
// command.
var programs = map[string]bool{
	"pytest": true, "tox": true, "nox": true, "mypy": true, "ruff": true, "rspec": true, "phpunit": true, "ctest": true,
	"vitest": true, "pyright": true, "pre-commit": false, "gem": false, "jest": true, "eslint": true, "tsc": true, "make": true, "staticcheck": true, "golangci-lint": true,
	"go": false, "python": false, "python3": false, "npm": false, "npx": false, "pnpm": false, "yarn": false, "node": false,
	"bun": false, "deno": false, "cargo": false, "mvn": false, "gradle": false, "gradlew": false, "bundle": false,
	"rake": false, "ruby": false, "php": false, "composer": false, "dotnet": false, "cmake": false, "bazel": false,
	"poetry": false, "uv": false, "just": false, "swift": false, "mix": false, "sbt": false, "sh": false, "bash": false,
	"shellcheck": false, "black": false, "flake8": false, "prettier": false, "gofmt": false, "docker": false, "terraform": false,
}

// readClaims returns the claims of a summary. It skips code blocks, and sentences that take something back
// or are about another time.
func readClaims(summary string) (all []claim) {
	if !strings.ContainsAny(summary, "`123456789") {
		return nil // each claim has a code span or a number
	}
	inCode, list := false, otherList
	for line := range strings.Lines(clip.Start(summary, maxSummaryBytes)) {
		line = link().ReplaceAllString(strings.TrimSpace(line), "$1")
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if inCode {
			continue
		}
		list = list.after(line)
		if isAffirmative(line) {
			all = append(all, list.claimsOfItem(line)...)
		}
		for _, sentence := range splitSentences(line) {
			if len(all) >= maxExamined {
				return all[:maxExamined]
			}
			if isAffirmative(sentence) {
				all = append(all, claimsOf(sentence)...)
			}
		}
	}
	return all[:min(len(all), maxExamined)]
}

// listKind is the kind of a summary's list, as its heading says.
type listKind int

const (
	otherList listKind = iota
	testList
	changeList
)

// after returns the kind of the list after a line, which may be a heading.
func (k listKind) after(line string) listKind {
	switch {
	case testsHeading().MatchString(line):
		return testList
	case changesHeading().MatchString(line):
		return changeList
	case heading().MatchString(line):
		return otherList
	}
	return k
}

// claimsOfItem returns the claims of a list item that begins with a code span. It returns nil for other lines.
func (k listKind) claimsOfItem(line string) []claim {
	m := item().FindStringSubmatch(line)
	switch {
	case m == nil:
		return nil
	case k == testList:
		return commandClaim(m[1], acceptsBareName)
	case k == changeList && canEndObject(wordsOf(m[2])):
		return changeClaim(m[1], !acceptsTestNames)
	}
	return nil
}

// isAffirmative reports whether a sentence neither takes something back nor is about another time. It
// ignores code spans.
func isAffirmative(sentence string) bool {
	return !doubts().MatchString(harmless().ReplaceAllString(withoutCode(sentence), ""))
}

// withoutCode returns a sentence with empty code spans.
func withoutCode(sentence string) string { return span().ReplaceAllString(sentence, codeMark) }

// splitSentences splits a line after full stops and semicolons, except in code spans.
func splitSentences(line string) (all []string) {
	inSpan, start := false, 0
	for i := range len(line) {
		switch {
		case line[i] == '`':
			inSpan = !inSpan
		case !inSpan && (line[i] == '.' || line[i] == ';') && i+1 < len(line) && line[i+1] == ' ':
			all = append(all, line[start:i])
			start = i + 2
		}
	}
	return append(all, line[start:])
}

// claimsOf returns the claims of an affirmative sentence.
func claimsOf(sentence string) []claim {
	s := sentenceClaims{text: withoutCode(sentence)}
	for _, m := range span().FindAllStringSubmatch(sentence, -1) {
		s.code = append(s.code, m[1])
	}
	passed := saysPassed().FindStringSubmatch(s.text)
	claimsPass := passed != nil && passed[1] == "" // not "to pass"
	for _, c := range splitClauses(s.text) {
		s.addClause(c, !claimsPass) // if claimsPass, addCounts reads the numbers below
	}
	s.addPassiveChanges()
	s.addPassiveRuns()
	if claimsPass {
		s.addCounts(passing, countsPassed().FindAllStringSubmatch(s.text, maxListed))
	}
	return s.claims
}

// sentenceClaims collects the claims of a sentence.
type sentenceClaims struct {
	text   string   // the plain sentence
	code   []string // the content of its code spans
	claims []claim
}

// addCounts adds claims about numbers. Each match has the claim's words and its number.
func (s *sentenceClaims) addCounts(of kind, matches [][]string) {
	for _, m := range matches {
		n, _ := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
		s.claims = append(s.claims, claim{of, m[1], n})
	}
}

// addClause adds the claims of a clause such as "added `a.go`" or "ran `make`". With counts, it
// also adds claims about numbers of changed files and tests.
func (s *sentenceClaims) addClause(c clause, counts bool) {
	text := s.text[c.from:c.to]
	isAboutTests := mentionsTests().MatchString(text)
	for _, i := range objectSpans(s.text, c) {
		if c.verb.isRun {
			s.claims = append(s.claims, runClaim(s.code[i], c.verb.actsOnObject)...)
		} else {
			s.claims = append(s.claims, changeClaim(s.code[i], isAboutTests && c.verb.isAddition)...)
		}
	}
	if c.verb.isRun || !counts {
		return
	}
	s.addCounts(files, countsFiles().FindAllStringSubmatch(text, 1))
	if c.verb.isAddition {
		s.addCounts(added, countsAdded().FindAllStringSubmatch(text, 1))
	}
}

// addPassiveChanges adds claims such as "`a.go` was added" or "3 tests were added".
func (s *sentenceClaims) addPassiveChanges() {
	matches := append(saysWasChanged().FindAllStringSubmatchIndex(s.text, -1), saysChangedPlace().FindAllStringSubmatchIndex(s.text, -1)...)
	for _, m := range matches {
		isAboutTests := mentionsTests().MatchString(s.text[m[0]:m[1]])
		for _, name := range s.spansAt(m[2], m[3]) {
			s.claims = append(s.claims, changeClaim(name, isAboutTests)...)
		}
	}
	s.addCounts(files, countsWereFiles().FindAllStringSubmatch(s.text, maxListed))
	s.addCounts(added, countsWereAdded().FindAllStringSubmatch(s.text, maxListed))
}

// addPassiveRuns adds claims such as "was checked with `make`" or "`make` passes".
func (s *sentenceClaims) addPassiveRuns() {
	for _, m := range saysWasRun().FindAllStringSubmatchIndex(s.text, -1) {
		s.claims = append(s.claims, runClaim(s.spansAt(m[2], m[3])[0], !acceptsBareName)...)
	}
	for _, m := range saysPasses().FindAllStringSubmatchIndex(s.text, -1) {
		names := s.spansAt(m[2], m[3])
		hasWordsBetween := m[4] != m[5]
		if len(names) == 1 && !hasWordsBetween && strings.HasSuffix(s.text[:m[1]], " pass") {
			continue // an infinitive: "made `make test` pass"
		}
		for _, name := range names {
			s.claims = append(s.claims, runClaim(name, acceptsBareName)...)
		}
	}
}

// spansAt returns the content of the code spans between two positions of the plain sentence.
func (s *sentenceClaims) spansAt(from, to int) []string {
	first := strings.Count(s.text[:from], codeMark)
	return s.code[first : first+strings.Count(s.text[from:to], codeMark)]
}

const (
	acceptsTestNames = true // any name of several words may be a test
	acceptsBareName  = true // a program's name without arguments may be a command
)

// changeClaim returns the claim that the file or test in a code span was changed, or nil.
func changeClaim(code string, acceptsTestNames bool) []claim {
	switch bare := strings.TrimSuffix(code, "()"); {
	case testName().MatchString(bare), acceptsTestNames && identifier().MatchString(bare):
		return []claim{{kind: test, text: code}}
	case fileName().MatchString(code) && !product().MatchString(code):
		return []claim{{kind: file, text: code}}
	}
	return nil
}

// runClaim returns the claim that the test or command in a code span was run, or nil.
func runClaim(code string, acceptsBareName bool) []claim {
	if testName().MatchString(strings.TrimSuffix(code, "()")) {
		return []claim{{kind: test, text: code}}
	}
	return commandClaim(code, acceptsBareName)
}

// commandClaim returns the claim that the command in a code span was run, or nil if it is no command.
func commandClaim(code string, acceptsBareName bool) []claim {
	steps := stepsOf(code)
	isTemplate := strings.ContainsAny(code, "<…")
	if len(steps) == 0 || isTemplate {
		return nil
	}
	isCommandAlone, known := programs[steps[0][0]]
	if !known {
		return nil
	}
	hasArguments := len(steps[0]) > 1
	if isCommand := hasArguments || isCommandAlone && acceptsBareName; !isCommand {
		return nil
	}
	return []claim{{kind: command, text: code}}
}
