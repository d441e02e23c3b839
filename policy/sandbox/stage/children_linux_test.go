package stage

import (
	"strings"
	"testing"
)

func TestParsesStat(t *testing.T) {
	rest := strings.Repeat(" 0", 15) + " 4711 0\n"
	for stat, want := range map[string]process{
		"7 (sh) S 1 7 5" + rest:            {7, 1, 5, "sh", 'S', 4711},
		"7 (a) S 9 9 9 (b) T 1 7 5" + rest: {7, 1, 5, "a) S 9 9 9 (b", 'T', 4711}, // the name holds what looks like fields
		"7 (sh":                            {},
		"7 (sh) S 1 7 5":                   {},
		"":                                 {},
	} {
		p, err := parseStat([]byte(stat))
		if (err != nil) != (want.pid == 0) || err == nil && p != want {
			t.Errorf("%q: got %+v, %v", stat, p, err)
		}
	}
}
