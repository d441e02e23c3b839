package testresults

import (
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// resultsOf are results in which those fail, and these pass.
func resultsOf(failing, passing []string) *Results {
	r := &Results{}
	for _, name := range failing {
		r.addFailure(Test{Name: name})
	}
	for _, name := range passing {
		r.addPassed(name)
	}
	return r
}

func beforeOf(failing []string) BaseResults {
	return BaseResults{Green: len(failing) == 0, Failing: failing, Complete: true}
}

// choices are all of some names, each in two orders.
func choices() (all [][]string) {
	names := []string{"b", "p.T/y", "a", "p.T/x"}
	for chosen := range 1 << len(names) {
		var some []string
		for i, name := range names {
			if chosen>>i&1 == 1 {
				some = append(some, name)
			}
		}
		other := slices.Clone(some)
		slices.Reverse(other)
		all = append(all, some, other)
	}
	return all
}

func TestComparesResults(t *testing.T) {
	compare := func(was, now, passing []string) {
		got := Compare(beforeOf(was), resultsOf(now, passing), false)
		for _, name := range now {
			if slices.Contains(got.New, name) == slices.Contains(was, name) {
				t.Errorf("%s fails now, new: %v", name, got.New)
			}
			must.Same(t, false, slices.Contains(got.Fixed, name), name, "fails and is mended")
		}
		for _, name := range was {
			must.Same(t, slices.Contains(passing, name) && !slices.Contains(now, name), slices.Contains(got.Fixed, name), name, "failed, mended", got.Fixed)
		}
		if len(got.New) > len(now) || len(got.Fixed) > len(was) {
			t.Errorf("of %d and %d came %v", len(was), len(now), got)
		}
	}
	all := choices()
	for _, was := range all {
		for _, now := range all {
			for _, passing := range all {
				compare(was, now, passing)
				if t.Failed() {
					t.Fatalf("before %q failed, now %q fail and %q pass", was, now, passing)
				}
			}
		}
	}
}

func TestClaimsNothingUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		before BaseResults
		now    *Results
		green  bool
		want   Change
	}{
		"a base that told nothing":     {BaseResults{}, resultsOf([]string{"a"}, nil), false, Change{}},
		"a base with more than listed": {BaseResults{Failing: []string{"b"}}, resultsOf([]string{"a"}, []string{"b"}), false, Change{Fixed: []string{"b"}}},
		"a green base":                 {BaseResults{Green: true, Complete: true}, resultsOf([]string{"a"}, nil), false, Change{New: []string{"a"}}},
		"a test that did not run":      {beforeOf([]string{"a"}), resultsOf([]string{"b"}, nil), false, Change{New: []string{"b"}}},
		"a silent green check":         {beforeOf([]string{"a"}), &Results{}, true, Change{Silent: []string{"a"}}},
		"a silent red check":           {beforeOf([]string{"a"}), &Results{}, false, Change{}},
	} {
		must.Same(t, c.want, Compare(c.before, c.now, c.green), name)
	}
}
