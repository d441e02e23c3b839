package transcript

import "slices"

// Inspection holds the findings in a change, besides those that the judge refuses. The last one counts.
// An empty one is recorded only after one with findings.
type Inspection struct {
	Silenced     []Silenced `json:"silenced,omitempty"`
	SilencedMore int        `json:"silenced_more,omitempty"` // beyond those
	Starts       []Start    `json:"starts,omitempty"`
	Claims       []string   `json:"claims,omitempty"` // what the summary names and neither the change, the calls nor the checks show
}

// Empty reports whether nothing was found.
func (i Inspection) Empty() bool { return len(i.Silenced)+len(i.Starts)+len(i.Claims) == 0 }

// RefusesSilenced reports whether a sign is enough for policy.silenced.
func (i Inspection) RefusesSilenced() bool {
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

// Start is a job of a workflow that the pushed branch starts, with rights, and that runs files of the change.
type Start struct {
	Workflow string        `json:"workflow"` // its path
	Job      string        `json:"job,omitempty"`
	On       []string      `json:"on,omitempty"` // events
	Files    []StartedFile `json:"files,omitempty"`
	Secrets  []string      `json:"secrets,omitempty"` // names
	Writes   []string      `json:"writes,omitempty"`  // permissions
	// DefaultRights says that the workflow names no permissions: the settings of the repository decide.
	DefaultRights bool   `json:"default_rights,omitempty"`
	Unknown       string `json:"unknown,omitempty"` // why the workflow cannot be read; empty for one that can
}

// StartedFile is a file that a workflow runs.
type StartedFile struct {
	Path string `json:"path"`
	Via  string `json:"via,omitempty"` // what starts it
}

// Rights reports whether the job has a secret or a permission to write for certain.
func (s Start) Rights() bool { return len(s.Secrets)+len(s.Writes) > 0 }

// Risky reports whether a job is enough for policy.workflow_risk.
func (i Inspection) Risky() bool { return slices.ContainsFunc(i.Starts, Start.Rights) }
