package runner

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// The publish modes.
const (
	publishGitHub = "github" // push to GitHub, open a pull request
	publishLocal  = "local"  // commit here, push to an origin on this machine
	publishNone   = "none"   // leave the change in the checkout
)

// PublishModes are the values of --publish.
func PublishModes() []string { return []string{publishGitHub, publishLocal, publishNone} }

// published is what became of the change.
type published struct {
	commit    string // on branch; empty when nothing was committed
	branch    string
	unchanged bool   // the branch held the same change already
	remote    string // where it was pushed, for people; empty: nowhere
	notPushed string // why not
	onGitHub  bool   // the commit was made there, and is not here
	pull      *forge.PullRequest
	operation string // on the pull request
}

func (p published) pullRequest() record.PullRequest {
	if p.pull == nil {
		return record.PullRequest{Operation: "none"}
	}
	return record.PullRequest{Number: p.pull.Number, URL: p.pull.URL, Operation: p.operation}
}

// publishMode is --publish, or GitHub where a token and a repository are known.
func (r *run) publishMode() string {
	switch {
	case r.options.Publish != "":
		return r.options.Publish
	case r.env.Token() != "" && r.repo.known():
		return publishGitHub
	}
	return publishLocal
}

// choosePublishing makes sure, before the first turn, that a change could be
// published: what stands in the way is cheaper to learn now.
func (r *run) choosePublishing(ctx context.Context) error {
	if r.publishMode() == publishNone {
		return nil
	}
	if err := r.wantsToken(); err != nil {
		return err
	}
	if err := r.canBranch(); err != nil {
		return err
	}
	if err := r.canSign(ctx); err != nil {
		return err
	}
	if r.publishMode() == publishGitHub {
		if err := r.canPropose(ctx); err != nil {
			return err
		}
	}
	tip, err := r.publishedTip(ctx)
	if err != nil {
		return err
	}
	if tip != nil && !tip.ours && tip.sha != r.base.SHA {
		return foreignCommit(r.branch, tip)
	}
	return nil
}

// wantsToken ends a run on an issue that would stop short of the pull request
// that its user most likely expects.
func (r *run) wantsToken() error {
	if r.options.Publish != "" || r.publishMode() == publishGitHub || r.task.issue == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "no_token",
		"A task from an issue ends in a pull request, which needs GITHUB_TOKEN; set it, or say --publish local to commit here only.")
}

// canBranch makes sure that the task's branch can stand beside the others.
func (r *run) canBranch() error {
	if r.branch == r.base.Branch {
		return outcome.Stopf(outcome.InvalidInput, "branch_is_base",
			"pull_request.branch is %s, which is the base itself; give another name.", r.branch)
	}
	if err := r.checkout.BranchFits(r.branch); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "branch_name", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return nil
}

// canPropose makes sure that a pull request could be opened, as far as asking
// tells.
func (r *run) canPropose(ctx context.Context) error {
	known, err := r.repo.HasCommit(ctx, r.base.SHA)
	if err != nil {
		return forgeFailure("The base commit cannot be looked up in "+r.repo.Name(), err)
	}
	if !known {
		return outcome.Stopf(outcome.InvalidInput, "base_not_pushed",
			"The base commit %s is not in %s; push %s first.", gitops.Short(r.base.SHA), r.repo.Name(), r.baseName())
	}
	return r.notClosedByPerson(ctx)
}

func (r *run) canReachGitHub() error {
	switch {
	case !r.repo.known():
		return outcome.Stopf(outcome.InvalidInput, "no_repository",
			"No GitHub repository is known to publish to: set repository.name, or use --publish local.")
	case r.env.Token() == "":
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"There is no GitHub token: set GITHUB_TOKEN, with the permissions contents: write and pull-requests: write, or use --publish local.")
	}
	return nil
}

// findPullRequest is the pull request of the task's branch: the open one, which
// may go to another base by now, else the newest; nil when there is none.
func (r *run) findPullRequest(ctx context.Context) (*forge.PullRequest, error) {
	pull, err := r.repo.FindPullRequest(ctx, r.branch, r.base.Branch)
	if err != nil {
		return nil, forgeFailure("The pull requests of "+r.repo.Name()+" cannot be listed", err)
	}
	return pull, nil
}

// notClosedByPerson ends a run whose pull request somebody closed: that is an
// answer.
func (r *run) notClosedByPerson(ctx context.Context) error {
	pull, err := r.findPullRequest(ctx)
	switch {
	case err != nil || pull == nil || pull.Merged:
		return err
	case pull.State == "open" && pull.Base != r.base.Branch:
		return r.otherBase(pull)
	case pull.State == "open":
		return r.openedAgain(ctx, pull)
	}
	if ours, err := r.closedByRun(ctx, pull); err != nil || ours {
		return err
	}
	return outcome.Stopf(outcome.Skipped, "pull_request_closed",
		"Pull request #%d for %s was closed without being merged; reopen it to have this task worked on again.", pull.Number, r.branch)
}

// otherBase ends a run whose pull request was given another base: a change that
// is on this one would take all of it along, and the base is not a run's to choose.
func (r *run) otherBase(pull *forge.PullRequest) error {
	return outcome.Stopf(outcome.Conflict, "other_base",
		"Pull request #%d for %s goes to %s, and this run is on %s; run with --set repository.base=%s, change its base back, or close it.",
		pull.Number, r.branch, pull.Base, r.base.Branch, pull.Base)
}

// tip is the end of the task's branch where it is published.
type tip struct {
	sha, tree, parent, author string
	run                       string // that made it
	ours                      bool   // made by runs alone
	pushed                    bool   // stands where a push goes, not in the checkout alone
}

// publishedTip asks GitHub, or looks into the repositories on this machine. It
// is nil when there is no such branch.
func (r *run) publishedTip(ctx context.Context) (*tip, error) {
	if r.publishMode() == publishGitHub {
		commit, err := lookUpBranch(ctx, r.repo, r.branch)
		if err != nil || commit == nil {
			return nil, err
		}
		return tipOf(infoOf(commit), true), nil
	}
	here, err := r.checkout.Tip(ctx, r.branch)
	if err != nil {
		return nil, fmt.Errorf("look up branch %s: %w", r.branch, err)
	}
	path, local := r.origin().Local()
	if !local {
		return tipOf(here, false), nil
	}
	there, err := gitops.ReadTip(ctx, path, r.branch)
	switch {
	case err != nil: // a push will say what is wrong with it
		return tipOf(here, false), nil
	case here != nil && !here.Ours():
		return tipOf(here, false), nil
	case there != nil:
		return tipOf(there, true), nil
	}
	return tipOf(here, false), nil
}

// infoOf is a commit of GitHub's as gitops tells of one.
func infoOf(c *forge.Commit) *gitops.CommitInfo {
	return &gitops.CommitInfo{SHA: c.SHA, Tree: gitops.Tree(c.Tree), Parents: c.Parents, Message: c.Message, Author: c.Author}
}

func tipOf(info *gitops.CommitInfo, pushed bool) *tip {
	if info == nil {
		return nil
	}
	t := &tip{sha: info.SHA, tree: string(info.Tree), author: info.Author, run: info.Trailer(gitops.TrailerRun), ours: info.Ours(), pushed: pushed}
	if len(info.Parents) == 1 {
		t.parent = info.Parents[0]
	}
	return t
}

func foreignCommit(branch string, t *tip) error {
	return outcome.Stopf(outcome.Conflict, "foreign_commit",
		"Branch %s ends in commit %s by %s, which no run made; merge or delete the branch, or give another with pull_request.branch.",
		branch, gitops.Short(t.sha), t.author)
}

// origin is the remote of the checkout.
func (r *run) origin() remote.Remote { return remote.Remote{URL: r.checkout.Origin()} }

// publishChange commits, pushes and opens the pull request, as far as the
// publish mode goes.
func (r *run) publishChange(ctx context.Context) error {
	if err := r.gitUnchanged(ctx); err != nil {
		return err
	}
	if r.changes.Empty() {
		if err := r.judgeLeftOut(); err != nil {
			return err
		}
		return r.closeVanished(ctx)
	}
	if err := r.judgeChanges(ctx); err != nil {
		return err
	}
	if r.heldBack() {
		return nil
	}
	if err := r.followBase(ctx); err != nil {
		return err
	}
	switch {
	case r.changes.Empty():
		return r.closeVanished(ctx)
	case r.heldBack():
		return nil
	}
	r.doubtDrift()
	if err := r.mayPushWorkflows(ctx); err != nil {
		return err
	}
	return r.publishOver(ctx)
}

// heldBack says that the change is not to be published, by the mode or because
// it is red.
func (r *run) heldBack() bool {
	return r.publishMode() == publishNone || !r.table.Passed && r.job.OnVerifyFailed == "none"
}

// publishOver publishes the change over what the branch holds.
func (r *run) publishOver(ctx context.Context) error {
	before, err := r.publishedTip(ctx)
	if err != nil {
		return err
	}
	switch {
	case before == nil:
	case !before.ours && before.sha != r.base.SHA:
		return foreignCommit(r.branch, before)
	case before.sha == r.committed && before.tree == string(r.changes.Tree):
		return r.releaseAgain(ctx, before)
	case before.tree == string(r.changes.Tree) && before.parent == r.base.SHA:
		return r.publishedAlready(ctx, before)
	}
	if err := r.release(ctx, before); err != nil {
		return err
	}
	return r.present(ctx)
}

// release commits the change and takes it to where the publish mode says. On
// GitHub the push decides; here the branch of the checkout does.
func (r *run) release(ctx context.Context, before *tip) error {
	commit, err := r.commitChange(ctx)
	if err != nil {
		return err
	}
	if _, _, err := r.writeBody(); err != nil { // it is there also when the push is refused
		return err
	}
	if r.publishMode() == publishGitHub {
		return r.releaseToGitHub(ctx, commit, before)
	}
	if err := r.switchCheckout(ctx, commit); err != nil {
		return err
	}
	r.published.commit, r.published.branch = commit, r.branch
	return r.push(ctx, commit, before)
}

func (r *run) releaseToGitHub(ctx context.Context, commit string, before *tip) error {
	take := r.push
	if r.published.onGitHub {
		take = r.releaseCommit
	}
	if err := take(ctx, commit, before); err != nil {
		if err := r.lostRace(ctx, err); err != nil {
			return err
		}
		return r.takeOverTip(ctx)
	}
	r.published.commit, r.published.branch = commit, r.branch
	if r.bundled() {
		return nil
	}
	if r.drift.inCheckout != nil {
		return r.restoreCheckout(ctx)
	}
	if err := r.switchToPushed(ctx, commit); err != nil {
		r.rec.Warn("checkout_not_switched", "The change is pushed, but the checkout could not be put on %s: %v", r.branch, err)
	}
	return nil
}

// takeOverTip goes on with what another run pushed, which is the same.
func (r *run) takeOverTip(ctx context.Context) error {
	now, err := r.publishedTip(ctx)
	if err != nil || now == nil {
		return err
	}
	r.published.commit, r.published.branch, r.published.unchanged = now.sha, r.branch, true
	if r.bundled() {
		return nil
	}
	return r.restoreCheckout(ctx)
}

// switchToPushed puts the checkout on the branch that was pushed.
func (r *run) switchToPushed(ctx context.Context, commit string) error {
	if err := r.fetchCommit(ctx, commit, false); err != nil { // it is here unless GitHub made it
		return err
	}
	return r.switchCheckout(ctx, commit)
}

// publishedAlready ends a run whose change stands on the branch since an
// earlier run. The checkout is put back; only a pull request that is missing is
// opened.
func (r *run) publishedAlready(ctx context.Context, before *tip) error {
	if !r.bundled() {
		if err := r.restoreCheckout(ctx); err != nil {
			return err
		}
	}
	r.published.commit, r.published.branch, r.published.unchanged = before.sha, r.branch, true
	return r.present(ctx)
}

// push takes the commit to where the publish mode says, over what stood there
// before and nothing else.
func (r *run) push(ctx context.Context, commit string, before *tip) error {
	to := r.remote()
	if r.publishMode() == publishLocal {
		to = r.origin()
		if _, local := to.Local(); !local {
			r.published.notPushed = "the checkout's origin is not on this machine"
			if to.URL == "" {
				r.published.notPushed = "the checkout has no origin"
			}
			return nil
		}
	}
	if path, local := to.Local(); local {
		if r.commandsWrite(path) { // a push runs the hooks of that repository
			r.published.notPushed = fmt.Sprintf("commands of the run can write %s", to.Name())
			return nil
		}
		if holds, err := gitops.Holds(path, r.base.SHA); err == nil && !holds {
			r.published.notPushed = fmt.Sprintf("%s does not have the base commit yet: push %s first", to.Name(), r.baseName())
			return nil
		}
	}
	options := remote.PushOptions{Branch: r.branch, Commit: commit, Git: r.findGit(r.checkout.Root()), Path: gitops.PathOutside(r.env.Get("PATH"), r.checkout.Root())}
	if before != nil && before.pushed {
		options.Expected = before.sha
	}
	if err := patiently(ctx, func() error { return r.pushOnce(ctx, to, options) }); err != nil {
		return remoteFailure(fmt.Sprintf("The branch %s cannot be pushed to %s", r.branch, to.Name()), err)
	}
	r.published.remote = to.Name()
	return r.rec.Append(transcript.TypePublish, transcript.Publish{Step: "push", Branch: r.branch, HeadSHA: commit, Remote: to.Name()})
}

// commandsWrite says whether a path lies where commands of the run can write, or is
// reached through that.
func (r *run) commandsWrite(path string) bool {
	folders := append(r.absolute(r.job.Policy.Writable), r.checkout.Root())
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.LeadsThrough(path, folder) })
}

func (r *run) pushOnce(ctx context.Context, to remote.Remote, options remote.PushOptions) error {
	pack, err := r.packForPush(ctx, options.Commit)
	if err != nil {
		return err
	}
	defer pack.Close()
	options.Pack = pack
	return remote.Push(ctx, to, options)
}

func (r *run) packForPush(ctx context.Context, commit string) (io.ReadCloser, error) {
	name := record.StateFolder + "/push.pack"
	if err := r.writePack(ctx, name, commit); err != nil {
		return nil, err
	}
	f, err := r.rec.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return f, nil
}
