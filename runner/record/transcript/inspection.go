package transcript

import "slices"

// Inspection has the findings in a change that do not refuse it. The last event counts. One without
// findings is recorded only to replace earlier findings.
type Inspection struct {
	SilencedSigns     []SilencedSign  `json:"silenced,omitempty"`
	MoreSilencedSigns int             `json:"silenced_more,omitempty"` // number of signs that are not listed, without weak ones
	WorkflowStarts    []WorkflowStart `json:"starts,omitempty"`
	Claims            []string        `json:"claims,omitempty"` // claims of the summary without evidence in the change, the calls or the checks
}

// Empty reports whether there are no findings.
func (i Inspection) Empty() bool {
	return len(i.SilencedSigns)+len(i.WorkflowStarts)+len(i.Claims) == 0
}

// RefusesSilenced reports whether the signs are enough for policy.silenced to refuse the change.
func (i Inspection) RefusesSilenced() bool {
	return i.MoreSilencedSigns > 0 || slices.ContainsFunc(i.SilencedSigns, func(s SilencedSign) bool { return !s.Weak })
}

// SilencedSign is a sign that a check may pass without testing: a line of the change, or the behaviour
// of a check.
type SilencedSign struct {
	Pattern string `json:"pattern"`           // id of the pattern
	File    string `json:"file,omitempty"`    // empty for the behaviour of a check
	Line    int    `json:"line,omitempty"`    // with the change; on the base if Removed is set
	Removed bool   `json:"removed,omitempty"` // the change removes the line
	Text    string `json:"text,omitempty"`    // the line, shortened
	Check   string `json:"check,omitempty"`   // the check that behaved so
	Weak    bool   `json:"weak,omitempty"`    // not enough to refuse or change what is published
	Reason  string `json:"why"`
}

// WorkflowStart is a job with rights that the pushed branch starts and that runs files of the change.
type WorkflowStart struct {
	Workflow string        `json:"workflow"` // its path
	Job      string        `json:"job,omitempty"`
	Events   []string      `json:"on,omitempty"` // events
	Files    []StartedFile `json:"files,omitempty"`
	Secrets  []string      `json:"secrets,omitempty"` // names
	Writes   []string      `json:"writes,omitempty"`  // permissions
	// DefaultRights means that the workflow names no permissions, so the repository's settings
	// decide.
	DefaultRights bool   `json:"default_rights,omitempty"`
	Unknown       string `json:"unknown,omitempty"` // why the workflow can't be read; empty if it can
}

// StartedFile is a file that a workflow runs.
type StartedFile struct {
	Path string `json:"path"`
	Via  string `json:"via,omitempty"` // what starts it
}

// HasRights reports whether the job certainly has a secret or a write permission.
func (s WorkflowStart) HasRights() bool { return len(s.Secrets)+len(s.Writes) > 0 }

// Risky reports whether the findings are enough for policy.workflow_risk to refuse the change.
func (i Inspection) Risky() bool {
	return slices.ContainsFunc(i.WorkflowStarts, WorkflowStart.HasRights)
}
