package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// mostRebases is how often a change follows a base that moves again while it is
// verified there. A base that moves on is the merge's matter then.
const mostRebases = 3

// drift is what became of a change whose base moved.
type drift struct {
	inCheckout *gitops.ChangeSet // as the work tree holds it; nil while the base has not moved
	verifiedOn string            // commit that the checks ran on, where that is not the base any more
}

// followBase puts the change on the newest commit of its base branch, each file
// merged three ways, and verifies it there. What goes on top of a person's
// commits stays there.
func (r *run) followBase(ctx context.Context) error {
	if r.publishMode() != publishGitHub || r.joins() {
		return nil
	}
	for range mostRebases {
		tip, relation, err := r.movedBase(ctx)
		if err != nil || tip == "" {
			return err
		}
		old := r.base
		if err := r.rebase(ctx, tip, relation); err != nil || r.changes.Empty() {
			return err
		}
		if err := r.judgeChanges(ctx); err != nil {
			return err
		}
		if err := r.verifyOnNewBase(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// movedBase is the newest commit of the base branch, where that is another one
// than the change is made on; else empty.
func (r *run) movedBase(ctx context.Context) (tip string, relation forge.Relation, err error) {
	commit, err := r.repo.Branch(ctx, r.base.Branch)
	if err != nil {
		return "", "", forgeFailure("The base branch "+r.base.Branch+" cannot be looked up", err)
	}
	switch {
	case commit == nil && r.bundled():
		return "", "", badBundle("there is no branch %s", r.base.Branch)
	case commit == nil || commit.SHA == r.base.SHA: // that the branch is gone says the pull request
		return "", "", nil
	}
	relation, err = r.repo.Compare(ctx, r.base.SHA, commit.SHA)
	switch {
	case err != nil:
		return "", "", forgeFailure("The base branch "+r.base.Branch+" cannot be compared with what the change is made on", err)
	case relation != forge.Ahead && r.bundled():
		// Who wrote the bundle chose the commit, and with it what configures this half.
		return "", "", badBundle("its base commit %s is not part of %s", gitops.Short(r.base.SHA), r.base.Branch)
	case relation == forge.Behind || relation == forge.Identical:
		return "", "", nil
	}
	return commit.SHA, relation, nil
}

// rebase makes the change one of another base commit.
func (r *run) rebase(ctx context.Context, tip string, relation forge.Relation) error {
	if err := r.fetchCommit(ctx, tip, relation != forge.Ahead); err != nil {
		return err
	}
	base, err := r.checkout.BaseAt(r.base.Branch, tip)
	if err != nil {
		return checkoutFailure(err)
	}
	moved, err := r.checkout.Rebase(ctx, r.changes, base)
	var conflict *gitops.MergeError
	switch {
	case errors.As(err, &conflict):
		return r.baseConflict(base, conflict)
	case err != nil:
		return err
	}
	if r.drift.inCheckout == nil {
		r.drift.inCheckout = r.changes
		if err := r.keepWork(); err != nil {
			return err
		}
	}
	r.warnInBody("base_moved", "%s moved from %s to %s while the work was done; the change was merged onto it.", r.base.Branch, gitops.Short(r.base.SHA), gitops.Short(tip))
	r.base, r.changes = base, moved
	if err := r.followRules(ctx); err != nil {
		return err
	}
	if r.bundled() { // the pack stays what the transcript tells of
		_, err := r.writePatch(ctx)
		return err
	}
	return r.keepChanges(ctx)
}

// followRules makes the second half go by the configuration of the new base:
// the old one is whatever commit of the branch the bundle names.
func (r *run) followRules(ctx context.Context) error {
	if !r.bundled() {
		return nil
	}
	if _, err := r.checkout.UseBase(gitops.BaseSpec{Branch: r.base.Branch, SHA: r.base.SHA}); err != nil {
		return checkoutFailure(err)
	}
	view, err := r.rec.View()
	if err != nil {
		return err
	}
	if err := r.loadTemplate(ctx); err != nil {
		return err
	}
	return r.beAsCautious(view)
}

func (r *run) baseConflict(base gitops.Base, conflict *gitops.MergeError) error {
	return outcome.Stopf(outcome.Conflict, "base_moved",
		"%s moved from %s to %s while the work was done, and the change does not go onto it: %s; run again, or apply %s by hand.",
		base.Branch, gitops.Short(r.base.SHA), gitops.Short(base.SHA), namesOf(conflict), r.rec.Join(record.PatchFile)).Because(conflict)
}

// namesOf are the files that cannot be merged, each with the reason.
func namesOf(conflict *gitops.MergeError) string {
	var files []string
	for _, c := range conflict.Conflicts {
		files = append(files, fmt.Sprintf("%s (%s)", markdown.FileName(c.Path), c.Why))
	}
	return strings.Join(files[:min(len(files), mostNamed)], ", ") + andMore(len(files)-mostNamed)
}

// mostNamed is how many files a message names.
const mostNamed = 10

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// verifyOnNewBase runs the checks on the change as it is on its new base, where
// this half can; else it stays told where they ran. What is red is compared with
// the new base, which may be red itself.
func (r *run) verifyOnNewBase(ctx context.Context, old gitops.Base) error {
	if len(r.table.Rows) == 0 {
		return nil
	}
	if r.bundled() || !r.verifiesClean() || r.overBudget != nil {
		if r.drift.verifiedOn == "" {
			r.drift.verifiedOn = old.SHA
		}
		return nil
	}
	return r.verified(r.checks().OnNewBase(ctx, r.table, r.changes))
}

// doubtDrift makes the pull request a draft where the checks ran on another base
// than it is on.
func (r *run) doubtDrift() {
	if r.drift.verifiedOn != "" {
		r.doubt(fmt.Sprintf("verified on %s, not on %s: %s moved in between, and the change was merged onto it.",
			gitops.Short(r.drift.verifiedOn), gitops.Short(r.base.SHA), r.base.Branch))
	}
}

// inCheckout is the change as the work tree holds it.
func (r *run) inCheckout() *gitops.ChangeSet {
	if r.drift.inCheckout != nil {
		return r.drift.inCheckout
	}
	return r.changes
}

// movedTo is the base of the change where it is not the one that the work began
// on; else empty.
func (r *run) movedTo() string {
	if r.drift.inCheckout == nil {
		return ""
	}
	return r.base.SHA
}

// warnInBody is a warning that the pull request shows, also that of a bundle,
// whose transcript is closed.
func (r *run) warnInBody(code, format string, args ...any) {
	r.rec.Warn(code, format, args...)
	if r.bundled() {
		r.tell(fmt.Sprintf(format, args...))
	}
}
