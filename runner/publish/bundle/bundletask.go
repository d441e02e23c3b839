package bundle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// knownTask is what the second half knows about the task without the bundle: its configuration and the
// workflow's event.
type knownTask struct {
	job           *job.Job
	event         intake.Event
	subjectNumber int // number of the issue or pull request that is the event's task; 0 for none
}

// readKnownTask reads what is known before the bundle's base commit is checked out.
func (h SecondHalf) readKnownTask(ctx context.Context) (knownTask, error) {
	if h.Event.InActions {
		if err := h.Event.UnusableError(); err != nil {
			return knownTask{}, err
		}
	}
	j, err := h.knownJob(ctx)
	if err != nil {
		return knownTask{}, err
	}
	return knownTask{j, h.Event, subjectNumberOf(h.Event, j)}, refuseForksRun(h.Event)
}

// refuseForksRun returns an error if a fork's workflow run started this one. The fork's pull request may
// contain its own workflow with the first half's name, so its author may have written the whole bundle.
// trust.forks concerns events, not bundles.
func refuseForksRun(e intake.Event) error {
	if !e.InActions || e.Event == nil || e.WorkflowRun == nil {
		return nil
	}
	head := e.WorkflowRun.HeadRepository.Name()
	if head != "" && strings.EqualFold(head, e.Repository) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "fork", "The workflow run that started this one was for a fork, which can write the whole bundle; nothing of it is published.")
}

// knownJob returns the configuration of the commit that is checked out. On a pull request's event, the pull
// request's author may have written that commit. Then only the second half's own inputs count.
func (h SecondHalf) knownJob(ctx context.Context) (*job.Job, error) {
	if h.Event.Base() == "" {
		return h.loadTemplate(ctx)
	}
	return h.adoptSettings(h.Source.LoadInputs(ctx, h.Workspace.Commit()))
}

// taskEvents lists events that make their issue or pull request the task.
var taskEvents = []string{"issues", "issue_comment", "pull_request_review", "pull_request_review_comment", "workflow_dispatch", "repository_dispatch"}

// subjectNumberOf returns the number of the issue or pull request that is the event's task, or 0.
func subjectNumberOf(e intake.Event, j *job.Job) int {
	switch {
	case !e.InActions || e.Event == nil:
		return 0
	case j.Task.From != "event" || !slices.Contains(taskEvents, e.Name):
		return 0
	case e.PullRequest != nil:
		return e.PullRequest.Number
	case e.Issue != nil:
		return e.Issue.Number
	}
	if request, _ := e.Event.Request(actions.Triggers{}); request == nil { // no dispatch names one
		return 0
	}
	number, err := e.SubjectNumber()
	if err != nil {
		return 0 // the first half has refused this input
	}
	return number
}

// requester returns the account that made the request in the event, or zero. Dispatch events name none.
func (k knownTask) requester() actions.Account {
	e := k.event
	isDispatch := k.subjectNumber == 0 || e.PullRequest == nil && e.Issue == nil
	switch {
	case isDispatch:
		return actions.Account{}
	case e.Review != nil:
		return e.Review.User
	case e.Comment != nil:
		return e.Comment.User
	}
	return e.Sender
}

// verifyDestination checks the proposal's destination with the second half's own knowledge, and sets the base
// branch. branchNamed is the base branch that the bundle names, or "" for a detached HEAD.
func (k knownTask) verifyDestination(ctx context.Context, to publish.Forge, branchNamed string, p *publish.Proposal) error {
	in := to.Repo
	pull, err := k.readPull(ctx, in)
	if err != nil {
		return err
	}
	if p.Base.Branch, err = k.baseBranch(ctx, in, pull, branchNamed, p); err != nil {
		return err
	}
	if err := k.refuseOtherTask(in.Name(), pull, p.Task); err != nil {
		return err
	}
	return k.refuseBranchOfOtherTask(ctx, in, p)
}

// readPull returns the pull request of the event, or nil.
func (k knownTask) readPull(ctx context.Context, in forge.Repository) (*forge.PullRequest, error) {
	e := k.event
	switch {
	case !e.InActions || e.Event == nil || !strings.EqualFold(e.Repository, in.Name()):
	case e.PullRequest != nil:
		return intake.ReadPullRequest(ctx, in, e.PullRequest.Number)
	case e.Issue != nil && e.Issue.IsPull():
		return intake.ReadPullRequest(ctx, in, e.Issue.Number)
	}
	return nil, nil
}

// baseBranch returns the base branch for the pull request. It must be a branch that the second half knows by itself.
func (k knownTask) baseBranch(ctx context.Context, in forge.Repository, pull *forge.PullRequest, branchNamed string, p *publish.Proposal) (string, error) {
	known, knownReason, err := k.knownBases(ctx, in, pull)
	if err != nil {
		return "", err
	}
	branch := cmp.Or(branchNamed, known[0])
	if err := form.ValidateBranch(branch); err != nil {
		return "", invalidBundleError("its base: %s", outcome.WithoutFullStop(err))
	}
	wanted := p.Job.Repository.Base
	switch {
	case !slices.Contains(known, branch):
		return "", refusedBundleError("its base is %s, and %s; to open the pull request for %s, run agent-ci publish with --set repository.base=%s (AGENT_CI_REPOSITORY_BASE)",
			branch, knownReason, branch, branch)
	case wanted != "" && wanted != branch:
		return "", invalidBundleError("its base is %s, repository.base is %s", branch, wanted)
	case branch == p.Task.Branch:
		return "", invalidBundleError("its branch is its base")
	}
	return branch, nil
}

// knownBases returns the permitted base branches, the preferred one first, and why these are permitted.
func (k knownTask) knownBases(ctx context.Context, in forge.Repository, pull *forge.PullRequest) (branches []string, why string, err error) {
	if k.job.Repository.Base != "" {
		return []string{k.job.Repository.Base}, "repository.base is " + k.job.Repository.Base, nil
	}
	if pull != nil {
		branches, why = []string{pull.Base}, fmt.Sprintf("the event's pull request #%d has the base %s, ", pull.Number, pull.Base)
	}
	usual, err := intake.DefaultBranch(ctx, in)
	if err != nil {
		return nil, "", err
	}
	return append(branches, usual), why + "the default branch is " + usual, nil
}

// refuseOtherTask returns an error unless the bundle's branch belongs to its task, and its task is the event's.
func (k knownTask) refuseOtherTask(repository string, pull *forge.PullRequest, t intake.Task) error {
	if t.Branch != k.job.PullRequest.Branch && t.Branch != intake.BranchPrefix+t.Key {
		return refusedBundleError("its branch %s is not %s%s, that of its task; to publish that branch, run agent-ci publish with --set pull_request.branch=%s (AGENT_CI_PULL_REQUEST_BRANCH)",
			t.Branch, intake.BranchPrefix, t.Key, t.Branch)
	}
	if k.subjectNumber == 0 {
		return k.refuseOtherJob(repository, t)
	}
	if pull != nil {
		return refuseOtherPull(repository, pull, t)
	}
	subject := form.Issue{Repository: k.event.Repository, Number: k.subjectNumber}
	if !isTaskOf(t, subject) || !k.isKeyOfIssue(subject.Number, t.Key) && t.Branch != k.job.PullRequest.Branch {
		return otherTaskError("issue "+subject.String(), t)
	}
	return nil
}

// refuseOtherJob compares the bundle's issue and job name with the second half's job. It is for runs without a task
// in the event.
func (k knownTask) refuseOtherJob(repository string, t intake.Task) error {
	fits := k.isKeyOfJob(t.Key)
	if own, err := form.ParseIssue(k.job.Task.Issue); err == nil {
		if own.Repository == "" {
			own.Repository = repository
		}
		if !isTaskOf(t, own) {
			return refusedBundleError("it is of another task (%s) than the job of agent-ci publish, whose task.issue is %s", t.Branch, own)
		}
		fits = t.Key == k.job.Name || k.isKeyOfIssue(own.Number, t.Key)
	}
	if !fits && t.Branch != k.job.PullRequest.Branch {
		return refusedBundleError("it is of another task (%s) than the job of agent-ci publish; to publish that task, give agent-ci publish the job of the run (--job, or --set name=…)", t.Branch)
	}
	return nil
}

// isKeyOfJob reports whether a task key is the job's name, alone or with an issue number. Without a job name
// any key fits.
func (k knownTask) isKeyOfJob(key string) bool {
	name, number := intake.IssueOfKey(key)
	isNamedIssue := number != 0 && name == k.job.Name
	return k.job.Name == "" || key == k.job.Name || isNamedIssue
}

// isKeyOfIssue reports whether a task key belongs to issue number. Without a job name here, any name in the
// key fits.
func (k knownTask) isKeyOfIssue(number int, key string) bool {
	name, of := intake.IssueOfKey(key)
	return of == number && (k.job.Name == "" || name == k.job.Name)
}

// isTaskOf reports whether a task names an issue as its own.
func isTaskOf(t intake.Task, issue form.Issue) bool {
	return t.Issue != nil && t.Issue.Number == issue.Number && strings.EqualFold(t.Issue.Repository, issue.Repository)
}

// refuseOtherPull returns an error unless the task's branch is the head of the event's pull request, and both
// fix the same issue.
func refuseOtherPull(repository string, pull *forge.PullRequest, t intake.Task) error {
	fixes := ""
	if number := intake.IssueOfBranch(pull.Head); number != 0 {
		fixes = fmt.Sprintf("Fixes #%d", number)
	}
	closing := publish.Closing(t.Issue, repository)
	isHead := pull.Head == t.Branch && strings.EqualFold(pull.HeadRepository, repository)
	fixesOther := closing != "" && closing != fixes
	if !isHead || fixesOther {
		return otherTaskError(fmt.Sprintf("pull request #%d", pull.Number), t)
	}
	return nil
}

// otherTaskError returns the error for a bundle of another task than the event's. subject names the event's
// task.
func otherTaskError(subject string, t intake.Task) error {
	return refusedBundleError("it is of another task (%s) than the event, which is about %s; to publish that task, give agent-ci publish the job of the run (--job, or --set task.prompt=… or task.issue=…)",
		t.Branch, subject)
}

// fixesIssue matches the line with the issue in pull requests and commits of runs.
var fixesIssue = lazyregexp.New(`(?m)^Fixes #([0-9]{1,9})\r?$`)

// refuseBranchOfOtherTask returns an error if the branch was made for another issue, or has an open pull
// request for one. It is for runs without a task in the event.
func (k knownTask) refuseBranchOfOtherTask(ctx context.Context, in forge.Repository, p *publish.Proposal) error {
	branch := p.Task.Branch
	if k.subjectNumber != 0 || branch == k.job.PullRequest.Branch {
		return nil
	}
	pull, err := intake.FindPullRequest(ctx, in, branch, p.Base.Branch)
	if err != nil || pull != nil && pull.State != "open" {
		return err
	}
	tip, err := intake.LookUpBranch(ctx, in, branch)
	if err != nil {
		return err
	}
	what, texts := "Branch "+branch, ""
	if tip != nil && tip.MadeByRun() {
		texts = tip.Message
	}
	if pull != nil {
		what, texts = fmt.Sprintf("Pull request #%d", pull.Number), texts+"\n"+pull.Body
	}
	for _, m := range fixesIssue().FindAllStringSubmatch(texts, -1) {
		if number, _ := strconv.Atoi(m[1]); publish.Closing(p.Task.Issue, in.Name()) != fmt.Sprintf("Fixes #%d", number) {
			return outcome.Stopf(outcome.Conflict, "other_task",
				"%s was made for issue #%d, and the bundle is for another task; to replace it, add --set pull_request.branch=%s.", what, number, branch)
		}
	}
	return nil
}
