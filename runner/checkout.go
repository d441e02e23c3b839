package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// openHere opens the checkout of --repo on the event's base. obstacle explains a missing or unusable
// checkout. That does not stop the run yet, because the run may clone. If only the base is missing,
// openHere also returns the checkout, so its configuration counts. pullNamed means that the command line
// names a pull request. A checkout of another repository is then ignored with its configuration.
func (r *runner) openHere(ctx context.Context, req *request, event intake.Event, pullNamed bool) (ws *workspace.Workspace, obstacle error) {
	ws, obstacle = workspace.Open(ctx, r.rec, r.checkoutOptions(cmp.Or(req.dir, ".")))
	if obstacle == nil {
		obstacle = ws.StartOn(ctx, event.Base())
	}
	if pullNamed && ws != nil {
		if actual := intake.RepositoryInURL(ws.Checkout().Origin(), r.env.ForgeServer()); !strings.EqualFold(actual, event.Repository) {
			r.reportOtherCheckout(event.Repository, actual, ws)
			ws, obstacle = nil, cmp.Or(ws.Close(), gitops.ErrNotRepository)
		}
	}
	r.end.workspace = ws
	return ws, obstacle
}

// baseOf returns the branch that configures a run on a pull request or event, or "". The base in an
// event of another repository does not apply here.
func baseOf(event intake.Event, a assignment) string {
	switch pull := a.task.PullRequest(); {
	case pull != nil:
		return pull.Base
	case strings.EqualFold(event.Repository, a.project.Name()):
		return event.Base()
	}
	return ""
}

// wantsClone reports whether the run needs another repository or base than the checkout's, or there
// is no checkout.
func (r *runner) wantsClone(a assignment, ws *workspace.Workspace, noCheckout error) bool {
	switch {
	case a.project.Name() == "":
		return false
	case ws == nil:
		return errors.Is(noCheckout, gitops.ErrNotRepository)
	case a.task.PullRequest() != nil && a.task.PullRequest().Base != ws.Base().Branch:
		return true // the event of a comment does not name the pull request's base, so the workflow checks out another branch
	}
	actual := intake.RepositoryInURL(ws.Checkout().Origin(), r.env.ForgeServer())
	if actual == "" && r.env.InActions() && strings.EqualFold(r.env.Get("GITHUB_REPOSITORY"), a.project.Name()) {
		return false // a workflow's own checkout, with an origin that another step removed or changed
	}
	return !strings.EqualFold(actual, a.project.Name())
}

// reportOtherCheckout warns that the run uses a clone of wanted, because the current checkout is of the
// repository actual.
func (r *runner) reportOtherCheckout(wanted, actual string, current *workspace.Workspace) {
	if actual == "" || strings.EqualFold(actual, wanted) || r.env.InActions() {
		return
	}
	r.rec.Warn("cloned", "The run works in a clone of %s, in its run directory: %s is a checkout of %s.", wanted, current.Root(), actual)
}

// clone closes the current checkout, if any, and clones the assignment's repository. It reads the run's
// configuration from the clone and registers both.
func (r *runner) clone(ctx context.Context, a assignment, event intake.Event, current *workspace.Workspace) (*workspace.Workspace, assignment, error) {
	if current != nil {
		r.end.workspace = nil
		if err := current.Close(); err != nil {
			return nil, a, fmt.Errorf("close the checkout of another repository: %w", err)
		}
	}
	base := baseOf(event, a)
	defer r.rec.BeginStep("", "clone of "+a.project.Name())()
	o := r.checkoutOptions(a.dir)
	cloned, err := workspace.Clone(ctx, r.rec, workspace.CloneOptions{
		Options: o, From: r.forge(a.project, nil).Remote(), Repository: a.project.Name(), Branch: cmp.Or(a.job().Repository.Base, base), StartOn: base,
	})
	if err != nil {
		return nil, a, err
	}
	r.end.workspace = cloned
	set, err := workspace.Configure(ctx, r.rec, r.source, cloned)
	if set != nil {
		a = r.withSettings(a, set, cloned)
		r.end.assignment = &a
	}
	return cloned, a, err
}
