package campaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Wait is why targets wait.
type Wait struct {
	Why   string    `json:"why"`            // a Wait constant; "" if nothing waits
	Until time.Time `json:"until,omitzero"` // when the reason ends by itself; zero if it does not
	Words string    `json:"words"`
}

// Reasons why targets wait.
const (
	WaitStopped  = "stopped"
	WaitPilot    = "pilot"
	WaitWindow   = "window"
	WaitPerHour  = "per_hour"
	WaitAtOnce   = "at_once"
	WaitRuns     = "budget.runs"
	WaitUSD      = "budget.usd"
	WaitUSDDay   = "budget.usd_per_day"
	WaitTokens   = "budget.tokens"
	WaitOpen     = "budget.open_prs"
	WaitOpenHere = "budget.open_prs_per_repository"
)

// endedWell reports whether the outcome has the exit status 0.
func (r Report) endedWell() bool {
	return outcome.Outcome(r.Outcome).ExitCode() == 0
}

// Next returns up to most targets that may start now, and why the rest waits. It claims nothing.
func (s *State) Next(now time.Time, c *spec.Campaign, p *Plan, most int) ([]Target, Wait) {
	r := &rollout{state: s, campaignState: s.Of(c.Name), campaign: c, plan: p, now: now}
	r.recentStarts = slices.DeleteFunc(slices.Clone(r.campaignState.starts), func(at time.Time) bool { return !at.After(now.Add(-time.Hour)) })
	return r.nextTargets(most)
}

// rollout chooses the targets of a plan to start, once.
type rollout struct {
	state         *State
	campaignState *CampaignState
	campaign      *spec.Campaign
	plan          *Plan
	now           time.Time

	recentStarts []time.Time // starts of the last hour
	chosen       []Target
	openPulls    int            // open pull requests, and those that running targets may open
	openPullsIn  map[string]int // the same, by repository
	wait         Wait
}

// nextTargets chooses up to most targets in the order of the plan, and returns why the others wait. Until a person
// approves the pilot, it chooses only from the first targets that can run.
func (r *rollout) nextTargets(most int) ([]Target, Wait) {
	r.countOpenPulls()
	if s := r.campaignState.Stopped; s != nil {
		if slices.ContainsFunc(r.plan.Targets, r.mustRun) {
			r.waitFor(WaitStopped, time.Time{}, "%d of the last %d runs ended with %s; look at them, then run agent-ci campaign resume", s.Failed, s.Of, s.Reason)
		}
		return nil, r.wait
	}
	position := 0 // among the targets that can run, from 1
	for _, t := range r.plan.Targets {
		if t.Blocker != "" {
			continue
		}
		position++
		if !r.mustRun(t) {
			continue
		}
		if r.campaign.Pilot > 0 && position > r.campaign.Pilot && !r.campaignState.Approved {
			r.waitFor(WaitPilot, time.Time{}, "look at the targets of the pilot first (%d), then run agent-ci campaign approve", r.campaign.Pilot)
			break
		}
		if r.limitReached(most) {
			break
		}
		if !r.pullLimitReached(t) {
			r.chooseTarget(t)
		}
	}
	return r.chosen, r.wait
}

// mustRun reports whether a target of the plan still has to run, and can.
func (r *rollout) mustRun(t Target) bool {
	return r.campaignState.TargetState(t.Key).mustRun(t, r.plan.Template)
}

// waitFor stores why the remaining targets wait. A later reason replaces an earlier one: a limit of the whole
// campaign comes after those of single targets. It returns true.
func (r *rollout) waitFor(why string, until time.Time, format string, args ...any) bool {
	r.wait = Wait{why, until, fmt.Sprintf(format, args...)}
	return true
}

// limitReached reports whether a limit of the whole campaign prevents any further start, and stores which
// one. most is how many targets may be chosen.
func (r *rollout) limitReached(most int) bool {
	c := r.campaign
	switch {
	case r.outsideWindows(), r.hourlyLimitReached():
		return true
	case len(r.chosen) >= most:
		return r.waitFor(WaitAtOnce, time.Time{}, "%d runs are in progress", len(r.campaignState.Unsettled())+len(r.chosen))
	case c.Budget.Runs > 0 && r.campaignState.Runs+len(r.chosen) >= c.Budget.Runs:
		return r.waitFor(WaitRuns, time.Time{}, "the %d runs of the budget are used up", c.Budget.Runs)
	}
	return r.budgetReached()
}

// budgetReached reports whether the budget lacks room for the claim of one more run: spent, claimed and chosen runs
// with one more would exceed it. It stores the reason. The sums are of dollars in the whole campaign, dollars of all
// campaigns on this day, or tokens.
func (r *rollout) budgetReached() bool {
	budget, campaign, claim := r.campaign.Budget, r.campaignState, r.plan.Claim
	runs := int64(len(r.chosen) + 1)
	usd := price.AddCosts(float64(runs)*claim.USD, 0)
	underWay := len(r.chosen) > 0 || campaign.Reserved != Claim{} // claims that may free room when they are settled
	switch {
	case budget.USD > 0 && price.AddCosts(price.AddCosts(campaign.Spent.USD, campaign.Reserved.USD), usd) > budget.USD:
		return r.waitFor(WaitUSD, time.Time{}, "a run may cost %.2f dollars, and of the budget of %.2f there are %.2f spent and %.2f claimed%s", claim.USD, budget.USD, campaign.Spent.USD, campaign.Reserved.USD, budgetAdvice(underWay, "usd", "cost_usd"))
	case budget.USDPerDay > 0 && price.AddCosts(price.AddCosts(r.state.SpentOn(r.now), r.state.reservedUSD), usd) > budget.USDPerDay:
		until, fits := nextMidnight(r.now), claim.USD <= budget.USDPerDay
		if !fits { // on no day
			until = time.Time{}
		}
		return r.waitFor(WaitUSDDay, until, "a run may cost %.2f dollars, and of the %.2f of this day there are %.2f spent and %.2f claimed%s", claim.USD, budget.USDPerDay, r.state.SpentOn(r.now), r.state.reservedUSD, budgetAdvice(fits, "usd_per_day", "cost_usd"))
	case budget.Tokens > 0 && campaign.Spent.Tokens+campaign.Reserved.Tokens+runs*claim.Tokens > budget.Tokens:
		return r.waitFor(WaitTokens, time.Time{}, "a run may use %d tokens, and of the budget of %d there are %d spent and %d claimed%s", claim.Tokens, budget.Tokens, campaign.Spent.Tokens, campaign.Reserved.Tokens, budgetAdvice(underWay, "tokens", "tokens"))
	}
	return false
}

// budgetAdvice returns what to do if waiting does not help, and else "".
func budgetAdvice(waitingHelps bool, budgetKey, limitKey string) string {
	if waitingHelps {
		return ""
	}
	return fmt.Sprintf("; raise budget.%s, or lower limits.%s or model.max_output_tokens", budgetKey, limitKey)
}

// nextMidnight returns the beginning of the next day (UTC).
func nextMidnight(now time.Time) time.Time {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// outsideWindows reports whether no run may start now, and stores when the next window begins.
func (r *rollout) outsideWindows() bool {
	windows := r.campaign.Rollout.ParsedWindows()
	if len(windows) == 0 || slices.ContainsFunc(windows, func(w spec.Window) bool { return w.Contains(r.now) }) {
		return false
	}
	return r.waitFor(WaitWindow, nextWindow(windows, r.now), "runs start in %s", strings.Join(r.campaign.Rollout.Windows, ", "))
}

// nextWindow returns the first minute in a window within 8 days, or the zero time.
func nextWindow(windows []spec.Window, now time.Time) time.Time {
	for at := now.Truncate(time.Minute).Add(time.Minute); at.Before(now.Add(8 * 24 * time.Hour)); at = at.Add(time.Minute) {
		if slices.ContainsFunc(windows, func(w spec.Window) bool { return w.Contains(at) }) {
			return at
		}
	}
	return time.Time{}
}

// hourlyLimitReached reports whether the limit of starts in an hour is reached.
func (r *rollout) hourlyLimitReached() bool {
	limit := r.campaign.Rollout.PerHour
	if limit == 0 || len(r.recentStarts)+len(r.chosen) < limit {
		return false
	}
	until := r.now.Add(time.Hour)
	if len(r.recentStarts) >= limit { // another run may start once the oldest of the last limit starts is an hour ago
		until = r.recentStarts[len(r.recentStarts)-limit].Add(time.Hour)
	}
	return r.waitFor(WaitPerHour, until, "%d runs started within an hour", len(r.recentStarts)+len(r.chosen))
}

// pullLimitReached reports whether a limit on open pull requests prevents the start of a target, and stores which one.
// A target with an open pull request always fits, as it opens no other.
func (r *rollout) pullLimitReached(t Target) bool {
	if r.campaignState.TargetState(t.Key).Pull.State == "open" {
		return false
	}
	budget := r.campaign.Budget
	switch {
	case budget.OpenPRs > 0 && r.openPulls >= budget.OpenPRs:
		return r.waitFor(WaitOpen, time.Time{}, "%d pull requests are open, or may be soon", r.openPulls)
	case budget.OpenPRsPerRepository > 0 && r.openPullsIn[t.Repository] >= budget.OpenPRsPerRepository:
		return r.waitFor(WaitOpenHere, time.Time{}, "%d pull requests are open in %s, or may be soon", r.openPullsIn[t.Repository], t.Repository)
	}
	return false
}

// chooseTarget adds a target to the chosen ones, and counts the pull request that it may open.
func (r *rollout) chooseTarget(t Target) {
	r.chosen = append(r.chosen, t)
	if r.campaignState.TargetState(t.Key).Pull.State != "open" {
		r.openPulls++
		r.openPullsIn[t.Repository]++
	}
}

// countOpenPulls counts open pull requests, and those that running targets may open.
func (r *rollout) countOpenPulls() {
	r.openPullsIn = map[string]int{}
	for _, t := range r.plan.Targets {
		if e := r.campaignState.TargetState(t.Key); e.Pull.State == "open" || e.Claimed != nil {
			r.openPulls++
			r.openPullsIn[t.Repository]++
		}
	}
}

// Claim reserves the maximum usage of each target. The targets may then start on host, which is "" for this machine.
// Only one wave may be on another host at a time.
func (l *Ledger) Claim(c *spec.Campaign, p *Plan, targets []Target, host string) (wave []Claimed, err error) {
	state := l.Of(c.Name)
	if out := state.UnsettledWave(); out != nil && host != "" {
		return nil, UnsettledWaveError(out)
	}
	var events []any
	for _, t := range targets {
		e, attempt := state.TargetState(t.Key), 1
		if e.Claimed != nil {
			return nil, fmt.Errorf("claim %s: it is claimed already", t.Key)
		}
		if e.Last != nil && e.Last.Template == p.Template {
			attempt = e.Last.Attempt + 1
		}
		claimed := Claimed{c.Name, t, p.Template, state.Waves + 1, attempt, host, p.Claim}
		wave, events = append(wave, claimed), append(events, claimed)
	}
	return wave, l.appendEvents(TypeClaimed, events...)
}

// Settle books a run's report, unless it was booked already. It stops the campaign if stop_if says so.
func (l *Ledger) Settle(c *spec.Campaign, r Report) (settled bool, err error) {
	if claimed := l.Of(c.Name).TargetState(r.Target).Claimed; claimed == nil || !r.isReportOf(*claimed) {
		return false, nil
	}
	if err := l.appendEvents(TypeSettled, Settled{c.Name, r}); err != nil {
		return false, err
	}
	return true, l.stopIfDue(c)
}

// Skip books a target with an open pull request as skipped, without a run and free of charge. It returns the report.
func (l *Ledger) Skip(c *spec.Campaign, p *Plan, t Target, message string) (Report, error) {
	r := Report{Target: t.Key, Template: p.Template, Outcome: string(outcome.Skipped), Reason: reasonExisting, Message: message}.Unpaid()
	if e := l.Of(c.Name).TargetState(t.Key); e.Claimed != nil {
		return r, fmt.Errorf("pass %s: it is claimed", t.Key)
	}
	return r, l.appendEvents(TypeSettled, Settled{c.Name, r})
}

// stopIfDue stops the campaign if enough of the last runs failed for the same reason (stop_if.same_reason).
func (l *Ledger) stopIfDue(c *spec.Campaign) error {
	limit, window := c.StopIf.Counts()
	s := l.Of(c.Name)
	if limit == 0 || s.Stopped != nil {
		return nil
	}
	failed := map[string]int{}
	for _, r := range s.recentReports[max(0, len(s.recentReports)-window):] {
		if r.endedWell() {
			continue
		}
		reason := r.Outcome + "/" + r.Reason
		if failed[reason]++; failed[reason] >= limit {
			return l.appendEvents(TypeStopped, Stopped{c.Name, reason, failed[reason], min(window, len(s.recentReports))})
		}
	}
	return nil
}

// Approve permits the targets after the pilot to run.
func (l *Ledger) Approve(c *spec.Campaign, p *Plan, by string) error {
	return l.appendEvents(TypeApproved, Approved{c.Name, p.Template, by})
}

// Resume continues a stopped campaign. It repeats the failed targets that match filter: an outcome, a reason, or
// OUTCOME/REASON; "" matches all. It returns their keys.
func (l *Ledger) Resume(c *spec.Campaign, p *Plan, filter, by string) (repeated []string, err error) {
	for _, t := range p.Targets {
		e := l.Of(c.Name).TargetState(t.Key)
		if t.Blocker != "" || e.Claimed != nil || e.Last == nil || e.Last.endedWell() || !e.Last.matchesReason(filter) {
			continue
		}
		repeated = append(repeated, t.Key)
	}
	return repeated, l.appendEvents(TypeResumed, Resumed{c.Name, by, repeated})
}

// matchesReason reports whether the run ended with filter: an outcome, a reason, or OUTCOME/REASON. ""
// matches all.
func (r Report) matchesReason(reason string) bool {
	return reason == "" || slices.Contains([]string{r.Reason, r.Outcome, r.Outcome + "/" + r.Reason}, reason)
}

// RecordPull records a pull request's state, if it changed.
func (l *Ledger) RecordPull(c *spec.Campaign, key string, number int, state string) error {
	if recorded := l.Of(c.Name).TargetState(key).Pull; recorded.Number == number && recorded.State == state {
		return nil
	}
	return l.appendEvents(TypePull, PullState{c.Name, key, number, state})
}
