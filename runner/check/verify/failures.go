package verify

import (
	"slices"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
)

// failures returns the failing tests of a check's run, with redacted names and files. Recorded tests are
// redacted, too, so the names can be compared.
func (c Checks) failures(results *testresults.Results) []testsource.Failure {
	all := testsource.Failures(results)
	for i := range all {
		all[i].Name, all[i].File = c.Record.Redact(all[i].Name), c.Record.Redact(all[i].File)
	}
	return all
}

// maxName bounds a test's name, in bytes.
const maxName = 200

// loadErrorPatterns matches messages about test files that do not compile or load.
var loadErrorPatterns = lazyregexp.New(`(?m)^(?:E +)?(?:\w+\.)*(?:ImportError|ModuleNotFoundError|SyntaxError|IndentationError)\b(?::|$)|error during collection|Cannot find module '|error\[E\d{4}\]|could not compile|` +
	`error TS\d+|cannot find symbol|COMPILATION ERROR|NameError: uninitialized constant|\bLoadError\b|\[build failed\]|\[setup failed\]|: undefined: |undefined reference to|error CS\d+|fatal error: .*: No such file`)

// failedTotals matches totals with failed tests. fileTotals matches totals of files and suites.
var failedTotals = lazyregexp.New(`(?im)^(?:[^\n]*[^\w\n])?(?:tests?:? +)?[1-9]\d* (?:tests? )?(?:failed|failing|failures?)\b|^FAILED \(.*failures=[1-9]`)

var fileTotals = lazyregexp.New(`(?im)^ *test (?:files|suites)\b.*$`)

// failsToLoad reports whether a run is red because something does not compile or load. The named
// tests decide, then the totals, then the messages.
func failsToLoad(results *testresults.Results, output string) bool {
	if slices.ContainsFunc(results.Failing, func(t testresults.Test) bool { return t.LoadError }) {
		return true
	}
	someTestRan := len(results.Failing) > 0 || results.AnyPassed()
	testTotals := fileTotals().ReplaceAllString(output, "")
	return !someTestRan && !failedTotals().MatchString(testTotals) && loadErrorPatterns().MatchString(output)
}

// noTestsPatterns matches messages that no test ran.
var noTestsPatterns = lazyregexp.New(`(?m)^(?:collected 0 items|no tests ran\b|No tests found|1\.\.0\b|Ran 0 tests|\s*0 passing\b|0 examples, 0 failures|No test files found|.*\[no tests to run\])`)

// someTestsPatterns matches signs that some tests ran.
var someTestsPatterns = lazyregexp.New(`(?m)^(?:ok  \t\S+\t(?:\(cached\)|[0-9.]+s)(?:\tcoverage: [0-9.]+% of statements)?$|--- |collected [1-9]|Ran [1-9]|ok \d|not ok \d|\s*[1-9]\d* passing)`)

// ranNoTests reports whether an output says that no test ran.
func ranNoTests(output string) bool {
	return noTestsPatterns().MatchString(output) && !someTestsPatterns().MatchString(output)
}
