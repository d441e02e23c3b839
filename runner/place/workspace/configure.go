package workspace

import (
	"cmp"
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Configure loads the settings from all layers and makes rec redact their secrets. w may be nil. If
// the job names another base than w's, Configure sets that base and loads the settings again from
// there. With an error, it returns the settings loaded so far.
func Configure(ctx context.Context, rec *record.Record, source *settings.Source, w *Workspace) (*settings.Settings, error) {
	load := func() (*settings.Settings, error) {
		set, err := source.Load(ctx, w.Commit())
		if err == nil {
			rec.SetSecrets(settings.Secrets(source.Env, &set.Job))
		}
		return set, err
	}
	set, err := load()
	if err != nil || w == nil {
		return set, err
	}
	w.checkout.AllowFilters(set.Job.Git.FilterReads())
	wanted, commit := set.Job.Repository.Base, set.Job.Repository.Commit
	hasWantedBranch := wanted == "" || wanted == w.base.Branch
	hasWantedCommit := commit == "" || commit == w.base.SHA
	if hasWantedBranch && hasWantedCommit {
		return set, nil
	}
	if err := w.SetBase(ctx, gitops.BaseSpec{Branch: cmp.Or(wanted, w.base.Branch), SHA: commit}); err != nil {
		return set, CheckoutFailure(err)
	}
	again, err := load()
	if err != nil {
		return set, err
	}
	if named := again.Job.Repository.Base; named != "" && wanted != "" && named != wanted {
		return again, outcome.Stopf(outcome.InvalidInput, "base",
			"The configuration on %s names another base, %s; choose one with --set repository.base=….", wanted, named)
	}
	return again, nil
}
