package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// pins are what the second half knows of the task without its bundle: from its
// own configuration and from the event of the workflow that both halves run in.
type pins struct {
	base    string // repository.base
	branch  string // pull_request.branch
	name    string // name, which is part of the key of an event's task
	subject int    // issue or pull request that the event brings as the task; 0 for none
	issue   string // task.issue, where this half has a task of its own
	pull    *forge.PullRequest
}

// readPins reads them before anything of the bundle chooses a commit.
func (r *run) readPins(ctx context.Context) error {
	if r.readEvent(ctx); r.env.InActions() && r.eventErr != nil && !errors.Is(r.eventErr, actions.ErrNoEvent) {
		return unusableEvent(r.eventErr)
	}
	if err := r.goBy(r.pinningSettings(ctx)); err != nil {
		return err
	}
	r.pins = pins{base: r.job.Repository.Base, branch: r.job.PullRequest.Branch, name: r.job.Name, subject: r.eventSubject(), issue: r.job.Task.Issue}
	return r.refuseForksRun()
}

// refuseForksRun ends a second half that a fork's run started. A pull request may
// bring a workflow that is named like the first half, so that who opened it wrote
// all of the bundle; trust.forks speaks of events, not of bundles.
func (r *run) refuseForksRun() error {
	if !r.env.InActions() || r.event == nil || r.event.WorkflowRun == nil {
		return nil
	}
	head := r.event.WorkflowRun.HeadRepository.Name()
	if head != "" && strings.EqualFold(head, r.env.Get("GITHUB_REPOSITORY")) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "fork", "The workflow run that started this one was for a fork, which can write the whole bundle; nothing of it is published.")
}

// pinningSettings are the configuration of the commit that the checkout stands
// on. On the event of a pull request its author may have written that commit:
// then only what this half was given counts.
func (r *run) pinningSettings(ctx context.Context) (*settings.Settings, error) {
	if r.eventBase() == "" {
		return r.source.LoadTemplate(ctx, r.baseCommit())
	}
	return r.source.LoadGiven(ctx, r.baseCommit())
}

// taskEvents are the events that bring an issue or a pull request as the task.
var taskEvents = []string{"issues", "issue_comment", "pull_request_review", "pull_request_review_comment", "workflow_dispatch", "repository_dispatch"}

// eventSubject is the number of the event's issue or pull request, where the
// event is the task.
func (r *run) eventSubject() int {
	e := r.event
	switch {
	case !r.env.InActions() || e == nil || !r.fromEvent() || !slices.Contains(taskEvents, e.Name):
		return 0
	case e.PullRequest != nil:
		return e.PullRequest.Number
	case e.Issue != nil:
		return e.Issue.Number
	}
	if request, _ := e.Request(actions.Triggers{}); request != nil {
		return request.Number
	}
	return 0
}

// eventAsker is who asked for the work, where the event is the task and tells.
// That of a dispatch names nobody as asking.
func (r *run) eventAsker() actions.Account {
	e := r.event
	switch {
	case r.pins.subject == 0 || e.PullRequest == nil && e.Issue == nil:
		return actions.Account{}
	case e.Review != nil:
		return e.Review.User
	case e.Comment != nil:
		return e.Comment.User
	}
	return e.Sender
}

// pinPull asks for the pull request that the event is about.
func (r *run) pinPull(ctx context.Context) error {
	number, e := 0, r.event
	switch {
	case !r.env.InActions() || e == nil || !strings.EqualFold(r.env.Get("GITHUB_REPOSITORY"), r.repo.Name()):
	case e.PullRequest != nil:
		number = e.PullRequest.Number
	case e.Issue != nil && e.Issue.OfPull():
		number = e.Issue.Number
	}
	if number == 0 {
		return nil
	}
	pull, err := readPullRequest(ctx, r.repo, number)
	r.pins.pull = pull
	return err
}

// findBundleBase names the branch that the pull request goes to: the one that
// this half knows, whatever the bundle says. A run on a detached HEAD knew none.
func (r *run) findBundleBase(ctx context.Context, bundle *transcript.View) error {
	known, why, err := r.knownBases(ctx)
	if err != nil {
		return err
	}
	branch := bundle.Workspace.Base
	if branch == "" {
		branch = known[0]
	}
	if err := job.ValidateBranch(branch); err != nil {
		return badBundle("its base: %s", outcome.Trimmed(err))
	}
	if !slices.Contains(known, branch) {
		return refusedBundle("its base is %s, and %s; if the pull request is to go to %s, say so to this half with --set repository.base=%s (AGENT_CI_REPOSITORY_BASE)",
			branch, why, branch, branch)
	}
	switch wanted := r.job.Repository.Base; {
	case wanted != "" && wanted != branch:
		return badBundle("its base is %s, repository.base is %s", branch, wanted)
	case branch == r.branch:
		return badBundle("its branch is its base")
	}
	r.base.Branch = branch
	return nil
}

// knownBases are the branches that the pull request may go to, and why.
func (r *run) knownBases(ctx context.Context) (branches []string, why string, err error) {
	if r.pins.base != "" {
		return []string{r.pins.base}, "repository.base is " + r.pins.base, nil
	}
	if pull := r.pins.pull; pull != nil {
		branches, why = []string{pull.Base}, fmt.Sprintf("the event's pull request #%d goes to %s, ", pull.Number, pull.Base)
	}
	usual, err := defaultBranch(ctx, r.repo)
	if err != nil {
		return nil, "", err
	}
	return append(branches, usual), why + "the default branch is " + usual, nil
}

// refuseOtherTask makes sure that the bundle's branch is that of its task, and
// its task the event's.
func (r *run) refuseOtherTask(bundle *transcript.View) error {
	key := bundle.Started.Key
	if r.branch != r.pins.branch && r.branch != runBranches+key {
		return refusedBundle("its branch %s is not %s%s, that of its task; if it is meant, say so to this half with --set pull_request.branch=%s (AGENT_CI_PULL_REQUEST_BRANCH)",
			r.branch, runBranches, key, r.branch)
	}
	if r.pins.subject == 0 {
		return r.refuseOtherJob(key)
	}
	if pull := r.pins.pull; pull != nil {
		return r.refuseOtherPull(pull)
	}
	subject := job.Issue{Repository: r.env.Get("GITHUB_REPOSITORY"), Number: r.pins.subject}
	if !r.isOf(subject) || !r.isKeyOf(subject.Number, key) && r.branch != r.pins.branch {
		return r.notOfEvent("issue " + subject.String())
	}
	return nil
}

// refuseOtherJob compares with the issue and the name of the job that this half
// was given, where no event tells the task.
func (r *run) refuseOtherJob(key string) error {
	fits := isKeyNamed(r.pins.name, key)
	if own, err := job.ParseIssue(r.pins.issue); err == nil {
		if own.Repository == "" {
			own.Repository = r.repo.Name()
		}
		if !r.isOf(own) {
			return refusedBundle("it is of another task (%s) than this half's own, which is issue %s (task.issue)", r.branch, own)
		}
		fits = key == r.pins.name || r.isKeyOf(own.Number, key)
	}
	if !fits && r.branch != r.pins.branch {
		return refusedBundle("it is of another task (%s) than the job of this half; if that task is meant, give this half the job of the first (--job, or --set name=…)", r.branch)
	}
	return nil
}

// isKeyNamed says whether key is that of a job with this name: the name itself,
// or with the issue that an event brought. A job without one has any.
func isKeyNamed(name, key string) bool {
	rest, named := strings.CutPrefix(key, name)
	return name == "" || named && (rest == "" || rest[0] == '-' && issueInBranch.FindString(rest) == rest)
}

// isOf says whether the bundle is of an issue, as it tells.
func (r *run) isOf(issue job.Issue) bool {
	is := r.task.issue
	return is != nil && is.Number == issue.Number && strings.EqualFold(is.Repository, issue.Repository)
}

// isKeyOf says whether key is that of an issue which an event brought. Which name
// the first half had is not known where this one has none.
func (r *run) isKeyOf(number int, key string) bool {
	wanted := fmt.Sprintf("issue-%d", number)
	if r.pins.name != "" {
		return key == r.pins.name+"-"+wanted
	}
	return key == wanted || strings.HasSuffix(key, "-"+wanted)
}

func (r *run) refuseOtherPull(pull *forge.PullRequest) error {
	fixes := ""
	if m := issueInBranch.FindStringSubmatch(strings.TrimPrefix(pull.Head, runBranches)); m != nil {
		fixes = "Fixes #" + m[1]
	}
	if pull.Head != r.branch || !strings.EqualFold(pull.HeadRepository, r.repo.Name()) || r.closing() != "" && r.closing() != fixes {
		return r.notOfEvent(fmt.Sprintf("pull request #%d", pull.Number))
	}
	return nil
}

func (r *run) notOfEvent(subject string) error {
	return refusedBundle("it is of another task (%s) than the event, which is about %s; if that task is meant, give this half the job of the first (--job, or --set task.prompt=… or task.issue=…)",
		r.branch, subject)
}

// fixesIssue is how the pull requests and commits of runs name their issue.
var fixesIssue = regexp.MustCompile(`(?m)^Fixes #([0-9]{1,9})\r?$`)

// leaveOthersAlone ends a second half, which no event or job tells whose branch
// this is, where what is open there was made for another issue.
func (r *run) leaveOthersAlone(ctx context.Context) error {
	if r.pins.subject != 0 || r.branch == r.pins.branch {
		return nil
	}
	pull, err := intake.FindPullRequest(ctx, r.repo, r.branch, r.base.Branch)
	if err != nil || pull != nil && pull.State != "open" {
		return err
	}
	tip, err := lookUpBranch(ctx, r.repo, r.branch)
	if err != nil {
		return err
	}
	what, texts := "Branch "+r.branch, ""
	if tip != nil && infoOf(tip).Ours() {
		texts = tip.Message
	}
	if pull != nil {
		what, texts = fmt.Sprintf("Pull request #%d", pull.Number), texts+"\n"+pull.Body
	}
	for _, m := range fixesIssue.FindAllStringSubmatch(texts, -1) {
		if number, _ := strconv.Atoi(m[1]); r.closing() != fmt.Sprintf("Fixes #%d", number) {
			return outcome.Stopf(outcome.Conflict, "other_task",
				"%s was made for issue #%d, and the bundle is of another task; if it is to take its place, say so with --set pull_request.branch=%s.", what, number, r.branch)
		}
	}
	return nil
}

// openBundleCheckout opens the checkout, whose commit says what this half goes by
// until the base is known.
func (r *run) openBundleCheckout(ctx context.Context) error {
	dir := r.options.Dir
	if dir == "" {
		dir = "."
	}
	state, err := r.rec.MakeFolder(record.StateFolder)
	if err != nil {
		return err
	}
	r.checkout, err = gitops.Open(ctx, gitops.Options{Dir: dir, Git: r.findGit(dir), State: state})
	return checkoutFailureOrNil(err)
}
