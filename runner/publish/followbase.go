package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// maxRebases is how often a change follows a moving base. Further moves are left to the merge.
const maxRebases = 3

// followBase merges the change onto the newest commit of its base branch, each file three ways, and verifies
// the result. A change on a person's branch does not move.
func (f Forge) followBase(ctx context.Context, p *Proposal) error {
	if p.Task.Mode() == intake.Join {
		return nil
	}
	for range maxRebases {
		endStep := f.Record.BeginStep(record.PhasePublishing, "look at "+p.Base.Branch)
		current, err := LookUpBase(ctx, f.Repo, p.Base)
		endStep()
		if err == nil && p.Bundle != nil {
			err = p.Bundle.RequireBase(p.Base, current)
		}
		if err != nil || !current.hasMoved() {
			return err
		}
		if err := f.rebase(ctx, p, current); err != nil || p.Change.Empty() {
			return err
		}
		if err := p.Judge(ctx, p.Job, p.Change); err != nil {
			return err
		}
		if len(p.Verification.Rows) > 0 && p.Checks != nil {
			if p.Verification, err = p.Checks.VerifyOnNewBase(ctx, p.Verification, p.Change); err != nil {
				return err
			}
		}
	}
	return nil
}

// BaseBranch is the state of the base branch.
type BaseBranch struct {
	Tip      string         // newest commit; "" if the branch does not exist
	Relation forge.Relation // relation of Tip to the change's base
}

// hasMoved reports whether the branch has commits that the base lacks. A deleted branch counts as not moved:
// opening the pull request will fail.
func (b BaseBranch) hasMoved() bool {
	return b.Tip != "" && b.Relation != forge.Behind && b.Relation != forge.Identical
}

// LookUpBase returns the current state of base's branch on the forge.
func LookUpBase(ctx context.Context, repository forge.Repository, base gitops.Base) (BaseBranch, error) {
	commit, err := repository.Branch(ctx, base.Branch)
	switch {
	case err != nil:
		return BaseBranch{}, intake.ForgeFailure("The base branch "+base.Branch+" cannot be looked up", err)
	case commit == nil:
		return BaseBranch{}, nil
	case commit.SHA == base.SHA:
		return BaseBranch{Tip: commit.SHA, Relation: forge.Identical}, nil
	}
	relation, err := repository.Compare(ctx, base.SHA, commit.SHA)
	return BaseBranch{Tip: commit.SHA, Relation: relation},
		intake.ForgeFailure("The base branch "+base.Branch+" cannot be compared with what the change is made on", err)
}

// rebase merges the change onto the newest base commit, saves it, and makes that commit the proposal's base.
func (f Forge) rebase(ctx context.Context, p *Proposal, current BaseBranch) error {
	base, moved, err := f.mergeOnto(ctx, p, current)
	if err != nil {
		return err
	}
	if p.InCheckout == p.Change { // the change before the merge
		if err := f.Workspace.SaveOriginalPack(); err != nil {
			return err
		}
	}
	f.warnInPull(p, "base_moved", "%s moved from %s to %s during the run; the change was merged onto it.", base.Branch, clip.SHA(p.Base.SHA), clip.SHA(base.SHA))
	if p.movedFrom.SHA == "" {
		p.movedFrom = p.Base
	}
	p.Base, p.Change = base, moved
	if p.Bundle != nil {
		if p.Job, err = p.Bundle.JobOn(ctx, base); err != nil {
			return err
		}
	}
	if p.InCheckout == nil { // a closed transcript has the old pack's digest, so keep that pack
		patch, err := f.Workspace.WritePatch(ctx, moved, base.SHA)
		return cmp.Or(err, f.Record.Append(patch))
	}
	return f.Workspace.SaveChange(ctx, moved, base.SHA)
}

// mergeOnto returns the newest commit of the base branch, and the change merged onto it.
func (f Forge) mergeOnto(ctx context.Context, p *Proposal, current BaseBranch) (base gitops.Base, moved *gitops.ChangeSet, err error) {
	if err := f.Workspace.Fetch(ctx, f.Remote(), remote.FetchOptions{Commit: current.Tip, WithoutHistory: current.Relation != forge.Ahead}); err != nil {
		return base, nil, err
	}
	if base, err = f.Workspace.Checkout().BaseAt(p.Base.Branch, current.Tip); err != nil {
		return base, nil, workspace.CheckoutFailure(err)
	}
	move := f.Workspace.Checkout().Rebase
	if p.Lessons != nil {
		move = p.Lessons.Rebase
	}
	moved, err = move(ctx, p.Change, base)
	if conflict, ok := errors.AsType[*gitops.MergeError](err); ok {
		err = outcome.Stopf(outcome.Conflict, "base_moved",
			"%s moved from %s to %s during the run, and the change conflicts with it: %s; run again, or apply %s by hand.",
			base.Branch, clip.SHA(p.Base.SHA), clip.SHA(base.SHA), DescribeConflicts(conflict.Conflicts), f.Record.Join(record.PatchFile)).Because(conflict)
	}
	return base, moved, err
}

// maxConflictsShown is how many conflicting files a message names.
const maxConflictsShown = 10

// DescribeConflicts lists the conflicting files with the reasons, up to maxConflictsShown of them.
func DescribeConflicts(conflicts []gitops.MergeConflict) string {
	var files []string
	for _, c := range conflicts {
		files = append(files, fmt.Sprintf("%s (%s)", markdown.FileName(c.Path), c.Why))
	}
	return clip.Some(files, maxConflictsShown)
}

// unverifiedReason returns why the pull request is a draft if the checks ran only on an earlier base, or "".
func (p *Proposal) unverifiedReason() string {
	if len(p.Verification.Rows) == 0 || p.Checks != nil || p.movedFrom.SHA == "" {
		return ""
	}
	return fmt.Sprintf("verified on %s, not on %s: %s moved in between, and the change was merged onto it.",
		clip.SHA(p.movedFrom.SHA), clip.SHA(p.Base.SHA), p.Base.Branch)
}

// MergedChange is the change of an earlier pull request, merged onto the current base.
type MergedChange struct {
	Change    *gitops.ChangeSet
	Moved     bool // the base has moved since the change was made
	Conflicts []gitops.MergeConflict
	Labels    gitops.Labels // labels of the conflict marks in files
}

// Clean reports whether the change merged without conflicts.
func (m *MergedChange) Clean() bool { return len(m.Conflicts) == 0 }

// DescribeUnmerged returns a message for the agent about the conflicting files, or "".
func (m *MergedChange) DescribeUnmerged() string {
	if m.Clean() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The base moved on since the earlier change was made, and the two conflict. The checkout has the new base with the earlier change merged in, but for these files:\n\n")
	for i, c := range m.Conflicts {
		if i == maxConflictsForAgent {
			fmt.Fprintf(&b, "- and %d more\n", len(m.Conflicts)-i)
			break
		}
		content := "it is as on the new base, and the earlier change of it is left out"
		if c.Marked {
			content = "both sides stand in it, between marks"
		}
		fmt.Fprintf(&b, "- %q: %s (\"here\" is the earlier change); %s\n", c.Path, c.Why, content)
	}
	if slices.ContainsFunc(m.Conflicts, func(c gitops.MergeConflict) bool { return c.Marked }) {
		lines := m.Labels.Markers()
		fmt.Fprintf(&b, "\nBetween the marks stand, in this order: after %q the lines of the new base, after %q those that both began from, and after %q, up to %q, those of the earlier change.",
			lines[0], lines[1], lines[2], lines[3])
	}
	b.WriteString("\n\nFirst make each of these files what both sides meant, and leave no mark in it: a change with marks is not published.")
	return b.String()
}

// maxConflictsForAgent is how many conflicting files the message to the agent names.
const maxConflictsForAgent = 100

// EarlierChange returns the change of a run's pull request, merged onto the current base. It returns nil if the
// branch does not exist, and an error if a person has committed to it. withoutRegenerated removes parts of the
// change that the new run makes again.
func (f Forge) EarlierChange(
	ctx context.Context, from forge.Repository, pull *forge.PullRequest, base gitops.Base, withoutRegenerated func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error),
) (*MergedChange, error) {
	tip, err := intake.LookUpBranch(ctx, from, pull.Head)
	if err != nil || tip == nil {
		return nil, err
	}
	if !tip.MadeByRun() {
		return nil, foreignCommitError(pull.Head, pushedTip(tip))
	}
	before, change, err := f.fetchChange(ctx, tip, base)
	if err == nil {
		change, err = withoutRegenerated(ctx, change)
	}
	if err != nil {
		return nil, err
	}
	merged := &MergedChange{Change: change, Moved: before.SHA != base.SHA}
	if merged.Moved {
		merged.Labels = gitops.Labels{Ours: workspace.BaseName(base), Base: "before", Theirs: fmt.Sprintf("pull request #%d", pull.Number)}
		merged.Change, merged.Conflicts, err = f.Workspace.Checkout().RebaseMarked(ctx, change, base, merged.Labels)
	}
	return merged, err
}

// fetchChange returns a run's commit as a change, and the base that it was made on.
func (f Forge) fetchChange(ctx context.Context, tip *forge.Commit, base gitops.Base) (before gitops.Base, change *gitops.ChangeSet, err error) {
	checkout, made := f.Workspace.Checkout(), tip.Parents[0]
	isUnrelated := !checkout.HasCommit(made)
	for _, sha := range []string{made, tip.SHA} {
		if err := f.Workspace.Fetch(ctx, f.Remote(), remote.FetchOptions{Commit: sha, WithoutHistory: isUnrelated}); err != nil {
			return before, nil, err
		}
	}
	if before, err = checkout.BaseAt(base.Branch, made); err != nil {
		return before, nil, workspace.CheckoutFailure(err)
	}
	change, err = checkout.ChangeBetween(ctx, before, gitops.Tree(tip.Tree))
	return before, change, err
}
