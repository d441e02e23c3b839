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
	begins = `(?i)^[\s*+>#-]*(?:(?:i|we) (?:have |also |then )*|also |then )?`
	count  = `([1-9][0-9]{0,5})(?: (?:new|unit|regression|integration|failing|existing))?`
	tests  = `(?:tests?|specs|test cases)\b`
)

var (
	// saysChange finds a sentence that claims a change that was made.
	saysChange = lazyregexp.New(begins + `(?:added|created|updated|changed|edited|modified|fixed|rewrote|removed|deleted|renamed|extended|implemented|wrote)\b`)
	// saysRan finds a sentence that claims a run of a command.
	saysRan = lazyregexp.New(begins + `(?:ran|re-ran|executed)\b`)
	// saysTested finds one that may claim it, by the command that it names.
	saysTested = lazyregexp.New(begins + `(?:tested|verified|validated|confirmed) (?:\w+ ){0,4}(?:with|by|using|that|running|via)\b`)
	// saysPassed finds what claims the end of a run.
	saysPassed = lazyregexp.New(`(?i)\b(?:pass|passes|passed|succeeds|succeeded|(?:is|are|was|were) green|(?:was|were) run)\b`)
	// doubts finds what takes a claim back, or is about another time or change.
	doubts = lazyregexp.New(`(?i)\b(?:not|no|never|without|unchanged|untouched|would|could|should|can|will|must|may|to run|earlier|already|previous(?:ly)?|before|until|once|upstream|if|when|unless|see|like|per|from|in the same way|as in|in ci)\b|n't\b`)
	// testsHeading finds a heading of commands that were run.
	testsHeading = lazyregexp.New(`(?i)^[#*\s]*(?:testing|tests|tests run|test plan|verification|validation|checks|checks run|commands run)[*:\s]*$`)
	heading      = lazyregexp.New(`^(?:#|\*\*.*\*\*:?$)|^[^-*+].*:$`)
	// tested finds a command that an item of such a list begins with.
	tested = lazyregexp.New("^[-*+] (?:✅ |✔ |\\[x\\] )?`([^`]+)`")

	span       = lazyregexp.New("`([^`]+)`")
	fileName   = lazyregexp.New(`^(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.(?:go|mod|py|js|jsx|mjs|cjs|ts|tsx|java|kt|rs|rb|php|cs|c|cc|cpp|h|swift|sh|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|html|css|sql|tf|proto)$`)
	testName   = lazyregexp.New(`^(?:(?:Test|Benchmark|Fuzz)[A-Z_]\w*|(?:[\w./-]+::)?(?:\w+::)*test_\w+)$`)
	countTests = lazyregexp.New(`(?i)\b` + count + ` ` + tests)
	countFiles = lazyregexp.New(`(?i)\b([1-9][0-9]{0,5}) files\b`)
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
	inCode, inTests := false, false
	for line := range strings.Lines(clip.Start(summary, longest)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if inCode {
			continue
		}
		switch {
		case testsHeading().MatchString(line):
			inTests = true
		case heading().MatchString(line):
			inTests = false
		}
		if m := tested().FindStringSubmatch(line); m != nil && inTests && certain(line) {
			all = append(all, commandIn(m[1], true)...)
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
func certain(sentence string) bool { return !doubts().MatchString(words(sentence)) }

// words returns a sentence without its code spans.
func words(sentence string) string { return span().ReplaceAllString(sentence, "``") }

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
	plain := words(sentence)
	change, ran, passed := saysChange().MatchString(plain), saysRan().MatchString(plain), saysPassed().MatchString(plain)
	wasRun := ran || passed || saysTested().MatchString(plain)
	for _, m := range span().FindAllStringSubmatch(sentence, most) {
		name := strings.TrimSuffix(m[1], "()")
		switch {
		case testName().MatchString(name):
			if change || wasRun {
				all = append(all, claim{kind: test, text: m[1]})
			}
		case fileName().MatchString(name):
			if change {
				all = append(all, claim{kind: file, text: name})
			}
		case wasRun:
			all = append(all, commandIn(m[1], ran || passed)...)
		}
	}
	numbers := func(of kind, in *regexp.Regexp) {
		for _, m := range in.FindAllStringSubmatch(plain, most) {
			n, _ := strconv.Atoi(m[1])
			all = append(all, claim{of, m[0], n})
		}
	}
	switch {
	case passed:
		numbers(passing, countTests())
	case change:
		numbers(added, countTests())
		numbers(files, countFiles())
	}
	return all
}

// commandIn returns the command in a code span, if it is one. alone accepts the name of a test program.
func commandIn(code string, alone bool) []claim {
	steps := stepsOf(code)
	if len(steps) == 0 || strings.ContainsAny(code, "<…") {
		return nil
	}
	first := steps[0]
	for len(first) > 1 && strings.Contains(first[0], "=") {
		first = first[1:]
	}
	byName, known := programs[first[0]]
	if !known || len(first) == 1 && (!byName || !alone) {
		return nil
	}
	return []claim{{kind: command, text: code}}
}
