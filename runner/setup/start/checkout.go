package start

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

// OpenHere opens the checkout of --repo on the event's base. obstacle explains a missing or unusable
// checkout. That does not stop the run yet, because the run may clone. If only the base is missing,
// OpenHere also returns the checkout, so its configuration counts. pullNamed means that the command line
// names a pull request. A checkout of another repository is then ignored with its configuration.
func (s *Start) OpenHere(ctx context.Context, event intake.Event, pullNamed bool) (ws *workspace.Workspace, obstacle error) {
	ws, obstacle = workspace.Open(ctx, s.Record, s.CheckoutOptions(cmp.Or(s.Assignment.Dir, ".")))
	if obstacle == nil {
		obstacle = ws.StartOn(ctx, event.Base())
	}
	if pullNamed && ws != nil {
		if actual := intake.RepositoryInURL(ws.Checkout().Origin(), s.Env.ForgeServer()); !strings.EqualFold(actual, event.Repository) {
			s.reportOtherCheckout(event.Repository, actual, ws)
			ws, obstacle = nil, cmp.Or(ws.Close(), gitops.ErrNotRepository)
		}
	}
	s.Workspace = ws
	return ws, obstacle
}

// configuringBranch returns the branch whose commit configures a run on a pull request or event, or "". The
// base in an event of another repository does not apply here.
func configuringBranch(event intake.Event, a Assignment) string {
	switch pull := a.Task.PullRequest(); {
	case pull != nil:
		return pull.Base
	case strings.EqualFold(event.Repository, a.Project.Name()):
		return event.Base()
	}
	return ""
}

// wantsClone reports whether the run must work in a clone: there is no checkout, or it is of another
// repository or base. noCheckout is the error that explains a missing checkout.
func (s *Start) wantsClone(a Assignment, ws *workspace.Workspace, noCheckout error) bool {
	switch {
	case a.Project.Name() == "":
		return false
	case ws == nil:
		return errors.Is(noCheckout, gitops.ErrNotRepository)
	case a.Task.PullRequest() != nil && a.Task.PullRequest().Base != ws.Base().Branch:
		return true // the event of a comment does not name the pull request's base, so the workflow checks out another branch
	}
	actual := intake.RepositoryInURL(ws.Checkout().Origin(), s.Env.ForgeServer())
	if actual == "" && s.Env.InActions() && strings.EqualFold(s.Env.Get("GITHUB_REPOSITORY"), a.Project.Name()) {
		return false // a workflow's own checkout, with an origin that another step removed or changed
	}
	return !strings.EqualFold(actual, a.Project.Name())
}

// reportOtherCheckout warns that the run uses a clone of wanted, because the current checkout is of the
// repository actual.
func (s *Start) reportOtherCheckout(wanted, actual string, current *workspace.Workspace) {
	if actual == "" || strings.EqualFold(actual, wanted) || s.Env.InActions() {
		return
	}
	s.Record.Warn("cloned", "The run works in a clone of %s, in its run directory: %s is a checkout of %s.", wanted, current.Root(), actual)
}

// cloneRepository closes the current checkout, if any, and clones the assignment's repository. It reads the run's
// configuration from the clone. It stores the clone and the assignment in s.
func (s *Start) cloneRepository(ctx context.Context, a Assignment, event intake.Event, current *workspace.Workspace) (*workspace.Workspace, Assignment, error) {
	if current != nil {
		s.Workspace = nil
		if err := current.Close(); err != nil {
			return nil, a, fmt.Errorf("close the checkout of another repository: %w", err)
		}
	}
	base := configuringBranch(event, a)
	defer s.Record.BeginStep("", "clone of "+a.Project.Name())()
	o := s.CheckoutOptions(a.Dir)
	cloned, err := workspace.Clone(ctx, s.Record, workspace.CloneOptions{
		Options: o, From: s.Forge(a.Project, nil).Remote(), Repository: a.Project.Name(), Branch: cmp.Or(a.Job().Repository.Base, base), StartOn: base,
	})
	if err != nil {
		return nil, a, err
	}
	s.Workspace = cloned
	set, err := workspace.Configure(ctx, s.Record, s.Source, cloned)
	if set != nil {
		a = s.withSettings(a, set, cloned)
		s.Assignment = &a
	}
	return cloned, a, err
}
