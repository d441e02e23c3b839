// Package pulls owns a campaign's pull requests on the forge: it records their states, and closes
// those without anybody else's work. It does not know their origin.
package pulls

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Forge is the used part of a forge.
type Forge interface {
	Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error)
	Repository(name string) forge.Repository
}

// States of pull requests, as the ledger has them.
const (
	open   = "open"
	merged = "merged"
	closed = "closed"
)

// Seen is a campaign's pull request on the forge.
type Seen struct {
	Target campaign.Target
	Number int
	State  string // empty where it is not there
	Head   string // commit
	Branch string
}

// Refresh requests the states of the campaign's pull requests, a hundred at a time, and records
// them. It skips merged ones, which stay so.
func Refresh(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan) ([]Seen, error) {
	var all []Seen
	var questions []forge.Question
	for _, t := range p.Targets {
		e := l.Of(c.Name).Entry(t.Key)
		if e.Pull.Number == 0 || e.Pull.State == merged {
			continue
		}
		seen := Seen{Target: t, Number: e.Pull.Number}
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
		if found.PullState == "" { // it, or its repository, is gone or out of sight
			continue
		}
		if err := l.RecordPull(c, all[i].Target.Key, all[i].Number, found.PullState); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Existing returns a function that finds the addresses of targets' open pull requests, by key. It returns nil if
// these are no reason to skip a target.
func Existing(f Forge, c *spec.Campaign) func(context.Context, []campaign.Target) (map[string]string, error) {
	if c.OnExisting != "skip" {
		return nil
	}
	return func(ctx context.Context, targets []campaign.Target) (map[string]string, error) {
		questions := make([]forge.Question, len(targets))
		for i, t := range targets {
			questions[i] = forge.Question{Repository: t.Repository, Head: t.Branch()}
		}
		findings, err := f.Survey(ctx, questions)
		if err != nil {
			return nil, err
		}
		found := map[string]string{}
		for i, finding := range findings {
			if finding.Open != nil {
				found[targets[i].Key] = finding.Open.URL
			}
		}
		return found, nil
	}
}

// Ended is the result of closing a pull request.
type Ended struct {
	Seen
	Left string // why it was left open, in words; empty where it was closed
}

// Close closes the campaign's open pull requests. One whose last commit is not a run's has
// somebody's work and stays open. drop deletes branches.
func Close(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, p *campaign.Plan, drop func(ctx context.Context, repository, branch string) error) ([]Ended, error) {
	all, err := Refresh(ctx, f, l, c, p)
	if err != nil {
		return nil, err
	}
	var ended []Ended
	for _, seen := range all {
		if seen.State != open {
			continue
		}
		e := l.Of(c.Name).Entry(seen.Target.Key)
		switch {
		case e.Claimed != nil:
			ended = append(ended, Ended{seen, "a run of it is going on"})
			continue
		case !slices.Contains(e.Commits, seen.Head):
			ended = append(ended, Ended{seen, "its last commit is not one of a run"})
			continue
		}
		if err := closeOne(ctx, f, l, c, seen, drop); err != nil {
			return ended, err
		}
		ended = append(ended, Ended{Seen: seen})
	}
	return ended, nil
}

func closeOne(ctx context.Context, f Forge, l *campaign.Ledger, c *spec.Campaign, seen Seen, drop func(ctx context.Context, repository, branch string) error) error {
	state := closed
	if _, err := f.Repository(seen.Target.Repository).UpdatePullRequest(ctx, seen.Number, forge.PullRequestUpdate{State: &state}); err != nil {
		return err
	}
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
