package bundle

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// pins is the second half's own knowledge of the task, from its configuration and the workflow's
// event.
type pins struct {
	job     *job.Job
	event   intake.Event
	subject int // issue or pull request that the event brings as the task; 0 for none
}

// readPins reads the pins before anything of the bundle chooses a commit.
func (h SecondHalf) readPins(ctx context.Context) (pins, error) {
	if h.Event.InActions {
		if err := h.Event.Unusable(); err != nil {
			return pins{}, err
		}
	}
	j, err := h.pinningJob(ctx)
	if err != nil {
		return pins{}, err
	}
	return pins{j, h.Event, subjectOf(h.Event, j)}, refuseForksRun(h.Event)
}

// refuseForksRun ends a second half started by a fork's run. A pull request may include a workflow
// named like the first half, whose author then wrote the whole bundle; trust.forks is about events,
// not bundles.
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

// pinningJob returns the checked out commit's configuration. On a pull request's event its author
// may have written that commit, so only this half's own input counts.
func (h SecondHalf) pinningJob(ctx context.Context) (*job.Job, error) {
	if h.Event.Base() == "" {
		return h.template(ctx)
	}
	return h.adoptSettings(h.Source.LoadGiven(ctx, h.Workspace.Commit()))
}

// taskEvents lists events whose issue or pull request is the task.
var taskEvents = []string{"issues", "issue_comment", "pull_request_review", "pull_request_review_comment", "workflow_dispatch", "repository_dispatch"}

// subjectOf returns the number of the task's issue or pull request in the event, or 0.
func subjectOf(e intake.Event, j *job.Job) int {
	switch {
	case !e.InActions || e.Event == nil || j.Task.From != "event" || !slices.Contains(taskEvents, e.Name):
		return 0
	case e.PullRequest != nil:
		return e.PullRequest.Number
	case e.Issue != nil:
		return e.Issue.Number
	}
	if request, _ := e.Event.Request(actions.Triggers{}); request == nil {
		return 0
	}
	number, err := e.Subject()
	if err != nil {
		return 0 // the half that ran the agent refused it
	}
	return number
}

// asker returns the requester, if the event is the task and names one. A dispatch does not.
func (k pins) asker() actions.Account {
	e := k.event
	switch {
	case k.subject == 0 || e.PullRequest == nil && e.Issue == nil:
		return actions.Account{}
	case e.Review != nil:
		return e.Review.User
	case e.Comment != nil:
		return e.Comment.User
	}
	return e.Sender
}

// verifyDestination verifies the proposal's destination from this half's knowledge and names the base branch.
// branchNamed is the base branch that the bundle names, "" for a detached HEAD.
func (k pins) verifyDestination(ctx context.Context, to publish.Forge, branchNamed string, p *publish.Proposal) error {
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
	return k.leaveOthersAlone(ctx, in, p)
}

// readPull returns the event's pull request, or nil.
func (k pins) readPull(ctx context.Context, in forge.Repository) (*forge.PullRequest, error) {
	e := k.event
	switch {
	case !e.InActions || e.Event == nil || !strings.EqualFold(e.Repository, in.Name()):
	case e.PullRequest != nil:
		return intake.ReadPullRequest(ctx, in, e.PullRequest.Number)
	case e.Issue != nil && e.Issue.OfPull():
		return intake.ReadPullRequest(ctx, in, e.Issue.Number)
	}
	return nil, nil
}

// baseBranch returns the pull request's base branch, known to this half regardless of the bundle.
func (k pins) baseBranch(ctx context.Context, in forge.Repository, pull *forge.PullRequest, branchNamed string, p *publish.Proposal) (string, error) {
	known, why, err := k.knownBases(ctx, in, pull)
	if err != nil {
		return "", err
	}
	branch := cmp.Or(branchNamed, known[0])
	if err := form.ValidateBranch(branch); err != nil {
		return "", badBundle("its base: %s", outcome.WithoutFullStop(err))
	}
	wanted := p.Job.Repository.Base
	switch {
	case !slices.Contains(known, branch):
		return "", refusedBundle("its base is %s, and %s; to open the pull request for %s, run agent-ci publish with --set repository.base=%s (AGENT_CI_REPOSITORY_BASE)",
			branch, why, branch, branch)
	case wanted != "" && wanted != branch:
		return "", badBundle("its base is %s, repository.base is %s", branch, wanted)
	case branch == p.Task.Branch:
		return "", badBundle("its branch is its base")
	}
	return branch, nil
}

// knownBases returns the permitted base branches with the reason.
func (k pins) knownBases(ctx context.Context, in forge.Repository, pull *forge.PullRequest) (branches []string, why string, err error) {
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

// refuseOtherTask verifies that the bundle's branch is its task's, and the task the event's.
func (k pins) refuseOtherTask(repository string, pull *forge.PullRequest, t intake.Task) error {
	if t.Branch != k.job.PullRequest.Branch && t.Branch != intake.BranchPrefix+t.Key {
		return refusedBundle("its branch %s is not %s%s, that of its task; to publish that branch, run agent-ci publish with --set pull_request.branch=%s (AGENT_CI_PULL_REQUEST_BRANCH)",
			t.Branch, intake.BranchPrefix, t.Key, t.Branch)
	}
	if k.subject == 0 {
		return k.refuseOtherJob(repository, t)
	}
	if pull != nil {
		return refuseOtherPull(repository, pull, t)
	}
	subject := form.Issue{Repository: k.event.Repository, Number: k.subject}
	if !isOf(t, subject) || !k.isKeyOf(subject.Number, t.Key) && t.Branch != k.job.PullRequest.Branch {
		return notOfEvent("issue "+subject.String(), t)
	}
	return nil
}

// refuseOtherJob compares issue and job name with this half's, if no event tells the task.
func (k pins) refuseOtherJob(repository string, t intake.Task) error {
	fits := k.isKeyNamed(t.Key)
	if own, err := form.ParseIssue(k.job.Task.Issue); err == nil {
		if own.Repository == "" {
			own.Repository = repository
		}
		if !isOf(t, own) {
			return refusedBundle("it is of another task (%s) than the job of agent-ci publish, whose task.issue is %s", t.Branch, own)
		}
		fits = t.Key == k.job.Name || k.isKeyOf(own.Number, t.Key)
	}
	if !fits && t.Branch != k.job.PullRequest.Branch {
		return refusedBundle("it is of another task (%s) than the job of agent-ci publish; to publish that task, give agent-ci publish the job of the run (--job, or --set name=…)", t.Branch)
	}
	return nil
}

// isKeyNamed reports whether key belongs to the known job name: the name, or with an event's issue.
// Without a name any key fits.
func (k pins) isKeyNamed(key string) bool {
	name, number := intake.IssueOfKey(key)
	return k.job.Name == "" || key == k.job.Name || number != 0 && name == k.job.Name
}

// isKeyOf reports whether key belongs to an event's issue. Without a name here, the first half's
// name is unknown.
func (k pins) isKeyOf(number int, key string) bool {
	name, of := intake.IssueOfKey(key)
	return of == number && (k.job.Name == "" || name == k.job.Name)
}

// isOf says whether the task is of an issue, as it tells.
func isOf(t intake.Task, issue form.Issue) bool {
	return t.Issue != nil && t.Issue.Number == issue.Number && strings.EqualFold(t.Issue.Repository, issue.Repository)
}

func refuseOtherPull(repository string, pull *forge.PullRequest, t intake.Task) error {
	fixes := ""
	if number := intake.IssueOfBranch(pull.Head); number != 0 {
		fixes = fmt.Sprintf("Fixes #%d", number)
	}
	closing := publish.Closing(t.Issue, repository)
	if pull.Head != t.Branch || !strings.EqualFold(pull.HeadRepository, repository) || closing != "" && closing != fixes {
		return notOfEvent(fmt.Sprintf("pull request #%d", pull.Number), t)
	}
	return nil
}

func notOfEvent(subject string, t intake.Task) error {
	return refusedBundle("it is of another task (%s) than the event, which is about %s; to publish that task, give agent-ci publish the job of the run (--job, or --set task.prompt=… or task.issue=…)",
		t.Branch, subject)
}

// fixesIssue is how the pull requests and commits of runs name their issue.
var fixesIssue = regexp.MustCompile(`(?m)^Fixes #([0-9]{1,9})\r?$`)

// leaveOthersAlone ends a second half without event or job whose branch has an open pull request
// for another issue.
func (k pins) leaveOthersAlone(ctx context.Context, in forge.Repository, p *publish.Proposal) error {
	branch := p.Task.Branch
	if k.subject != 0 || branch == k.job.PullRequest.Branch {
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
	if tip != nil && tip.Ours() {
		texts = tip.Message
	}
	if pull != nil {
		what, texts = fmt.Sprintf("Pull request #%d", pull.Number), texts+"\n"+pull.Body
	}
	for _, m := range fixesIssue.FindAllStringSubmatch(texts, -1) {
		if number, _ := strconv.Atoi(m[1]); publish.Closing(p.Task.Issue, in.Name()) != fmt.Sprintf("Fixes #%d", number) {
			return outcome.Stopf(outcome.Conflict, "other_task",
				"%s was made for issue #%d, and the bundle is for another task; to replace it, add --set pull_request.branch=%s.", what, number, branch)
		}
	}
	return nil
}
