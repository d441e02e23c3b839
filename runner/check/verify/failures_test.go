package verify

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestRecognisesLoadErrors(t *testing.T) {
	for output, want := range map[string]bool{
		"E   ImportError: cannot import name 'shout' from 'greet'": true,
		"error[E0425]: cannot find function `shout`":               true,
		"Cannot find module './shout' from 'greet.test.js'":        true,
		"a_test.go:3:2: undefined: Shout":                          true,
		"AssertionError: expected hello":                           false,
		"--- FAIL: TestLoadErrors (0.00s)":                         false,
		"":                                                         false,
	} {
		must.Same(t, want, loadErrorPatterns().MatchString(output), output)
	}
	for output, want := range map[string]bool{
		"collected 0 items\n":                              true,
		"ok  \tp\t0.1s [no tests to run]\n":                true,
		"ok  \tp\t0.1s [no tests to run]\nok  \tq\t0.1s\n": false,
		"No tests found, exiting with code 1\n":            true,
		"1..0 # skipped\n":                                 true,
		"all is well\n":                                    false,
	} {
		must.Same(t, want, ranNoTests(output), output)
	}
}

func TestRecognisesTestData(t *testing.T) {
	for path, want := range map[string]bool{
		"a/testdata/x.go": true, "tests/words.json": true, "tests/conftest.py": true, "spec/fixtures/user.rb": true,
		"a_test.go": false, "tests/run": false, "tests/test_a.py": false,
	} {
		if got, err := (Checks{Job: &job.Job{VerifyTests: job.TestPatterns()}}).isData(path); got != want || err != nil {
			t.Errorf("%s: %t, %v", path, got, err)
		}
	}
	own := Checks{Job: &job.Job{VerifyTests: []string{"testdata/*.txtar", "*.sql", "tests/**"}}}
	for path, want := range map[string]bool{"testdata/a.txtar": false, "a/b.sql": false, "tests/words.json": true} {
		if got, err := own.isData(path); got != want || err != nil {
			t.Errorf("%s: %t, %v", path, got, err)
		}
	}
}
