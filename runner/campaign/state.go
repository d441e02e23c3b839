package campaign

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// State is the state that a ledger's events add up to.
type State struct {
	campaigns   map[string]*CampaignState
	spentOn     map[string]float64 // US dollars by day (UTC), of all campaigns
	reservedUSD float64            // US dollars reserved for unsettled runs of all campaigns
	head        string             // digest of the ledger's last line
}

func newState() *State {
	return &State{campaigns: map[string]*CampaignState{}, spentOn: map[string]float64{}}
}

// CampaignState is the state of one campaign.
type CampaignState struct {
	Plan     string // SHA-256 of plan.json; "" without a plan
	Template string
	Approved bool // the targets after the pilot may run, with this template
	Stopped  *Stopped
	Waves    int
	Runs     int
	Spent    Claim // used by settled runs
	Reserved Claim // reserved for unsettled runs

	targets       map[string]*TargetState
	recentReports []Report // reports since the job changed or the campaign was resumed
	starts        []time.Time
	handedOut     []Claimed // the last wave given to another host
}

// TargetState is the state of one target.
type TargetState struct {
	Claimed *Claimed  // claim of the unsettled run; nil for none
	Since   time.Time // of the claim
	Last    *Report   // of the last settled run
	At      time.Time // of Last
	Pull    PullState
	Again   bool     // a person wants it to run again
	Commits []string // made by its runs
}

// Of returns a campaign's state, or the zero value for an unknown one.
func (s *State) Of(campaign string) *CampaignState {
	if c := s.campaigns[campaign]; c != nil {
		return c
	}
	return &CampaignState{}
}

// SpentOn returns what all campaigns spent on a day (UTC), in US dollars.
func (s *State) SpentOn(day time.Time) float64 { return s.spentOn[dayOf(day)] }

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// TargetState returns a target's state, or the zero value before its first start.
func (c *CampaignState) TargetState(key string) TargetState {
	if e := c.targets[key]; e != nil {
		return *e
	}
	return TargetState{}
}

// Unsettled returns the claims that are not settled, sorted by target key.
func (c *CampaignState) Unsettled() (all []Claimed) {
	for _, e := range c.targets {
		if e.Claimed != nil {
			all = append(all, *e.Claimed)
		}
	}
	slices.SortFunc(all, func(a, b Claimed) int { return strings.Compare(a.Target.Key, b.Target.Key) })
	return all
}

// FreeSlots returns how many more runs may be in progress.
func (c *CampaignState) FreeSlots(of *spec.Campaign) int {
	return max(of.Rollout.AtOnce-len(c.Unsettled()), 0)
}

// readEvents applies the events of a ledger. A killed writer may leave an incomplete last line, which is ignored.
func (s *State) readEvents(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	for event, err := range eventlog.Read(f) {
		if _, torn := err.(*eventlog.TornError); torn {
			return nil
		}
		if err == nil {
			err = s.apply(event)
		}
		if err != nil {
			return fmt.Errorf("read the ledger %s: %w", path, err)
		}
	}
	return nil
}

// eventHandlers maps event types to changes of the state. Events of other types are ignored.
var eventHandlers = map[transcript.Type]func(*State, eventlog.Event) error{
	TypePlanned:  decodeAndApply(applyPlanned),
	TypeApproved: decodeAndApply(applyApproved),
	TypeResumed:  decodeAndApply(applyResumed),
	TypeStopped:  decodeAndApply(applyStopped),
	TypeClaimed:  decodeAndApply(applyClaimed),
	TypeSettled:  decodeAndApply(applySettled),
	TypePull:     decodeAndApply(applyPull),
}

// decodeAndApply returns an event handler that decodes the event's data and calls apply. It rejects target
// names that could lead outside of the ledger's folder.
func decodeAndApply[T any](apply func(*State, time.Time, T)) func(*State, eventlog.Event) error {
	return func(s *State, e eventlog.Event) error {
		var data T
		if err := plainjson.Unmarshal(e.Data, &data); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if run, isRun := any(data).(interface {
			identity() (target, template string)
		}); isRun {
			if err := checkNames(run.identity()); err != nil {
				return fmt.Errorf("event %d: %w", e.Seq, err)
			}
		}
		apply(s, e.Time, data)
		return nil
	}
}

// apply changes the state by an event of the ledger. It ignores events of unknown types.
func (s *State) apply(e eventlog.Event) error {
	if take := eventHandlers[e.Type]; take != nil {
		return take(s, e)
	}
	return nil
}

// campaignEntry returns a campaign's state for a change. It adds an empty one for a new campaign.
func (s *State) campaignEntry(campaign string) *CampaignState {
	if s.campaigns[campaign] == nil {
		s.campaigns[campaign] = &CampaignState{targets: map[string]*TargetState{}}
	}
	return s.campaigns[campaign]
}

// targetEntry returns a target's state for a change. It adds an empty one for a new target.
func (c *CampaignState) targetEntry(key string) *TargetState {
	if c.targets[key] == nil {
		c.targets[key] = new(TargetState)
	}
	return c.targets[key]
}

// applyPlanned stores the plan in effect. A new job starts without approval, stop and recent reports.
func applyPlanned(s *State, _ time.Time, d Planned) {
	c := s.campaignEntry(d.Campaign)
	if c.Template != d.Template {
		c.Approved, c.Stopped, c.recentReports = false, nil, nil
	}
	c.Plan, c.Template = d.Plan, d.Template
}

func applyApproved(s *State, _ time.Time, d Approved) {
	if c := s.campaignEntry(d.Campaign); c.Template == d.Template {
		c.Approved = true
	}
}

// applyResumed ends a stop, and marks the targets to run again.
func applyResumed(s *State, _ time.Time, d Resumed) {
	c := s.campaignEntry(d.Campaign)
	c.Stopped, c.recentReports = nil, nil
	for _, key := range d.Again {
		c.targetEntry(key).Again = true
	}
}

func applyStopped(s *State, _ time.Time, d Stopped) { s.campaignEntry(d.Campaign).Stopped = &d }

// applyClaimed reserves a run's claim, until its report is settled.
func applyClaimed(s *State, at time.Time, d Claimed) {
	c := s.campaignEntry(d.Campaign)
	e := c.targetEntry(d.Target.Key)
	e.Claimed, e.Since, e.Again = &d, at, false
	if d.Host != "" {
		if len(c.handedOut) > 0 && c.handedOut[0].Wave != d.Wave {
			c.handedOut = nil
		}
		c.handedOut = append(c.handedOut, d)
	}
	c.Runs++
	c.Waves = max(c.Waves, d.Wave)
	c.starts = append(c.starts, at)
	c.Reserved.addTimes(1, d.Claim)
	s.reservedUSD = price.AddCosts(s.reservedUSD, d.USD)
}

// applySettled ends a run: its usage replaces the reserved claim. Usage that the report lacks counts as the
// claim.
func applySettled(s *State, at time.Time, d Settled) {
	c := s.campaignEntry(d.Campaign)
	e := c.targetEntry(d.Target)
	used := Claim{}
	if e.Claimed != nil {
		used = e.Claimed.Claim
		c.Reserved.addTimes(-1, used)
		s.reservedUSD = price.AddCosts(s.reservedUSD, -used.USD)
	}
	if d.CostUSD != nil {
		used.USD = *d.CostUSD
	}
	if d.Tokens != nil {
		used.Tokens = *d.Tokens
	}
	c.Spent.addTimes(1, used)
	s.spentOn[dayOf(at)] = price.AddCosts(s.spentOn[dayOf(at)], used.USD)
	e.Claimed, e.Again, e.Last, e.At = nil, false, &d.Report, at
	if d.Commit != "" {
		e.Commits = append(e.Commits, d.Commit)
	}
	if d.PullRequest.Number > 0 {
		e.Pull = PullState{d.Campaign, d.Target, d.PullRequest.Number, "open"}
	}
	c.recentReports = append(c.recentReports, d.Report)
}

func applyPull(s *State, _ time.Time, d PullState) {
	s.campaignEntry(d.Campaign).targetEntry(d.Target).Pull = d
}

// addTimes adds factor times other to c. The factor -1 subtracts.
func (c *Claim) addTimes(factor int64, other Claim) {
	c.USD, c.Tokens = price.AddCosts(c.USD, float64(factor)*other.USD), c.Tokens+factor*other.Tokens
}
