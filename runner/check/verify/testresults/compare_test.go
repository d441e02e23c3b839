package testresults

import (
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
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

func names(t *rapid.T, label string) []string {
	return rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "p.T/x", "p.T/y"}), rapid.ID[string]).Draw(t, label)
}

func TestComparesResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, now, passing := names(t, "was"), names(t, "now"), names(t, "passing")
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
	})
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
