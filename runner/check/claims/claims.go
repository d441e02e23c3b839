// Package claims owns what an agent's summary says was changed, run and counted, and which of it the run does
// not show. It refuses to know what becomes of a claim.
package claims

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Bounds on the texts searched and the claims listed.
const (
	longest = 64 << 10 // bytes of a summary
	maxRead = 100      // claims of a summary
	most    = 20       // those listed
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
	begins = `(?i)^[\s*+>#✅✔-]*(?:[\w ]{1,30}: )?(?:(?:i|we)(?:['’]ve)? (?:have |also |then )*|also |then )?`
	number = `([1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,5})`
	// tests follows a number of them.
	tests  = `(?: (?:new|more|unit|regression|integration|existing|of the))* (?:tests?|specs|test cases)\b`
	passes = `(?:passes|passed|succeeds|succeeded|(?:is|are|was|were) (?:all )?green|(?:was|were) run|pass|succeed)\b`
	// names finds a list of code spans, whose content is taken out.
	names      = "((?:``(?:, and |, | and | & | / ))*``)"
	were       = `(?:was|were|has been|have been|is now|are now) (?:also |now |newly )?`
	wasChanged = were + `(?:added|created|updated|changed|edited|modified|rewritten|removed|deleted|renamed|extended|implemented|written|adapted|bumped|regenerated|moved)\b`
)

var (
	// saysWasChanged finds what was changed before the verb. "The users of `a.go`" is only mentioned.
	saysWasChanged = lazyregexp.New("(?i)(?:^[\\s*+>#-]*|[,;] |\\band )(?:and )?(?:both |the )?(?:new )?(?:files? |tests? )?" + names + ",? (?:" + wasChanged + "|" + were + "fixed\\b)")
	// saysChangedPlace finds a place behind it.
	saysChangedPlace = lazyregexp.New("(?i)" + wasChanged + "(?: as well)? (?:in|to|into|from) (?:the )?(``)")
	countsWereFiles  = lazyregexp.New(`(?i)\b(` + number + ` files) ` + wasChanged)
	countsWereAdded  = lazyregexp.New(`(?i)\b(` + number + tests + `) ` + were + `(?:added|created|written|removed|deleted)\b`)
	// saysWasRun finds a command behind the verb.
	saysWasRun = lazyregexp.New("(?i)\\b(?:was|were) (?:run|executed|checked|verified|tested) (?:with|using|via|by(?: running)?) (``)")
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
	doubts = lazyregexp.New(`(?i)\b(?:not|no|never|cannot|unable|skipped|skipping|unavailable|without|unchanged|untouched|would|could|should|can|will|must|may|to run|needs?|requires?|earlier|ago|last|already|previous(?:ly)?|before|until|once|upstream|if|when|unless|see|like|per|in the same way|as in|in ci)\b|n['’]t\b`)
	// harmless finds what looks like a doubt and is a part of a claim.
	harmless = lazyregexp.New(`(?i)\b(?:[0-9]+ (?:was |were )?skipped|(?:no|without) (?:any )?(?:new )?(?:errors?|regressions?|problems?|issues?|warnings?|findings|failures))\b`)
	// testsHeading finds a heading of commands that were run, changesHeading one of files that were changed.
	testsHeading   = lazyregexp.New(`(?i)^[#*\s]*(?:testing|tests|tests run|verification|validation|checks|checks run|commands run)[*:\s]*$`)
	changesHeading = lazyregexp.New(`(?i)^[#*\s]*(?:(?:(?:key|main|core) )?changes(?: made)?|summary of changes|what(?:['’]s| i)? changed|changed files|files changed|modified files|files modified)[*:\s]*$`)
	heading        = lazyregexp.New(`^(?:#|\*\*.*\*\*:?$)|^[^-*+].*:$`)
	// item finds the code span that an item of a list begins with, if it is all or something is said about it.
	item = lazyregexp.New("^[-*+] (?:✅ |✔ |\\[x\\] )?(?:\\*\\*)?`([^`]+)`(?:\\*\\*)?(.*)$")

	span     = lazyregexp.New("`([^`]+)`")
	link     = lazyregexp.New(`\[([^\[\]]*)\]\([^()]*\)`)
	fileName = lazyregexp.New(`^/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.(?:go|mod|py|js|jsx|mjs|cjs|ts|tsx|java|kt|rs|rb|php|cs|c|cc|cpp|h|swift|sh|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|html|css|sql|tf|proto|lock|gemspec|gradle|properties|mdx|vue|svelte|scss|csv|kts|scala|dart|lua|exs?|ipynb|bat|ps1)$`)
	// product finds what is written like a file of JavaScript and is none: Node.js.
	product  = lazyregexp.New(`^[A-Z]\w*\.js$`)
	testName = lazyregexp.New(`^(?:(?:Test|Benchmark|Fuzz)[A-Z_]\w*|(?:[\w./-]+::)?(?:\w+::)*test_\w+|(?:\w+::)*tests?::\w+)$`)
	// identifier finds the other names that tests have: of several words.
	identifier    = lazyregexp.New(`^[a-z]+(?:[A-Z]|_[a-z0-9])\w*$`)
	mentionsTests = lazyregexp.New(`(?i)\b(?:tests?|specs)\b`)
)

// programs lists what starts a command, by whether its name alone is one.
var programs = map[string]bool{
	"pytest": true, "tox": true, "nox": true, "mypy": true, "ruff": true, "rspec": true, "phpunit": true, "ctest": true,
	"vitest": true, "pyright": true, "pre-commit": false, "gem": false, "jest": true, "eslint": true, "tsc": true, "make": true, "staticcheck": true, "golangci-lint": true,
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
				all = append(all, changeIn(m[1], false)...)
			}
		}
		for _, sentence := range sentences(line) {
			if len(all) >= maxRead {
				return all[:maxRead]
			}
			if certain(sentence) {
				all = append(all, claimsOf(sentence)...)
			}
		}
	}
	return all[:min(len(all), maxRead)]
}

// certain reports whether the words of a sentence, without its code, take nothing back.
func certain(sentence string) bool {
	return !doubts().MatchString(harmless().ReplaceAllString(plain(sentence), ""))
}

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
	numbers := func(of kind, found [][]string) {
		for _, m := range found {
			n, _ := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
			all = append(all, claim{of, m[1], n})
		}
	}
	passed := saysPassed().FindStringSubmatch(text)
	ended := passed != nil && passed[1] == ""
	for _, c := range clauses(text) {
		ofTests := mentionsTests().MatchString(text[c.from:c.to])
		for _, i := range objects(text, c) {
			if c.verb.runs {
				all = append(all, runIn(code[i], c.verb.direct)...)
			} else {
				all = append(all, changeIn(code[i], ofTests && c.verb.makes)...)
			}
		}
		if c.verb.runs || ended {
			continue
		}
		numbers(files, countsFiles().FindAllStringSubmatch(text[c.from:c.to], 1))
		if c.verb.makes {
			numbers(added, countsAdded().FindAllStringSubmatch(text[c.from:c.to], 1))
		}
	}
	for _, found := range []func() *regexp.Regexp{saysWasChanged, saysChangedPlace} {
		for _, m := range found().FindAllStringSubmatchIndex(text, -1) {
			for _, name := range spansAt(text, code, m[2], m[3]) {
				all = append(all, changeIn(name, mentionsTests().MatchString(text[m[0]:m[1]]))...)
			}
		}
	}
	numbers(files, countsWereFiles().FindAllStringSubmatch(text, most))
	numbers(added, countsWereAdded().FindAllStringSubmatch(text, most))
	for _, m := range saysWasRun().FindAllStringSubmatchIndex(text, -1) {
		all = append(all, runIn(spansAt(text, code, m[2], m[3])[0], false)...)
	}
	for _, m := range saysPasses().FindAllStringSubmatchIndex(text, -1) {
		of := spansAt(text, code, m[2], m[3])
		if infinitive := len(of) == 1 && m[4] == m[5] && strings.HasSuffix(text[:m[1]], " pass"); infinitive {
			continue // "made `make test` pass"
		}
		for _, name := range of {
			all = append(all, runIn(name, true)...)
		}
	}
	if ended {
		numbers(passing, countsPassed().FindAllStringSubmatch(text, most))
	}
	return all
}

// spansAt returns the code spans whose marks are in a part of a plain text.
func spansAt(text string, code []string, from, to int) []string {
	first := strings.Count(text[:from], codeMark)
	return code[first : first+strings.Count(text[from:to], codeMark)]
}

// changeIn returns the claim that what a code span names was changed. Where tests are made, it may be any name.
func changeIn(code string, tests bool) []claim {
	switch bare := strings.TrimSuffix(code, "()"); {
	case testName().MatchString(bare), tests && identifier().MatchString(bare):
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
