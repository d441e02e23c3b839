package transcript

import "testing"

func TestStatesOfRuns(t *testing.T) {
	for _, c := range []struct{ runs, state, deciding string }{
		{"", "", ""},
		{"g", "green", "1"},
		{"r", "red", "1"},
		{"t", "timeout", "1"},
		{"rg", "flaky", "1"},
		{"rr", "red", "1"},
		{"rt", "timeout", "2"},
		{"rrg", "flaky", "1"},
	} {
		var runs []CheckRun
		for i, r := range c.runs {
			runs = append(runs, CheckRun{State: map[rune]string{'g': "green", 'r': "red", 't': "timeout"}[r], Log: string(rune('1' + i))})
		}
		if state, log := StateOf(runs), Deciding(runs).Log; state != c.state || log != c.deciding {
			t.Errorf("%s: %s by run %s, want %s by %s", c.runs, state, log, c.state, c.deciding)
		}
	}
}
