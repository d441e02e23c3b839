package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

const statusVersion = 1

// Status is the progress of a campaign, for people and programs.
type Status struct {
	Version  int           `json:"version"`
	Campaign string        `json:"campaign"`
	Template string        `json:"template"`
	Plan     string        `json:"plan"`
	Ledger   string        `json:"ledger"` // SHA-256 of its last line
	Approved bool          `json:"approved"`
	Stopped  *Stopped      `json:"stopped"`
	Counts   map[Class]int `json:"counts"`
	Targets  []Row         `json:"targets"`
	Runs     int           `json:"runs"`
	Spent    Claim         `json:"spent"`
	Claimed  Claim         `json:"claimed"`
	Limits   Claim         `json:"limits"`             // of one run
	Claim    Claim         `json:"claim"`              // maximum usage of one run
	Unpriced string        `json:"unpriced,omitempty"` // why its cost is unknown
	Estimate *float64      `json:"estimate_usd"`       // for the waiting targets; null before the first run with a known cost
	Budget   spec.Spending `json:"budget"`
	SpentDay float64       `json:"spent_today_usd"` // of all campaigns of the ledger
	Ready    int           `json:"ready"`           // targets that may start now
	Wait     Wait          `json:"wait"`
	Server   string        `json:"-"` // address of the forge's pages; empty if unknown
}

// Class is a target's progress in one word.
type Class string

// The classes in order of display.
const (
	Waiting        Class = "waiting"
	Running        Class = "running"
	Opened         Class = "opened" // its pull request is open, and its last run ended well
	Merged         Class = "merged"
	ClosedUnmerged Class = "closed"    // its pull request was closed without a merge
	Committed      Class = "committed" // a change without a pull request
	NoChange       Class = "no_change"
	NotApplicable  Class = "not_applicable"
	Existing       Class = "existing" // an open pull request was there already
	Skipped        Class = "skipped"
	Red            Class = "red"
	Budget         Class = "budget"
	Refused        Class = "refused"
	NeedsPerson    Class = "needs_person"
	Failed         Class = "failed"
	Lacking        Class = "lacking" // it cannot run; see Lacks
)

// Classes returns all classes in order of display.
func Classes() []Class {
	return []Class{
		Waiting, Running, Opened, Merged, ClosedUnmerged, Committed, NoChange, NotApplicable, Existing, Skipped, Red, Budget, Refused, NeedsPerson, Failed, Lacking,
	}
}

// classOfOutcome maps outcomes to classes. Other outcomes are Failed.
var classOfOutcome = map[string]Class{
	string(outcome.Changed): Committed, string(outcome.NoChanges): NoChange, string(outcome.Skipped): Skipped, string(outcome.VerifyFailed): Red,
	string(outcome.BudgetExceeded): Budget, string(outcome.PolicyViolation): Refused, string(outcome.NeedsInput): NeedsPerson, string(outcome.Conflict): NeedsPerson,
}

// Reasons why a target needed no work.
const (
	ReasonNotApplicable = "not_applicable"
	reasonExisting      = "open_pull_request"
)

// classOfPull maps final states of pull requests to classes. An open one is missing, as it may be a failed run's draft.
var classOfPull = map[string]Class{"merged": Merged, "closed": ClosedUnmerged}

// Row is one target of a status.
type Row struct {
	Target
	Class    Class      `json:"class"`
	Attempts int        `json:"attempts"`
	Since    *time.Time `json:"since"` // start of the current run, or else end of the last one
	Report   *Report    `json:"report"`
	Pull     *PullState `json:"pull"`
	// Directory is the last attempt's run directory, or "" on another machine.
	Directory string `json:"run_directory,omitempty"`

	template string // of the last attempt
}

// mustRun reports whether the target still has to run with a template, and can.
func (e TargetState) mustRun(t Target, template string) bool {
	canRun := t.Blocker == "" && e.Claimed == nil
	hasRun := e.Last != nil && e.Last.Template == template
	return canRun && (e.Again || !hasRun)
}

// class returns the target's class. template is the job digest of the plan.
func (e TargetState) class(t Target, template string) Class {
	switch {
	case e.Claimed != nil:
		return Running
	case t.Blocker != "" && e.Last == nil:
		return Lacking
	case e.mustRun(t, template):
		return Waiting
	case classOfPull[e.Pull.State] != "":
		return classOfPull[e.Pull.State]
	case e.Pull.State == "open" && e.Last.endedWell():
		return Opened
	case e.Last.Reason == ReasonNotApplicable:
		return NotApplicable
	case e.Last.Reason == reasonExisting:
		return Existing
	case classOfOutcome[e.Last.Outcome] != "":
		return classOfOutcome[e.Last.Outcome]
	}
	return Failed
}

// isFailure reports whether the class counts as a failure. It does until the target runs again or a person
// settles its pull request.
func (c Class) isFailure() bool {
	return slices.Contains([]Class{Red, Budget, Refused, NeedsPerson, Failed}, c)
}

// HasFailure reports whether any target has failed, also in an earlier start. A target that cannot run again, as
// after its removal from the campaign file, does not count: nothing could settle it.
func (s *Status) HasFailure() bool {
	return slices.ContainsFunc(s.Targets, func(r Row) bool { return r.Blocker == "" && r.Class.isFailure() })
}

// SetDirectories sets the run directory of each target whose directory exists. folder is the campaign's
// folder.
func (s *Status) SetDirectories(folder string) {
	for i, r := range s.Targets {
		directory := RunDirectory(folder, Claimed{Target: r.Target, Template: r.template, Attempt: r.Attempts})
		if info, err := os.Stat(directory); err == nil && info.IsDir() && r.Attempts > 0 {
			s.Targets[i].Directory = directory
		}
	}
}

// RunDirectory returns the run directory of a claim. folder is the campaign's folder.
func RunDirectory(folder string, c Claimed) string {
	return filepath.Join(folder, "runs", fmt.Sprintf("%s-%s-%d", c.Target.Key, c.Template[:min(len(c.Template), 8)], c.Attempt))
}

// Status returns the progress of a campaign.
func (s *State) Status(now time.Time, c *spec.Campaign, p *Plan) Status {
	campaign := s.Of(c.Name)
	ready, wait := s.Next(now, c, p, campaign.FreeSlots(c))
	status := Status{
		Version: statusVersion, Campaign: c.Name, Template: p.Template, Plan: campaign.Plan, Ledger: s.head,
		Approved: c.Pilot == 0 || campaign.Approved, Stopped: campaign.Stopped,
		Counts: map[Class]int{}, Targets: []Row{}, Runs: campaign.Runs, Spent: campaign.Spent, Claimed: campaign.Reserved,
		Limits: p.Limits, Claim: p.Claim, Unpriced: p.Unpriced, Budget: c.Budget, SpentDay: s.SpentOn(now),
		Ready: len(ready), Wait: wait,
	}
	totalCost, runsWithCost := 0.0, 0
	for _, t := range p.Targets {
		e := campaign.TargetState(t.Key)
		row := Row{Target: t, Class: e.class(t, p.Template), Report: e.Last}
		switch {
		case e.Claimed != nil:
			row.Attempts, row.Since, row.template = e.Claimed.Attempt, &e.Since, e.Claimed.Template
		case e.Last != nil:
			row.Attempts, row.Since, row.template = e.Last.Attempt, &e.At, e.Last.Template
		}
		if e.Pull.Number > 0 {
			row.Pull = &e.Pull
		}
		if hasKnownCost := e.Last != nil && e.Last.RunID != "" && e.Last.CostUSD != nil; hasKnownCost {
			totalCost, runsWithCost = totalCost+*e.Last.CostUSD, runsWithCost+1
		}
		status.Counts[row.Class]++
		status.Targets = append(status.Targets, row)
	}
	if runsWithCost > 0 {
		meanCost := totalCost / float64(runsWithCost)
		status.Estimate = new(price.AddCosts(meanCost*float64(status.Counts[Waiting]), 0))
	}
	return status
}
