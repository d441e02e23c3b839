package campaign

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/policy/store"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record"
)

// Folder returns a campaign's folder in a ledger.
func Folder(dir, campaign string) string { return filepath.Join(dir, campaign) }

// replaceFile writes a file into the ledger's folder atomically, and syncs it to disk.
func (l *Ledger) replaceFile(name string, raw []byte) error {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return store.Replace(root, name, "new", store.Text(raw))
}

// ReadPlan reads the plan in effect. It returns an error if plan.json is not the plan that the ledger names.
func ReadPlan(dir, campaign string, s *State) (*Plan, error) {
	if s.Of(campaign).Plan == "" {
		return nil, fmt.Errorf("%s has no plan in the ledger of %s; make one with agent-ci campaign plan, or name another ledger with --ledger", campaign, dir)
	}
	raw, err := os.ReadFile(filepath.Join(Folder(dir, campaign), PlanFile))
	if err != nil {
		return nil, fmt.Errorf("read the plan of %s: %w; make one with agent-ci campaign plan", campaign, err)
	}
	if record.DigestOf(raw) != s.Of(campaign).Plan {
		return nil, fmt.Errorf("the plan of %s is not the one of the ledger; make one with agent-ci campaign plan", campaign)
	}
	p := new(Plan)
	if err := plainjson.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("read the plan of %s: %w", campaign, err)
	}
	if p.Version != PlanVersion {
		return nil, fmt.Errorf("the plan of %s has version %d, and this agent-ci reads %d; make one with agent-ci campaign plan", campaign, p.Version, PlanVersion)
	}
	for _, t := range p.Targets {
		if err := checkNames(t.Key, p.Template); err != nil {
			return nil, fmt.Errorf("read the plan of %s: %w", campaign, err)
		}
	}
	return p, nil
}

// CarryOver adds targets of the earlier plan that had runs and that p lacks. Their results stay visible, but they do
// not run again.
func (p *Plan) CarryOver(earlier *Plan, s *State) {
	if earlier == nil {
		return
	}
	state := s.Of(p.Campaign)
	planned := map[string]bool{}
	for _, t := range p.Targets {
		planned[t.Key] = true
	}
	for _, t := range earlier.Targets {
		if e := state.TargetState(t.Key); !planned[t.Key] && (e.Claimed != nil || e.Last != nil) {
			t.Blocker = "the campaign file names it no more"
			p.Targets = append(p.Targets, t)
		}
	}
}

// WhyUnclaimable returns why no run of the plan can be claimed, or "". That is so if the budget is in
// dollars and the cost of a run is unknown.
func (p *Plan) WhyUnclaimable(b spec.Spending) string {
	if p.Unpriced != "" && (b.USD > 0 || b.USDPerDay > 0) {
		return p.Unpriced
	}
	return ""
}
