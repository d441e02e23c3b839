package stage

import "testing"

func TestParentAndSession(t *testing.T) {
	for _, test := range []struct {
		stat            string
		parent, session int
	}{
		{"7 (sh) S 1 7 5 0 -1", 1, 5},
		{"7 (a) S 9 9 9 (b) S 1 7 5 0 -1", 1, 5}, // the name holds what looks like fields
		{"7 (sh", 0, 0},
		{"", 0, 0},
	} {
		if parent, session := parentAndSession([]byte(test.stat)); parent != test.parent || session != test.session {
			t.Errorf("%q: got %d and %d", test.stat, parent, session)
		}
	}
}
