package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
)

// Case is a pull request with what the forge says of its checks.
type Case struct {
	Pull *forge.PullRequest
	Head string // the commit that the checks ran on

	Red     []Red // that the pull request has to answer for
	OnBase  []Red // red on the base too
	Clashes bool  // the base moved into conflict with the change

	runs map[int64]*forge.WorkflowRun // that the red checks are jobs of
}

// Red is a check that is red on the head.
type Red struct {
	forge.Check
	Infrastructure string // why it looks like a failure of the machinery; empty where it does not
	Failed         []string
	Log            string // of the job, cut; empty where there is none
	NoLog          string // why not
}

// endings are the conclusions of checks that are red, with why one says more of the
// machinery than of the change.
var endings = map[string]string{
	"failure": "", "timed_out": "it timed out", "startup_failure": "it could not be started", "cancelled": "it was cancelled",
}

// mostRed is how many red checks are looked into; the rest is named alone.
const mostRed = 10

// Look reads what is red on the head of a pull request, and what of it is red on its base
// as well: there it is nothing that the change did.
func Look(ctx context.Context, in forge.Repository, pull *forge.PullRequest, head *gitops.CommitInfo) (*Case, error) {
	c := &Case{Pull: pull, Head: head.SHA, Clashes: pull.Mergeable == forge.MergeableDirty, runs: map[int64]*forge.WorkflowRun{}}
	checks, err := checksOf(ctx, in, head.SHA)
	if err != nil {
		return nil, err
	}
	var red []forge.Check
	for _, check := range checks {
		if isRed(check) {
			red = append(red, check)
		}
	}
	if len(red) == 0 {
		return c, nil
	}
	onBase, err := redOnBase(ctx, in, pull.Base, head.Parents[0], red)
	if err != nil {
		return nil, err
	}
	for _, check := range red {
		if onBase[keyOf(check)] {
			c.OnBase = append(c.OnBase, Red{Check: check})
			continue
		}
		c.Red = append(c.Red, Red{Check: check, Infrastructure: endings[check.Conclusion]})
	}
	return c, c.readLogs(ctx, in)
}

func isRed(c forge.Check) bool {
	_, red := endings[c.Conclusion]
	return red && c.Status == "completed"
}

// checkKey tells checks apart: those of two apps may have one name.
type checkKey struct{ app, name string }

func keyOf(c forge.Check) checkKey { return checkKey{c.App, c.Name} }

func checksOf(ctx context.Context, in forge.Repository, sha string) ([]forge.Check, error) {
	checks, err := in.Checks(ctx, sha)
	return checks, intake.ForgeFailure(fmt.Sprintf("The checks of commit %s cannot be read", gitops.Short(sha)), err)
}

// redOnBase says which of the checks failed on the base: on its newest commit or, where
// they did not end there yet, on the one that the change was made on.
func redOnBase(ctx context.Context, in forge.Repository, base, madeOn string, red []forge.Check) (map[checkKey]bool, error) {
	tip, err := intake.LookUpBranch(ctx, in, base)
	if err != nil {
		return nil, err
	}
	commits := []string{madeOn}
	if tip != nil && tip.SHA != madeOn {
		commits = []string{tip.SHA, madeOn}
	}
	said := map[checkKey]bool{}
	for _, sha := range commits {
		checks, err := checksOf(ctx, in, sha)
		if err != nil {
			return nil, err
		}
		for _, check := range checks {
			if _, known := said[keyOf(check)]; !known && check.Status == "completed" && decides(check) {
				said[keyOf(check)] = isRed(check)
			}
		}
		if !slices.ContainsFunc(red, func(c forge.Check) bool { _, known := said[keyOf(c)]; return !known }) {
			break
		}
	}
	return said, nil
}

// decides says whether a check of the base says anything of the code there: one that was
// cancelled, or did not run, does not.
func decides(c forge.Check) bool {
	return c.Conclusion == "success" || isRed(c) && endings[c.Conclusion] == "" || c.Conclusion == "timed_out"
}
