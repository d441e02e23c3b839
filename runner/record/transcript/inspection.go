package transcript

import "slices"

// Inspection is what agent-ci found in a change beside what the judge refuses. The last one counts. It is
// recorded where something was found, and where nothing is left of what was found before.
type Inspection struct {
	Silenced     []Silenced `json:"silenced,omitempty"`
	SilencedMore int        `json:"silenced_more,omitempty"` // beyond those
}

// Empty reports whether nothing was found.
func (i Inspection) Empty() bool { return len(i.Silenced) == 0 }

// Silences reports whether a sign is enough for policy.silenced.
func (i Inspection) Silences() bool {
	return i.SilencedMore > 0 || slices.ContainsFunc(i.Silenced, func(s Silenced) bool { return !s.Weak })
}

// Silenced is a sign that a check may pass without testing: a line of the change, or what a check did.
type Silenced struct {
	Pattern string `json:"pattern"`           // its id
	File    string `json:"file,omitempty"`    // empty for what a check did
	Line    int    `json:"line,omitempty"`    // of the file: with the change, or of the base where Removed is set
	Removed bool   `json:"removed,omitempty"` // the change removes the line
	Text    string `json:"text,omitempty"`    // the line, shortened
	Check   string `json:"check,omitempty"`   // that did it
	Weak    bool   `json:"weak,omitempty"`    // it alone changes nothing of what is published
	Why     string `json:"why"`
}
