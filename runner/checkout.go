package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// openHere opens the checkout of --repo on the event's base. why explains a missing or unusable
// one, which is no end yet, because the run may clone. A checkout without that base is returned
// too, so its configuration counts. One of another repository than the requested pull request's is
// ignored with its configuration.
func (r *runner) openHere(ctx context.Context, asked *request, event intake.Event, named bool) (ws *workspace.Workspace, why error) {
	ws, why = workspace.Open(ctx, r.rec, r.checkoutOptions(cmp.Or(asked.dir, ".")))
	if why == nil {
		why = ws.StartOn(ctx, event.Base())
	}
	if named && ws != nil {
		if of := intake.NameInURL(ws.Checkout().Origin(), r.env.ForgeServer()); !strings.EqualFold(of, event.Repository) {
			r.reportOtherCheckout(event.Repository, of, ws)
			ws, why = nil, cmp.Or(ws.Close(), gitops.ErrNotRepository)
		}
	}
	r.end.workspace = ws
	return ws, why
}

// baseOf returns the branch that configures a run on a pull request. An event's base in another
// repository says nothing about this one's.
func baseOf(event intake.Event, a assignment) string {
	switch pull := a.task.OnPull(); {
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
	case a.task.OnPull() != nil && a.task.OnPull().Base != ws.Base().Branch:
		return true // a comment's event does not tell the workflow which branch to check out
	}
	here := intake.NameInURL(ws.Checkout().Origin(), r.env.ForgeServer())
	if here == "" && r.env.InActions() && strings.EqualFold(r.env.Get("GITHUB_REPOSITORY"), a.project.Name()) {
		return false // the checkout of a workflow, whose origin another step changed
	}
	return !strings.EqualFold(here, a.project.Name())
}

// reportOtherCheckout reports that a run on one repository does not work in another's checkout.
func (r *runner) reportOtherCheckout(name, of string, current *workspace.Workspace) {
	if of == "" || strings.EqualFold(of, name) || r.env.InActions() {
		return
	}
	r.rec.Warn("cloned", "The run works in a clone of %s, in its run directory: %s is a checkout of %s.", name, current.Root(), of)
}

// clone clones the repository instead of the current checkout, which may be nil, and reads the
// run's configuration there.
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
		Options: o, From: publish.Forge{Publisher: r.publisher(a.project, nil)}.Remote(), Repository: a.project.Name(), Branch: cmp.Or(a.job().Repository.Base, base), StartOn: base,
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
