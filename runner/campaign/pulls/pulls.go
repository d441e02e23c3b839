// Package pulls owns a campaign's pull requests on the forge. It records their states. It closes pull requests
// without other people's work. It does not know how they were made.
package pulls

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Forge is the part of a forge's client that this package uses.
type Forge interface {
	Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error)
	Repository(name string) forge.Repository
}

// States of pull requests in the ledger.
const (
	open   = "open"
	merged = "merged"
	closed = "closed"
)

// PullOnForge is the state of a campaign's pull request on the forge.
type PullOnForge struct {
	Target campaign.Target
	Number int
	State  string // "" if the pull request is missing
	Head   string // last commit
	Branch string
}

// Refresh reads the states of the campaign's pull requests from the forge and records them in the ledger.
func Refresh(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan) error {
	if _, err := refresh(ctx, f, l, c, p); err != nil {
		return fmt.Errorf("ask for the states of pull requests: %w", err)
	}
	return nil
}

// refresh does the work of Refresh and returns the states. It skips merged pull requests, whose state is final. State is
// "" for one that was deleted, or that the token cannot see.
func refresh(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan) ([]PullOnForge, error) {
	var all []PullOnForge
	var questions []forge.Question
	for _, t := range p.Targets {
		e := l.Of(c.Name).TargetState(t.Key)
		if e.Pull.Number == 0 || e.Pull.State == merged {
			continue
		}
		seen := PullOnForge{Target: t, Number: e.Pull.Number}
		if e.Last != nil {
			seen.Branch = e.Last.Branch
		}
		all = append(all, seen)
		questions = append(questions, forge.Question{Repository: t.Repository, Pull: e.Pull.Number})
	}
	if len(questions) == 0 {
		return nil, nil
	}
	findings, err := f.Survey(ctx, questions)
	if err != nil {
		return nil, err
	}
	for i, found := range findings {
		all[i].State, all[i].Head = found.PullState, found.PullHead
		if found.PullState == "" { // the pull request or repository was deleted, or the token cannot see it
			continue
		}
		if err := l.RecordPull(c, all[i].Target.Key, all[i].Number, found.PullState); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Choose returns up to most targets that may start now, and why the rest waits. If the campaign skips targets with an
// open pull request, it books these as skipped and returns their reports. Without a forge (nil) there are none.
func Choose(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan, now time.Time, most int) (next []campaign.Target, wait campaign.Wait, skipped []campaign.Report, err error) {
	for {
		next, wait = l.Next(now, c, p, most)
		if f == nil || c.OnExisting != "skip" {
			return next, wait, nil, nil
		}
		booked, err := skipExisting(ctx, f, l, c, p, next)
		skipped = append(skipped, booked...)
		if err != nil || len(booked) == 0 {
			return next, wait, skipped, err
		}
	}
}

// skipExisting books targets with an open pull request as skipped, except those that a person wants to run
// again. It returns their reports.
func skipExisting(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan, next []campaign.Target) (skipped []campaign.Report, err error) {
	candidates := slices.DeleteFunc(slices.Clone(next), func(t campaign.Target) bool { return l.Of(c.Name).TargetState(t.Key).Again })
	if len(candidates) == 0 {
		return nil, nil
	}
	questions := make([]forge.Question, len(candidates))
	for i, t := range candidates {
		questions[i] = forge.Question{Repository: t.Repository, Head: t.Branch()}
	}
	findings, err := f.Survey(ctx, questions)
	if err != nil {
		return nil, fmt.Errorf("look for open pull requests: %w", err)
	}
	for i, finding := range findings {
		if finding.Open == "" {
			continue
		}
		report, err := l.Skip(c, p, candidates[i], "There is an open pull request already: "+finding.Open+".")
		if err != nil {
			return skipped, err
		}
		skipped = append(skipped, report)
	}
	return skipped, nil
}

// CloseResult is the result of closing a pull request. Its State is open if the pull request stays open.
type CloseResult struct {
	PullOnForge
	KeptReason string // why it is left alone
	Failure    error  // of closing it, or of deleting its branch
}

// Close closes the campaign's open pull requests. If the last commit is not from a run, a person has worked on the
// pull request, and it stays open. One that cannot be closed does not keep the others open. drop deletes a branch.
func Close(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan, drop func(ctx context.Context, repository, branch string) error) ([]CloseResult, error) {
	all, err := refresh(ctx, f, l, c, p)
	if err != nil {
		return nil, err
	}
	var ended []CloseResult
	for _, seen := range all {
		if seen.State != open {
			continue
		}
		result, e := CloseResult{PullOnForge: seen}, l.Of(c.Name).TargetState(seen.Target.Key)
		switch {
		case e.Claimed != nil:
			result.KeptReason = "a run of it is going on"
		case !slices.Contains(e.Commits, seen.Head):
			result.KeptReason = "its last commit is not one of a run"
		default:
			result.Failure = closePull(ctx, f, l, c, &result.PullOnForge, drop)
		}
		ended = append(ended, result)
		if result.Failure != nil && ctx.Err() != nil { // the others would fail for the same reason
			break
		}
	}
	return ended, nil
}

// closePull closes a pull request, records that, and deletes its branch.
func closePull(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, seen *PullOnForge, drop func(ctx context.Context, repository, branch string) error) error {
	if _, err := f.Repository(seen.Target.Repository).UpdatePullRequest(ctx, seen.Number, forge.PullRequestUpdate{State: new(closed)}); err != nil {
		return err
	}
	seen.State = closed
	if err := l.RecordPull(c, seen.Target.Key, seen.Number, closed); err != nil {
		return err
	}
	if seen.Branch == "" {
		return nil
	}
	if err := drop(ctx, seen.Target.Repository, seen.Branch); err != nil {
		return fmt.Errorf("pull request %s#%d is closed, and its branch is there still: %w", seen.Target.Repository, seen.Number, err)
	}
	return nil
}
