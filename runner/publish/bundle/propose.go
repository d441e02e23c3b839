package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// SecondHalf has the inputs of agent-ci publish that do not depend on the bundle. It publishes what an earlier
// run, the first half, left in a bundle.
type SecondHalf struct {
	Record    *record.Record
	Workspace *workspace.Workspace // its work tree is not changed
	Source    *settings.Source
	Event     intake.Event // event of the workflow
	Operator  string       // path of the operator's file; empty for none
	// Forge returns a job's destination.
	Forge func(*job.Job) (publish.Forge, error)
}

// Propose makes a proposal from a bundle and verifies everything in it. The proposal has no change if the
// bundle has none. With an error it returns the proposal so far. Admit completes it.
func (h SecondHalf) Propose(ctx context.Context, b Bundle) (to publish.Forge, p publish.Proposal, err error) {
	known, err := h.readKnownTask(ctx)
	p.Job = known.job
	if err != nil {
		return to, p, err
	}
	if to, err = h.Forge(p.Job); err != nil {
		return to, p, err
	}
	if p.Base, err = h.openBase(ctx, to, b.base()); err != nil {
		return to, p, err
	}
	if err := h.fillProposal(ctx, b, known, to.Name(), &p); err != nil {
		return to, p, err
	}
	if err := known.verifyDestination(ctx, to, b.View.Workspace.Base, &p); err != nil {
		return to, p, err
	}
	if p.Key, err = publish.ReadKey(ctx, h.Source.Env, p.Job.PullRequest.Commit); err != nil {
		return to, p, err
	}
	if err := to.RequirePublishable(ctx, p.Task.Branch, p.Base); err != nil {
		return to, p, err
	}
	p.Change, err = h.readChange(ctx, b, to, p.Base)
	return to, p, err
}

// openBase sets the workspace's base to the bundle's base commit, without changing the work tree. It fetches
// the commit if a shallow checkout lacks it. Publishing checks later that the commit is part of the base
// branch.
func (h SecondHalf) openBase(ctx context.Context, from publish.Forge, sha string) (gitops.Base, error) {
	spec := gitops.BaseSpec{SHA: sha}
	err := h.Workspace.SetBase(ctx, spec)
	if errors.As(err, new(*gitops.UnknownBaseError)) && h.Workspace.Fetch(ctx, from.Remote(), remote.FetchOptions{Commit: sha, WithoutHistory: true}) == nil {
		err = h.Workspace.SetBase(ctx, spec)
	}
	return h.Workspace.Base(), workspace.CheckoutFailure(err)
}

// adoptSettings returns the job of the settings, and makes the record redact the job's secrets.
func (h SecondHalf) adoptSettings(set *settings.Settings, err error) (*job.Job, error) {
	if err != nil {
		return nil, err
	}
	h.Record.SetSecrets(settings.Secrets(h.Source.Env, &set.Job))
	return &set.Job, nil
}

// loadTemplate reads the second half's configuration from the workspace's base.
func (h SecondHalf) loadTemplate(ctx context.Context) (*job.Job, error) {
	return h.adoptSettings(h.Source.LoadTemplate(ctx, h.Workspace.Commit()))
}

// maxProtected is the most patterns accepted from a bundle. Each pattern is compared with each file of the
// change.
const maxProtected = 10_000

// withBundleRestrictions returns j with the stricter settings of the bundle's job added.
func (b Bundle) withBundleRestrictions(j job.Job) (*job.Job, error) {
	var bundleJob job.Job
	if err := json.Unmarshal(b.View.Started.Job, &bundleJob); err != nil {
		return nil, invalidBundleError("its job cannot be read (%v)", err)
	}
	_, err := policy.Protected(bundleJob.Policy.Protect, "any") // fails for an invalid pattern, whatever the path
	if err != nil || len(bundleJob.Policy.Protect) > maxProtected {
		return nil, invalidBundleError("the patterns of its policy.protect cannot be used")
	}
	if bundleJob.OnVerifyFailed == "none" {
		j.OnVerifyFailed = bundleJob.OnVerifyFailed
	}
	j.PullRequest.Draft = j.PullRequest.Draft || bundleJob.PullRequest.Draft
	j.Policy.Silenced = job.StricterTreatment(j.Policy.Silenced, bundleJob.Policy.Silenced)
	j.Policy.WorkflowRisk = job.StricterTreatment(j.Policy.WorkflowRisk, bundleJob.Policy.WorkflowRisk)
	j.Policy.Protect = slices.Concat(j.Policy.Protect, bundleJob.Policy.Protect)
	return &j, nil
}

// fillProposal fills p from the bundle. It returns an error if the repository, run id or branch do not fit
// the second half. The job is the base commit's with the bundle's restrictions.
func (h SecondHalf) fillProposal(ctx context.Context, b Bundle, known knownTask, repository string, p *publish.Proposal) (err error) {
	if p.Job, err = h.loadTemplate(ctx); err != nil {
		return err
	}
	branch := b.View.Workspace.Branch
	if madeFor := b.View.Workspace.Repository; repository != "" && madeFor != "" && !strings.EqualFold(madeFor, repository) {
		return invalidBundleError("it was made for %s, this is %s", madeFor, repository)
	}
	if !record.IsSafeID(b.View.Started.RunID) {
		return invalidBundleError("its run id is not one")
	}
	if err := form.ValidateBranch(branch); err != nil {
		return invalidBundleError("its branch: %s", outcome.WithoutFullStop(err))
	}
	if branch != known.job.PullRequest.Branch && !intake.IsRunBranch(branch) {
		return invalidBundleError("its branch %s is not below agent-ci/, and pull_request.branch does not name it", branch)
	}
	if p.Job, err = b.withBundleRestrictions(*p.Job); err != nil {
		return err
	}
	p.RunID, p.ChainHead, p.Summary = b.View.Started.RunID, b.Head, h.Record.Redact(b.View.Summary())
	p.Task, p.Verification, p.Stopped = b.task(known.requester()), b.verification(), b.limitStop()
	p.Bundle = rules{h, b}
	return errors.Join(h.Record.Append(b.View.Plan), h.Record.Append(p.Verification))
}

// verification returns the bundle's check results, or a passed table without checks.
func (b Bundle) verification() transcript.Verify {
	if b.View.Verify == nil {
		return transcript.Verify{Passed: true}
	}
	return *b.View.Verify
}

// limitStop returns an outcome.Stop if a limit stopped the agent's work, or nil.
func (b Bundle) limitStop() *outcome.Stop {
	end := b.View.Finished
	if end.Outcome != string(outcome.BudgetExceeded) {
		return nil
	}
	return outcome.Stopf(outcome.BudgetExceeded, end.Reason, "The agent was stopped before it was done: %s was used up.", settings.LimitKey(end.Reason))
}

// task returns the bundle's task with the co-author of the commit. requester is the requester in the event, and
// overrides the bundle's.
func (b Bundle) task(requester actions.Account) intake.Task {
	recorded := b.View.Task
	t := intake.Task{Key: b.View.Started.Key, Task: transcript.Task{Title: recorded.Title}, Branch: b.View.Workspace.Branch}
	if isDigest(recorded.InputDigest) {
		t.InputDigest = recorded.InputDigest
	}
	if issue, err := form.ParseIssue(recorded.Issue); err == nil && issue.Repository != "" {
		t.Issue = &issue
	}
	if requester.Login != "" {
		recorded.Actor, recorded.ActorID = requester.Login, requester.ID
	}
	if form.ValidateKey(recorded.Actor) == nil {
		t.Actor, t.ActorID = recorded.Actor, recorded.ActorID
	}
	if form.ValidateKey(recorded.Author) == nil {
		t.Author = &forge.User{Login: recorded.Author, ID: recorded.AuthorID}
	}
	return t
}

// isDigest reports whether text is a SHA-256 in hex, which is safe in a commit trailer.
func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// rules are the second half's rules for a bundle.
type rules struct {
	half   SecondHalf
	bundle Bundle
}

// JobOn returns the job of another base commit with the bundle's restrictions. It makes that the workspace's base.
func (r rules) JobOn(ctx context.Context, base gitops.Base) (*job.Job, error) {
	if err := r.half.Workspace.SetBase(ctx, gitops.BaseSpec{Branch: base.Branch, SHA: base.SHA}); err != nil {
		return nil, workspace.CheckoutFailure(err)
	}
	j, err := r.half.loadTemplate(ctx)
	if err != nil {
		return nil, err
	}
	return r.bundle.withBundleRestrictions(*j)
}

// RequireBase returns an error if the bundle's base commit is not part of its base branch. The
// bundle's author could then have chosen the commit, and with it the second half's configuration.
func (rules) RequireBase(base gitops.Base, now publish.BaseBranch) error {
	switch {
	case now.Tip == "":
		return invalidBundleError("there is no branch %s", base.Branch)
	case now.Tip != base.SHA && now.Relation != forge.Ahead:
		return invalidBundleError("its base commit %s is not part of %s", clip.SHA(base.SHA), base.Branch)
	}
	return nil
}

// readChange returns the change in the bundle's objects, or nil without one. Without a change it only checks
// that the base commit is part of the base branch.
func (h SecondHalf) readChange(ctx context.Context, b Bundle, to publish.Forge, base gitops.Base) (*gitops.ChangeSet, error) {
	if b.View.Change.Empty() {
		now, err := publish.LookUpBase(ctx, to.Repo, base)
		if err == nil {
			err = rules{}.RequireBase(base, now)
		}
		return nil, err
	}
	change, err := b.unpack(ctx, h.Record, h.Workspace.Checkout())
	if err != nil {
		return nil, err
	}
	patch, err := h.Workspace.WritePatch(ctx, change, "")
	return change, cmp.Or(err, h.Record.Append(patch))
}

// Admit judges the change of p by the second half's rules. It returns the bundle's lessons.
//
// Admit sets p.Lessons, and p.Hooks to the pre_publish hooks of the base commit, of the job file and of the
// operator here. It ignores hook definitions in the bundle. p.Hooks stays nil without such hooks, and for an
// empty change.
func (h SecondHalf) Admit(ctx context.Context, b Bundle, p *publish.Proposal) (*proposals.Lessons, error) {
	const postsFeedback = false // the first half posts it
	lessons := proposals.FromRecord(h.Record, b.View).Attach(h.Workspace, p.Job, postsFeedback)
	lessons.RecordChecks(p.Verification.Rows)
	p.Lessons = lessons
	if p.Change.Empty() {
		return lessons, nil
	}
	if err := lessons.JudgeCase(p.Job, p.Change, nil).Judge(ctx); err != nil {
		return nil, err
	}
	prePublish, err := hooks.Find(ctx, h.Operator, p.Job, h.Workspace.Commit(), h.Source.Env.Home())
	if err != nil {
		return nil, err
	}
	prePublish = slices.DeleteFunc(prePublish, func(h hooks.Hook) bool { return h.Event != job.OnPrePublish })
	if err := b.requireOperatorHooks(prePublish); err != nil {
		return lessons, err
	}
	if len(prePublish) == 0 {
		return lessons, nil
	}
	boxes, err := h.openSandboxes(ctx, p)
	if err != nil {
		return nil, err
	}
	p.Hooks = hooks.New(prePublish, boxes, boxes.Root)
	p.Hooks.Sandboxes.WritableByCommands = append(p.Hooks.Sandboxes.WritableByCommands, h.Workspace.Root())
	return lessons, p.Hooks.RecordList()
}

// requireOperatorHooks returns an error if the run had a pre_publish hook of an operator that is missing
// here. Only names are compared, since another machine may have another version of the hook.
func (b Bundle) requireOperatorHooks(current []hooks.Hook) error {
	for _, use := range b.View.Hooks {
		sameName := func(h hooks.Hook) bool { return h.Name == use.Name }
		if use.Event == job.OnPrePublish && strings.HasPrefix(use.Name, hooks.OperatorPrefix) && !slices.ContainsFunc(current, sameName) {
			return outcome.Stopf(outcome.InvalidInput, "operator_file",
				"The run had the hook %.100q on pre_publish, which is missing now; publish with the operator's file (--operator-file).", use.Name)
		}
	}
	return nil
}

// changeFolder is the folder in the run directory with the tree of the change, for hooks.
const changeFolder = record.StateFolder + "/change"

// openSandboxes opens sandboxes with a fresh tree of the change for hooks. They have no services, MCP
// servers, secrets and network.
func (h SecondHalf) openSandboxes(ctx context.Context, p *publish.Proposal) (*confine.Sandboxes, error) {
	for _, name := range []string{changeFolder, confine.ScratchFolder} { // the bundle's author may have put files there
		h.Record.Remove(name)
	}
	tree := h.Record.Join(changeFolder)
	if err := h.Workspace.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: tree, TreeForCommands: gitops.TreeForCommands{Tree: p.Change.Tree, Base: p.Base}}); err != nil {
		return nil, err
	}
	j := *p.Job
	j.Services, j.MCPServers, j.Policy.Secrets, j.Policy.Network = nil, nil, nil, job.Network{Mode: "none"}
	boxes := &confine.Sandboxes{Control: egress.Control{Record: h.Record, Environ: h.Source.Env, Job: &j}, Root: tree, Dir: tree, BaseTree: h.Workspace.BaseTree()}
	return boxes, boxes.SettleConfinement(ctx)
}
