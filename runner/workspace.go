package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/agent-ci/agent-ci/runner/workspace"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// findCheckout opens the checkout that --repo names. That there is none, or
// none that can be used, is not an error yet: the run may clone one.
func (r *run) findCheckout(ctx context.Context) error {
	dir := r.options.Dir
	if dir == "" {
		dir = "."
	}
	if err := r.openCheckout(ctx, dir); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.openErr = err
	}
	return nil
}

// openWorkspace makes sure that there is a checkout of the right repository,
// clean and on its base commit.
func (r *run) openWorkspace(ctx context.Context) error {
	if r.wantsClone() {
		if err := r.cloneBase(ctx); err != nil {
			return err
		}
	}
	if r.checkout == nil {
		return checkoutFailure(r.openErr)
	}
	base := workspace.BaseBranch{Configured: r.job.Repository.Base != "", NoneNeeded: r.publishMode() == publishNone}
	if r.job.PullRequest.Branch == "" {
		base.TaskBranch = r.branchName()
	}
	if r.publishMode() == publishGitHub {
		base.Usual = func(ctx context.Context) (string, error) { return defaultBranch(ctx, r.repo) }
	}
	r.branch = r.branchName()
	return r.inWorkspace(func(w *workspace.Workspace) error {
		return w.Prepare(ctx, workspace.Preparation{Base: base, Path: r.job.Repository.Path, Changes: r.job.Task.Expects == "change"})
	})
}

// wantsClone says whether the run works on another repository than the
// checkout's or on another base than it is on, or there is no checkout.
func (r *run) wantsClone() bool {
	switch {
	case !r.repo.known():
		return false
	case r.checkout == nil:
		return errors.Is(r.openErr, gitops.ErrNotRepository)
	case r.pull != nil && r.pull.Base != r.base.Branch:
		return true // a comment's event does not tell the workflow which branch to check out
	}
	here := nameInURL(r.checkout.Origin(), r.repo.serverURL)
	if here == "" && r.env.InActions() && strings.EqualFold(r.env.Get("GITHUB_REPOSITORY"), r.repo.Name()) {
		return false // the checkout of a workflow, whose origin another step changed
	}
	return !strings.EqualFold(here, r.repo.Name())
}

// cloneBase clones, and goes once more through the stages that went by other
// settings than those of the clone: whom to listen to is the repository's to say.
func (r *run) cloneBase(ctx context.Context) error {
	before := *r.job
	if err := r.clone(ctx); err != nil {
		return err
	}
	if reflect.DeepEqual(before, *r.job) {
		return nil
	}
	r.progressLike = nil
	for _, stage := range []func(context.Context) error{r.findRequest, r.trustActor, r.meetModel, r.readTask, r.readOutputSchema} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) clone(ctx context.Context) error {
	if r.checkout != nil {
		if err := r.checkout.Close(); err != nil {
			return fmt.Errorf("close the checkout of another repository: %w", err)
		}
		r.checkout = nil
	}
	cloned, err := workspace.Clone(ctx, r.rec, workspace.CloneOptions{
		Options: workspace.Options{Dir: r.options.Dir, Path: r.env.Get("PATH")}, From: r.remote(), Repository: r.repo.Name(),
		Branch: cmp.Or(r.job.Repository.Base, r.eventBase()), StartOn: r.eventBase(),
	})
	if err != nil {
		return err
	}
	r.space = cloned
	r.mirror()
	return r.readJob(ctx)
}

func (r *run) branchName() string {
	if name := r.job.PullRequest.Branch; name != "" {
		return name
	}
	return runBranches + r.task.key
}

// begin writes the first events of the run.
func (r *run) begin(context.Context) error {
	if err := r.start(); err != nil {
		return err
	}
	if err := r.recordTask(); err != nil {
		return err
	}
	if err := r.rec.Append(transcript.TypeWorkspace, transcript.Workspace{
		Repository: r.repo.Name(), Base: r.base.Branch, BaseSHA: r.base.SHA, Branch: r.branch,
		Path: r.job.Repository.Path, Cloned: r.cloned, Root: r.checkout.Root(),
	}); err != nil {
		return err
	}
	return r.rec.Append(transcript.TypePolicy, transcript.Policy{
		Approval: r.job.Policy.Approval, Sandbox: r.job.Policy.Sandbox, Network: r.network(),
		Level: r.confined.Level, Layers: r.confined.Layers,
	})
}

// start writes run.started, once, and the warnings that came before it.
func (r *run) start() error {
	if r.rec.Begun() {
		return nil
	}
	event := transcript.RunStarted{
		RunID: r.rec.ID, Version: r.options.Version, Key: r.task.key, Publish: r.publishMode(), Link: r.env.RunLink(), Price: r.price(), OutputSchema: r.output.Source,
	}
	if r.options.Replay != "" {
		event.Scripted = filepath.Base(r.options.Replay)
	}
	if r.job != nil {
		raw, err := json.Marshal(r.job)
		if err != nil {
			return fmt.Errorf("encode job: %w", err)
		}
		event.Job = raw
	}
	return r.rec.Begin(event)
}
