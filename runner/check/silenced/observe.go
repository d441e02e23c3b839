package silenced

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// A check is suspiciously quick if it took minBaseSeconds seconds or more on the base, and at most
// 1/quick of that time on the change.
const (
	minBaseSeconds = 10
	quickFactor    = 10
)

// Observe compares checks that are green on the base and on the change, and returns signs: fewer tests, or
// much less time. The time is a weak sign, because the check starts with the caches of the base. output
// returns a check's output, or "" if it is unknown.
func Observe(base, change []transcript.VerifyRow, output func(log string) string) (found []transcript.SilencedSign) {
	for _, now := range change {
		i := slices.IndexFunc(base, func(row transcript.VerifyRow) bool { return row.Name == now.Name })
		if i < 0 {
			continue
		}
		before := base[i]
		ranOnBase := before.CachedFrom == "" // else its result is of an earlier run
		if before.Before != "green" || !ranOnBase || now.After != "green" {
			continue
		}
		if sign := compareRuns(before, now, output(before.Log), output(now.Log)); sign != nil {
			sign.Check = now.Name
			found = append(found, *sign)
		}
	}
	return found
}

// compareRuns returns the sign that two green runs of a check give by their outputs and times, or nil.
func compareRuns(before, now transcript.VerifyRow, outputBefore, outputNow string) *transcript.SilencedSign {
	testsBefore, countedBefore := countTests(outputBefore)
	testsNow, countedNow := countTests(outputNow)
	switch {
	case countedBefore && countedNow && testsNow < testsBefore:
		return &transcript.SilencedSign{Pattern: "fewer-tests", Reason: fmt.Sprintf("%s ran on the base, %d with the change", transcript.CountNoun(testsBefore, "test"), testsNow)}
	case countedBefore && !countedNow && testsBefore > 0 && outputNow != "":
		return &transcript.SilencedSign{Pattern: "fewer-tests", Reason: fmt.Sprintf("%s ran on the base, and the output tells of none with the change", transcript.CountNoun(testsBefore, "test"))}
	case countedBefore || countedNow: // numbers of tests are better evidence than the time
		return nil
	case strings.Contains(outputNow, "(cached)"): // go test printed an earlier result, so the time says nothing
		return nil
	case before.Seconds >= minBaseSeconds && now.Seconds*quickFactor <= before.Seconds:
		return &transcript.SilencedSign{Pattern: "quick", Weak: true, Reason: fmt.Sprintf("it took %.1f s on the base, %.1f s with the change", before.Seconds, now.Seconds)}
	}
	return nil
}

// totals match how tools print the number of passed tests. Numbers of several lines are added.
var totals = sync.OnceValue(func() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, tool := range []string{
		`(?m)^=* ?(?:[0-9]+ failed, )?([0-9]+) passed\b.* in [0-9.]+s`,                                   // pytest
		`(?m)^(?:=+ )?no tests ran in ([0-9])[0-9.]*s`,                                                   // pytest, none
		`(?m)^Ran ([0-9]+) tests? in `,                                                                   // unittest
		`(?m)^\s*Tests:?\s+(?:[0-9]+ (?:failed|skipped|todo)(?:,| \|) )*([0-9]+) passed\b`,               // jest, vitest
		`(?m)^\s*([0-9]+) passing\b`,                                                                     // mocha
		`(?m)^test result: \w+\. ([0-9]+) passed; [0-9]+ failed`,                                         // cargo
		`(?m)^(?:\[\w+\]\s+)?Tests run: ([0-9]+), Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+\s*$`, // Maven
		`(?m)^([0-9]+) examples?, [0-9]+ failures?`,                                                      // RSpec
		`(?m)^OK \(([0-9]+) tests?,`,                                                                     // PHPUnit
		`(?m)^[0-9]+% tests passed, [0-9]+ tests? failed out of ([0-9]+)`,                                // ctest
		`(?m)^(?:ℹ|#) pass ([0-9]+)\s*$`,                                                                 // node, TAP
		`(?m)^\s*([0-9]+) tests?, [0-9]+ failures?`,                                                      // bats, ExUnit
		`(?m)^Passed!\s+- Failed:\s+[0-9]+, Passed:\s+([0-9]+)`,                                          // dotnet
	} {
		all = append(all, regexp.MustCompile(tool))
	}
	return all
})

// goPass matches a passed test of go test -v.
var goPass = lazyregexp.New(`(?m)^\s*--- PASS: `)

// countTests returns how many tests passed by an output. Results by name (go test -v) count together with totals.
// known is false if the output has neither, or a number that is too large.
func countTests(output string) (n int, known bool) {
	for _, tool := range totals() {
		for _, m := range tool.FindAllStringSubmatch(output, -1) {
			known = true
			count, err := strconv.Atoi(m[1])
			if err != nil {
				return 0, false
			}
			n += count
		}
	}
	if named := len(goPass().FindAllStringIndex(output, -1)); named > 0 {
		return n + named, true
	}
	return n, known
}
