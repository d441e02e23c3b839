package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
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
	if err := errors.Join(r.checkout.Claim(), r.checkout.Idle()); err != nil {
		return checkoutFailure(err)
	}
	if err := r.findBaseBranch(ctx); err != nil {
		return err
	}
	dirty, err := r.checkout.Dirty(ctx)
	if err != nil {
		return fmt.Errorf("look for uncommitted changes: %w", err)
	}
	if len(dirty) > 0 {
		return outcome.Stopf(outcome.InvalidInput, "dirty_checkout",
			"The checkout has uncommitted changes (%s); commit or stash them, so that the change is the agent's alone.", some(dirty))
	}
	if err := r.checkoutWritable(); err != nil {
		return err
	}
	r.branch = r.branchName()
	return r.findWorkDir()
}

// findWorkDir makes sure that repository.path is a folder of the checkout.
func (r *run) findWorkDir() error {
	root, err := os.OpenRoot(r.checkout.Root())
	if err != nil {
		return fmt.Errorf("open the checkout: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(r.job.Repository.Path))
	if err == nil && info.IsDir() {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "no_such_path",
		"repository.path is %s, which is no folder on %s; correct the path.", r.job.Repository.Path, r.baseName())
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
	dir := r.rec.Join(record.CheckoutFolder)
	_, err := remote.Clone(ctx, r.remote(), remote.CloneOptions{
		Dir: dir, Branch: cmp.Or(r.job.Repository.Base, r.eventBase()), Git: r.findGit(r.options.Dir),
	})
	if err != nil {
		return remoteFailure("The repository "+r.repo.Name()+" cannot be cloned", err)
	}
	r.cloned = true
	if err := r.openCheckout(ctx, dir); err != nil {
		return checkoutFailure(err)
	}
	return r.readJob(ctx)
}

// findBaseBranch makes sure that the base is a branch that a change can go to:
// not a detached HEAD, and not the branch of an earlier run, on which the
// checkout was left.
func (r *run) findBaseBranch(ctx context.Context) error {
	after, err := r.onEarlierRun(ctx)
	if err != nil {
		return err
	}
	if after == nil && (r.base.Branch != "" || r.publishMode() == publishNone) {
		return nil
	}
	branch, err := r.usualBase(ctx, after)
	if err != nil {
		return err
	}
	switch {
	case branch != "":
		return checkoutFailureOrNil(r.chooseBase(ctx, branch))
	case after != nil:
		return outcome.Stopf(outcome.InvalidInput, "base_is_task_branch",
			"The checkout is on %s, the branch of an earlier run; check out the branch to build on, or set repository.base.", r.base.Branch)
	}
	return outcome.Stopf(outcome.InvalidInput, "detached_head",
		"The checkout is on no branch (detached HEAD at %s); check a branch out, or set repository.base.", gitops.Short(r.base.SHA))
}

// onEarlierRun is the commit of an earlier run when the checkout stands on it.
func (r *run) onEarlierRun(ctx context.Context) (*gitops.CommitInfo, error) {
	if r.base.Branch == "" || r.job.Repository.Base != "" {
		return nil, nil
	}
	tip, err := r.checkout.Tip(ctx, r.base.Branch)
	if err != nil {
		return nil, fmt.Errorf("look at branch %s: %w", r.base.Branch, err)
	}
	if tip != nil && (tip.Ours() || r.job.PullRequest.Branch == "" && r.base.Branch == r.branchName()) {
		return tip, nil
	}
	return nil, nil
}

// usualBase is the branch that a run goes to where the checkout does not say:
// GitHub's default branch, else the one branch here that the earlier run built
// on, else origin's default. It is empty when there is none.
func (r *run) usualBase(ctx context.Context, after *gitops.CommitInfo) (string, error) {
	if r.publishMode() == publishGitHub {
		return defaultBranch(ctx, r.repo)
	}
	if after == nil {
		return "", nil
	}
	branches, err := r.checkout.BranchesAt(after.Trailer(gitops.TrailerBase))
	if err != nil {
		return "", err
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return r.checkout.DefaultBranch(), nil
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
