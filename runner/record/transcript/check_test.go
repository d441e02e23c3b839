package transcript

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestDerivesStateFromRuns(t *testing.T) {
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
		if state, log := CheckState(runs), DecidingRun(runs).Log; state != c.state || log != c.deciding {
			t.Errorf("%s: %s by run %s, want %s by %s", c.runs, state, log, c.state, c.deciding)
		}
	}
}

func TestReadableOutputOmitsModelHeaders(t *testing.T) {
	for output, want := range map[string]string{
		"Chunk ID: 0a1b2c\nWall time: 0.1000 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nok\n": "Wall time: 0.1000 seconds\nProcess exited with code 0\nOutput:\nok\n",
		"Chunk ID: 0a1b2c\nOriginal token count: 3\nOutput:\nChunk ID: 0a1b2c\n":                                          "Output:\nChunk ID: 0a1b2c\n",
		"a\nChunk ID: 0a1b2c\nOriginal token count: 3\n":                                                                  "a\nChunk ID: 0a1b2c\nOriginal token count: 3\n",
		"Chunk ID: of mine\nOriginal token count: 3\n":                                                                    "Chunk ID: of mine\nOriginal token count: 3\n",
		"": "",
	} {
		must.Same(t, want, ReadableOutput(output), output)
	}
}
