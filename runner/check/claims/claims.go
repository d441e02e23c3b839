// Package claims owns what an agent's summary says was changed, run and counted, and which of it the run does
// not show. It refuses to know what becomes of a claim.
package claims

import (
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Bounds on the texts searched and the claims listed.
const (
	longest  = 64 << 10 // bytes of a summary
	mostRead = 100      // claims of a summary
	most     = 20       // those listed
)

// kind tells where a claim must be found.
type kind int

const (
	file    kind = iota // among the paths of the change
	files               // at most as many paths
	command             // in a call, or among the checks
	test                // in the change or in a call
	passing             // a number of tests: in what calls and checks printed
	added               // a number of tests: in the change
)

// claim is one thing that a summary names.
type claim struct {
	kind  kind
	text  string
	count int
}

const (
	begins = `(?i)^[\s*+>#✅✔-]*(?:(?:i|we) (?:have |also |then )*|also |then )?`
	number = `([1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,5})`
	// tests follows a number of them.
	tests  = `(?: (?:new|more|unit|regression|integration|existing|of the))* (?:tests?|specs|test cases)\b`
	passes = `(?:passes|passed|succeeds|succeeded|(?:is|are|was|were) (?:all )?green|(?:was|were) run|pass|succeed)\b`
	// names finds a list of code spans, whose content is taken out.
	names = "((?:``(?:, and |, | and | & | / ))*``)"
)

var (
	// saysChange begins a sentence that claims a change that was made.
	saysChange = lazyregexp.New(begins + `(added|created|updated|changed|edited|modified|fixed|rewrote|removed|deleted|renamed|extended|implemented|wrote)\b`)
	// saysThisChanges does so for a pull request.
	saysThisChanges = lazyregexp.New(`(?i)^[\s*+>#-]*(?:this|the) (?:pr|pull request|change|patch|commit|branch) (?:also )?(add|create|update|change|edit|modifie|fixe|rewrite|remove|delete|rename|extend|implement|write)s\b`)
	// saysWasChanged names what was changed before the verb.
	saysWasChanged = lazyregexp.New(begins + `(?:both |the )?(?:new )?(?:files? |tests? )?` + names + ` (?:was|were|has been|have been|is now|are now) (?:also |now |newly )?(?:added|created|updated|changed|edited|modified|fixed|rewritten|removed|deleted|renamed|extended|implemented|written)\b`)
	// saysRan begins a sentence that claims a run of a command. Behind the verbs of the second group only a
	// place names one: "verified with `make`".
	saysRan = lazyregexp.New(begins + `(?:(ran|re-ran|executed)|tested|verified|validated|confirmed)\b`)
	// saysPasses names what ended well.
	saysPasses = lazyregexp.New(`(?i)` + names + `(?: \([^()]*\))?((?: (?:now|also|still|all|both|each|commands?|suite|tests?))*) ` + passes)
	// saysPassed finds that something ended well. What is to pass did not end.
	saysPassed = lazyregexp.New(`(?i)\b(to |let |make )?` + passes)
	// countsPassed finds a number of tests that begins a phrase. "Python 3.12 tests" is none.
	countsPassed = lazyregexp.New(`(?i)(?:^[\s*+>#✅✔-]*|[,:(–—-] ?|\b(?:all|the|these|those|both|with|and|now|new|ran) )(` + number + tests + `)`)
	// countsAdded and countsFiles find a number that is the object of the verb.
	countsAdded = lazyregexp.New(`(?i)^(?: (?:all|the|these|another))? (` + number + tests + `)`)
	countsFiles = lazyregexp.New(`(?i)^(?: (?:all|the|these|another))? (` + number + ` files)\b`)

	// doubts finds what takes a claim back, or is about another time or change.
	doubts = lazyregexp.New(`(?i)\b(?:not|no|never|cannot|unable|skipped|skipping|unavailable|without|unchanged|untouched|would|could|should|can|will|must|may|to run|needs?|requires?|earlier|already|previous(?:ly)?|before|until|once|upstream|if|when|unless|see|like|per|in the same way|as in|in ci)\b|n['’]t\b`)
	// testsHeading finds a heading of commands that were run, changesHeading one of files that were changed.
	testsHeading   = lazyregexp.New(`(?i)^[#*\s]*(?:testing|tests|tests run|verification|validation|checks|checks run|commands run)[*:\s]*$`)
	changesHeading = lazyregexp.New(`(?i)^[#*\s]*(?:changes|changed files|files changed|modified files|files modified)[*:\s]*$`)
	heading        = lazyregexp.New(`^(?:#|\*\*.*\*\*:?$)|^[^-*+].*:$`)
	// item finds the code span that an item of a list begins with, if it is all or something is said about it.
	item = lazyregexp.New("^[-*+] (?:✅ |✔ |\\[x\\] )?(?:\\*\\*)?`([^`]+)`(?:\\*\\*)?(.*)$")

	span     = lazyregexp.New("`([^`]+)`")
	link     = lazyregexp.New(`\[([^\[\]]*)\]\([^()]*\)`)
	fileName = lazyregexp.New(`^/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.(?:go|mod|py|js|jsx|mjs|cjs|ts|tsx|java|kt|rs|rb|php|cs|c|cc|cpp|h|swift|sh|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|html|css|sql|tf|proto)$`)
	// product finds what is written like a file of JavaScript and is none: Node.js.
	product  = lazyregexp.New(`^[A-Z]\w*\.js$`)
	testName = lazyregexp.New(`^(?:(?:Test|Benchmark|Fuzz)[A-Z_]\w*|(?:[\w./-]+::)?(?:\w+::)*test_\w+)$`)
)

// programs lists what starts a command, by whether its name alone is one.
var programs = map[string]bool{
	"pytest": true, "tox": true, "nox": true, "mypy": true, "ruff": true, "rspec": true, "phpunit": true, "ctest": true,
	"vitest": true, "jest": true, "eslint": true, "tsc": true, "make": true, "staticcheck": true, "golangci-lint": true,
	"go": false, "python": false, "python3": false, "npm": false, "npx": false, "pnpm": false, "yarn": false, "node": false,
	"bun": false, "deno": false, "cargo": false, "mvn": false, "gradle": false, "gradlew": false, "bundle": false,
	"rake": false, "ruby": false, "php": false, "composer": false, "dotnet": false, "cmake": false, "bazel": false,
	"poetry": false, "uv": false, "just": false, "swift": false, "mix": false, "sbt": false, "sh": false, "bash": false,
	"shellcheck": false, "black": false, "flake8": false, "prettier": false, "gofmt": false, "docker": false, "terraform": false,
}

// read lists what a summary claims. A sentence that takes something back, or is about another time, claims
// nothing.
func read(summary string) (all []claim) {
	inCode, inTests, inChanges := false, false, false
	for line := range strings.Lines(clip.Start(summary, longest)) {
		line = link().ReplaceAllString(strings.TrimSpace(line), "$1")
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if inCode {
			continue
		}
		if heading().MatchString(line) || testsHeading().MatchString(line) || changesHeading().MatchString(line) {
			inTests, inChanges = testsHeading().MatchString(line), changesHeading().MatchString(line)
		}
		if m := item().FindStringSubmatch(line); m != nil && certain(line) {
			switch {
			case inTests:
				all = append(all, commandIn(m[1], true)...)
			case inChanges && endsPhrase(wordsOf(m[2])):
				all = append(all, changeIn(m[1])...)
			}
		}
		for _, sentence := range sentences(line) {
			if len(all) >= mostRead {
				return all[:mostRead]
			}
			if certain(sentence) {
				all = append(all, claimsOf(sentence)...)
			}
		}
	}
	return all[:min(len(all), mostRead)]
}

// certain reports whether the words of a sentence, without its code, take nothing back.
func certain(sentence string) bool { return !doubts().MatchString(plain(sentence)) }

// plain returns a sentence with the content of its code spans taken out.
func plain(sentence string) string { return span().ReplaceAllString(sentence, codeMark) }

// sentences splits a line behind full stops and semicolons, outside of code spans.
func sentences(line string) (all []string) {
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

// claimsOf lists the claims of a sentence without doubts.
func claimsOf(sentence string) (all []claim) {
	text := plain(sentence)
	var code []string
	for _, m := range span().FindAllStringSubmatch(sentence, -1) {
		code = append(code, m[1])
	}
	verb, from := changeVerb(text)
	if verb != "" {
		for _, i := range objects(text, from, placesOf(verb), true) {
			all = append(all, changeIn(code[i])...)
		}
	}
	if m := saysWasChanged().FindStringSubmatch(text); m != nil {
		for _, name := range code[:strings.Count(m[1], codeMark)] {
			all = append(all, changeIn(name)...)
		}
	}
	if m := saysRan().FindStringSubmatchIndex(text); m != nil {
		ran := m[2] >= 0
		for _, i := range objects(text, m[1], []string{"with", "via", "using", "by", "running", "("}, ran) {
			all = append(all, runIn(code[i], ran)...)
		}
	}
	for _, m := range saysPasses().FindAllStringSubmatchIndex(text, -1) {
		first, n := strings.Count(text[:m[2]], codeMark), strings.Count(text[m[2]:m[3]], codeMark)
		if infinitive := n == 1 && m[4] == m[5] && strings.HasSuffix(text[:m[1]], " pass"); infinitive {
			continue // "made `make test` pass"
		}
		for _, name := range code[first : first+n] {
			all = append(all, runIn(name, true)...)
		}
	}
	numbers := func(of kind, found [][]string) {
		for _, m := range found {
			n, _ := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
			all = append(all, claim{of, m[1], n})
		}
	}
	if m := saysPassed().FindStringSubmatch(text); m != nil && m[1] == "" {
		numbers(passing, countsPassed().FindAllStringSubmatch(text, most))
		return all
	}
	if verb != "" {
		numbers(files, countsFiles().FindAllStringSubmatch(text[from:], 1))
		if !strings.HasPrefix(verb, "fix") { // one change can fix many tests
			numbers(added, countsAdded().FindAllStringSubmatch(text[from:], 1))
		}
	}
	return all
}

// changeVerb returns the verb of a sentence that claims a change, and where it ends; no verb for other
// sentences.
func changeVerb(text string) (verb string, end int) {
	m := saysChange().FindStringSubmatchIndex(text)
	if m == nil {
		m = saysThisChanges().FindStringSubmatchIndex(text)
	}
	if m == nil {
		return "", 0
	}
	return strings.ToLower(text[m[2]:m[3]]), m[1]
}

// changeIn returns the claim that what a code span names was changed.
func changeIn(code string) []claim {
	switch {
	case testName().MatchString(strings.TrimSuffix(code, "()")):
		return []claim{{kind: test, text: code}}
	case fileName().MatchString(code) && !product().MatchString(code):
		return []claim{{kind: file, text: code}}
	}
	return nil
}

// runIn returns the claim that a test or command in a code span was run. alone accepts the name of a test
// program.
func runIn(code string, alone bool) []claim {
	if testName().MatchString(strings.TrimSuffix(code, "()")) {
		return []claim{{kind: test, text: code}}
	}
	return commandIn(code, alone)
}

// commandIn returns the command in a code span, if it is one.
func commandIn(code string, alone bool) []claim {
	steps := stepsOf(code)
	if len(steps) == 0 || strings.ContainsAny(code, "<…") {
		return nil
	}
	byName, known := programs[steps[0][0]]
	if !known || len(steps[0]) == 1 && (!byName || !alone) {
		return nil
	}
	return []claim{{kind: command, text: code}}
}
