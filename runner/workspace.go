package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
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

func (r *run) openCheckout(ctx context.Context, dir string) error {
	state, err := r.dir.makeFolder(stateFolder)
	if err != nil {
		return err
	}
	checkout, err := gitops.Open(ctx, gitops.Options{Dir: dir, Git: gitops.FindGit(r.env.get("PATH")), State: state})
	if err != nil {
		return err
	}
	r.checkout = checkout
	return r.chooseBase(ctx, "")
}

// chooseBase puts the checkout on the base that the work starts from: branch,
// or the one that is checked out.
func (r *run) chooseBase(ctx context.Context, branch string) error {
	base, err := r.checkout.SetBase(ctx, gitops.BaseSpec{Branch: branch})
	if err != nil {
		return err
	}
	r.base = base
	return nil
}

// openWorkspace makes sure that there is a checkout of the right repository,
// clean, on its base commit, and begins the record of the run.
func (r *run) openWorkspace(ctx context.Context) error {
	if r.wantsClone() {
		if err := r.clone(ctx); err != nil {
			return err
		}
	}
	if r.checkout == nil {
		return checkoutFailure(r.openErr)
	}
	if err := r.findBaseBranch(ctx); err != nil {
		return err
	}
	if inside(r.checkout.Root(), r.dir.path) && !r.cloned {
		return outcome.Stopf(outcome.InvalidInput, "run_directory",
			"The run directory %s lies in the checkout, where it would become part of the change; give one outside with --out.", r.dir.path)
	}
	dirty, err := r.checkout.Dirty(ctx)
	if err != nil {
		return fmt.Errorf("look for uncommitted changes: %w", err)
	}
	if len(dirty) > 0 {
		return outcome.Stopf(outcome.InvalidInput, "dirty_checkout",
			"The checkout has uncommitted changes (%s); commit or stash them, so that the change is the agent's alone.", some(dirty))
	}
	r.branch = r.branchName()
	return nil
}

// wantsClone says whether the run works on another repository than the
// checkout's, or there is no checkout.
func (r *run) wantsClone() bool {
	switch {
	case !r.repo.known():
		return false
	case r.checkout == nil:
		return errors.Is(r.openErr, gitops.ErrNotRepository)
	case strings.EqualFold(r.env.get("GITHUB_REPOSITORY"), r.repo.full()) && r.env.inActions():
		return false
	}
	here := nameInURL(r.checkout.Origin(), r.repo.serverURL)
	return !strings.EqualFold(here, r.repo.full())
}

func (r *run) clone(ctx context.Context) error {
	if r.checkout != nil {
		if err := r.checkout.Close(); err != nil {
			return fmt.Errorf("close the checkout of another repository: %w", err)
		}
		r.checkout = nil
	}
	dir := r.dir.join(checkoutFolder)
	_, err := remote.Clone(ctx, r.remote(), remote.CloneOptions{
		Dir: dir, Branch: r.job.Repository.Base, Git: gitops.FindGit(r.env.get("PATH")),
	})
	if err != nil {
		return remoteFailure("The repository "+r.repo.full()+" cannot be cloned", err)
	}
	r.cloned = true
	if err := r.openCheckout(ctx, dir); err != nil {
		return checkoutFailure(err)
	}
	return r.readJob(ctx)
}

func (r *run) remote() remote.Remote {
	return remote.Remote{URL: r.repo.gitURL(), Token: r.env.first(tokenNames...)}
}

// checkoutFailure is the outcome of a checkout that cannot be worked in.
func checkoutFailure(err error) error {
	for _, known := range []struct {
		err    error
		reason string
	}{
		{gitops.ErrNotRepository, "no_checkout"},
		{gitops.ErrBare, "bare_repository"},
		{gitops.ErrNoCommit, "no_commit"},
	} {
		if errors.Is(err, known.err) {
			return outcome.Stopf(outcome.InvalidInput, known.reason, "%s.", sentence(err.Error())).Because(err)
		}
	}
	var unsupported *gitops.UnsupportedError
	var unknown *gitops.UnknownBaseError
	var dirty *gitops.DirtyError
	var obstructed *gitops.ObstructedError
	switch {
	case errors.As(err, &unsupported):
		return outcome.Stopf(outcome.InvalidInput, "unsupported_checkout", "%s.", sentence(err.Error())).Because(err)
	case errors.As(err, &unknown):
		return outcome.Stopf(outcome.InvalidInput, "unknown_base", "%s.", sentence(err.Error())).Because(err)
	case errors.As(err, &dirty), errors.As(err, &obstructed):
		return outcome.Stopf(outcome.InvalidInput, "dirty_checkout", "%s.", sentence(err.Error())).Because(err)
	}
	return fmt.Errorf("open the checkout: %w", err)
}

// findBaseBranch names the base of a detached checkout: a pull request needs a
// branch to go to.
func (r *run) findBaseBranch(ctx context.Context) error {
	if r.base.Branch != "" || r.publishMode() == publishNone {
		return nil
	}
	if r.publishMode() == publishGitHub {
		found, err := r.forge.Repository(ctx, r.repo.owner, r.repo.name)
		if err != nil {
			return forgeFailure("The default branch of "+r.repo.full()+" cannot be asked for", err)
		}
		return checkoutFailureOrNil(r.chooseBase(ctx, found.DefaultBranch))
	}
	return outcome.Stopf(outcome.InvalidInput, "detached_head",
		"The checkout is on no branch (detached HEAD at %s); check a branch out, or set repository.base.", short(r.base.SHA))
}

func checkoutFailureOrNil(err error) error {
	if err == nil {
		return nil
	}
	return checkoutFailure(err)
}

func (r *run) branchName() string {
	if name := r.job.PullRequest.Branch; name != "" {
		return name
	}
	return "agent-ci/" + r.task.key
}

// workDir is where the agent and the verify commands start.
func (r *run) workDir() string {
	return filepath.Join(r.checkout.Root(), filepath.FromSlash(r.job.Repository.Path))
}

// begin writes the first events of the run.
func (r *run) begin(context.Context) error {
	if err := r.start(); err != nil {
		return err
	}
	if err := r.recordTask(); err != nil {
		return err
	}
	if err := r.record(transcript.TypeWorkspace, transcript.Workspace{
		Repository: strings.Trim(r.repo.full(), "/"), Base: r.base.Branch, BaseSHA: r.base.SHA, Branch: r.branch,
		Path: r.job.Repository.Path, Cloned: r.cloned,
	}); err != nil {
		return err
	}
	confined := confinement()
	return r.record(transcript.TypePolicy, transcript.Policy{
		Approval: r.job.Policy.Approval, Sandbox: r.job.Policy.Sandbox, Network: r.job.Policy.Network,
		Level: confined.Level, Layers: confined.Layers,
	})
}

// start writes run.started, once, and the warnings that came before it.
func (r *run) start() error {
	if r.begun {
		return nil
	}
	r.begun = true
	event := transcript.RunStarted{RunID: r.id, Version: r.options.Version, Key: r.task.key, Publish: r.publishMode(), Link: r.env.runLink()}
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
	if err := r.record(transcript.TypeRunStarted, event); err != nil {
		return err
	}
	for _, w := range r.warnings {
		if err := r.record(transcript.TypeWarning, w); err != nil {
			return err
		}
	}
	return nil
}

// runLink is the page of the run in Actions.
func (e environment) runLink() string {
	server, repo, id := e.get("GITHUB_SERVER_URL"), e.get("GITHUB_REPOSITORY"), e.get("GITHUB_RUN_ID")
	if server == "" || repo == "" || id == "" {
		return ""
	}
	return server + "/" + repo + "/actions/runs/" + id
}

// inside says whether path is folder or lies below it.
func inside(folder, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	rel, err := filepath.Rel(folder, real)
	return err == nil && filepath.IsLocal(rel)
}

func some(names []string) string {
	const shown = 3
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
