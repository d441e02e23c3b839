package publish

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Destination is where a change is published: a branch on this machine, or a branch and pull request on a
// forge.
type Destination interface {
	// RequirePublishable returns an error if a change of base surely cannot be published on branch.
	RequirePublishable(ctx context.Context, branch string, base gitops.Base) error

	// tip returns the published branch's tip, or nil.
	tip(ctx context.Context, branch string) (*tip, error)
	// commitAndPush commits the change and moves its branch. It fails if the branch is no longer at before.
	commitAndPush(ctx context.Context, p *Proposal, before *tip, out *Publication) error
	// adoptCommit takes over the commit on the branch, because another run pushed the same change.
	adoptCommit(ctx context.Context, p *Proposal, existing *tip, out *Publication)
	// publishPull writes the pull request's body and opens or updates the pull request, if any.
	publishPull(ctx context.Context, p *Proposal, out *Publication) error
	// findOpenPullOfTask returns the open pull request of a task that ended without a change. It returns nil if
	// there is none, or on an error.
	findOpenPullOfTask(ctx context.Context, p *Proposal) *forge.PullRequest

	publisher() Publisher
}

// Publisher has what all destinations need to publish.
type Publisher struct {
	Project
	Record    *record.Record
	Workspace *workspace.Workspace // nil without a checkout
	Env       settings.Environment

	subject string // transcript.AboutLessons for lessons; "" for the run's change
}

func (m Publisher) publisher() Publisher { return m }

// remote returns the git repository at url. The PATH to find git excludes the work tree.
func (m Publisher) remote(url, token string) remote.Remote {
	path := m.Env.Get("PATH")
	if m.Workspace != nil {
		path = workspace.SearchPath(path, m.Workspace.Root())
	}
	return remote.Remote{URL: url, Token: token, Path: path}
}

func (m Publisher) adoptCommit(_ context.Context, p *Proposal, existing *tip, out *Publication) {
	out.Commit, out.Branch, out.Unchanged = existing.SHA, p.Task.Branch, true
}

// tip is the last commit of the published branch.
type tip struct {
	*forge.Commit
	pushed bool // the commit is in the repository that is pushed to
}

// pushedTip returns a commit of the repository that is pushed to as a tip, or nil for no commit.
func pushedTip(c *forge.Commit) *tip {
	if c == nil {
		return nil
	}
	return &tip{c, true}
}

// isForeign reports whether a person's commit is on the branch, which a change of base may not replace.
func (t *tip) isForeign(base gitops.Base) bool {
	return t != nil && !t.MadeByRun() && t.SHA != base.SHA
}

// hasSameChange reports whether the commit has the same change on the same base.
func (t *tip) hasSameChange(p *Proposal) bool {
	return t.Tree == string(p.Change.Tree) && len(t.Parents) == 1 && t.Parents[0] == p.Base.SHA
}

// madeBy reports whether this run made the commit before it was killed.
func (t *tip) madeBy(p *Proposal) bool {
	return t != nil && t.SHA == p.EarlierCommit && t.Tree == string(p.Change.Tree)
}

// isLatePush reports whether this run made the commit before its last one: when a run is killed, git may still push.
func (t *tip) isLatePush(p *Proposal) bool {
	return t != nil && t.Trailer(forge.TrailerRun) == p.RunID && t.hasSameChange(p)
}

// lease returns the commit that a push expects on the branch, or "" for a new branch.
func (t *tip) lease() string {
	if t == nil || !t.pushed {
		return ""
	}
	return t.SHA
}

// foreignCommitError returns the error for a branch that ends in a person's commit.
func foreignCommitError(branch string, t *tip) error {
	return outcome.Stopf(outcome.Conflict, "foreign_commit",
		"Branch %s ends in commit %s by %s, which no run made; merge or delete the branch, or give another with pull_request.branch.",
		branch, clip.SHA(t.SHA), t.ContentAuthor())
}

// push moves a branch in another repository to a commit. It fails if the branch is no longer at before. If
// pushing is not safe, it sets out.NotPushed and returns nil.
func (m Publisher) push(ctx context.Context, p *Proposal, to remote.Remote, commit string, before *tip, out *Publication) error {
	if out.NotPushed = m.whyNotPushed(p, to); out.NotPushed != "" {
		return nil
	}
	branch := p.Task.Branch
	defer m.Record.BeginStep(record.PhasePublishing, "push of "+branch+" to "+to.Name())()
	from, err := m.Workspace.Store()
	if err != nil {
		return err
	}
	options := remote.PushOptions{Branch: branch, Commit: commit, From: from, Expected: before.lease()}
	pushOnce := func() error {
		if err := m.uploadLFS(ctx, p.Change, to, branch); err != nil {
			return err
		}
		return remote.Push(ctx, to, options)
	}
	if err := workspace.RetryUnreachable(ctx, pushOnce); err != nil {
		return workspace.RemoteFailure(fmt.Sprintf("The branch %s cannot be pushed to %s", branch, to.Name()), err)
	}
	return m.recordPushed(branch, commit, to, out)
}

// whyNotPushed returns why a change is not pushed to a repository on this machine, or "".
func (m Publisher) whyNotPushed(p *Proposal, to remote.Remote) string {
	path, local := to.Local()
	if !local {
		return ""
	}
	if m.commandsMayWrite(p, path) { // the push would run hooks that the agent's commands wrote
		return fmt.Sprintf("commands of the run can write %s", to.Name())
	}
	if holds, err := gitops.Holds(path, p.Base.SHA); err == nil && !holds {
		return fmt.Sprintf("%s does not have the base commit yet: push %s first", to.Name(), workspace.BaseName(p.Base))
	}
	return ""
}

// commandsMayWrite reports whether the agent's commands can write path or a folder above it.
func (m Publisher) commandsMayWrite(p *Proposal, path string) bool {
	root := m.Workspace.Root()
	folders := append(m.Env.Absolute(root, p.Job.Policy.Writable), root)
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.PassesThrough(path, folder) })
}

// uploadLFS uploads the change's Git LFS contents. Without them the pushed branch cannot be checked out.
func (m Publisher) uploadLFS(ctx context.Context, change *gitops.ChangeSet, to remote.Remote, branch string) error {
	files, err := m.Workspace.Checkout().LFSFiles(ctx, change)
	if err != nil {
		return err
	}
	return remote.UploadLFS(ctx, to, branch, files)
}

// recordPushed records a push and sets out.Remote.
func (m Publisher) recordPushed(branch, commit string, to remote.Remote, out *Publication) error {
	out.Remote = to.Name()
	return m.recordStep(transcript.Publish{Step: "push", Branch: branch, HeadSHA: commit, Remote: out.Remote})
}

// requireBranchFits returns an error if the branch's name conflicts with another branch. git stores branches
// as paths, so "a" and "a/b" exclude each other. If branches cannot be listed, the push will report the
// problem.
func requireBranchFits(ctx context.Context, to remote.Remote, branch string) error {
	branches, err := remote.Branches(ctx, to)
	if err != nil {
		return ctx.Err()
	}
	if other := conflictingBranch(branches, branch); other != "" {
		return outcome.Stopf(outcome.InvalidInput, "branch_name",
			"%s has the branch %s, and %s cannot be beside it: give another name as pull_request.branch, or delete %s there.", to.Name(), other, branch, other)
	}
	return nil
}

// conflictingBranch returns the first branch whose path is above or below the given one, or "".
func conflictingBranch(branches map[string]string, branch string) string {
	for parent := path.Dir(branch); parent != "."; parent = path.Dir(parent) {
		if _, exists := branches[parent]; exists {
			return parent
		}
	}
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		if strings.HasPrefix(name, branch+"/") {
			return name
		}
	}
	return ""
}
