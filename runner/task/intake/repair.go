package intake

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// The commit trailers for repair attempts on the pull request: their number, and their total cost.
// Both include the attempt of the commit itself.
const (
	repairTrailer = "Agent-CI-Repair"
	spentTrailer  = "Agent-CI-Spent"
)

// RepairMark is the start of the single comment about repairs.
const RepairMark = "<!-- agent-ci: repair -->\n"

// Repair is one repair attempt on a run's own pull request.
type Repair transcript.Repair

// Trailers returns the commit trailers for all attempts, including this one. cost is the cost of
// this attempt, or nil if unknown.
func (r *Repair) Trailers(cost *float64) []string {
	if r == nil {
		return nil
	}
	all := []string{fmt.Sprintf("%s: %d", repairTrailer, r.Attempt)}
	if spent := r.TotalUSD(cost); spent > 0 {
		all = append(all, spentTrailer+": "+FormatDollars(spent))
	}
	return all
}

// TotalUSD returns the cost of all attempts, including this one.
func (r *Repair) TotalUSD(cost *float64) float64 {
	if cost == nil {
		return r.SpentUSD
	}
	return r.SpentUSD + *cost
}

// FormatDollars formats an amount with four decimals, for commit trailers and marks.
func FormatDollars(amount float64) string { return strconv.FormatFloat(amount, 'f', 4, 64) }

// ParseTrailers returns the number and cost of repair attempts from a commit's trailers. An unreadable
// value counts as more than any limit.
func ParseTrailers(commit *forge.Commit) (attempts int, spent float64) {
	return ReadAttempts(commit.Trailer(repairTrailer)), ReadDollars(commit.Trailer(spentTrailer))
}

// ReadAttempts parses a number of attempts. "" is 0. An invalid text counts as more than any limit.
func ReadAttempts(text string) int {
	n, err := strconv.Atoi(cmp.Or(text, "0"))
	if err != nil || n < 0 {
		return math.MaxInt32
	}
	return n
}

// maxDollars exceeds any limit, and still fits into the marks.
const maxDollars = 100_000_000

// ReadDollars parses an amount in dollars. "" is 0. An invalid text counts as more than any limit.
func ReadDollars(text string) float64 {
	d, err := strconv.ParseFloat(cmp.Or(text, "0"), 64)
	if err != nil || !(d >= 0) {
		return maxDollars
	}
	return min(d, maxDollars)
}

// RepairEvent returns the event of a repair requested by a command, from a person or a schedule. It
// replaces any workflow event. named is the pull request, in a form of form.ParseIssue. server is the root of the
// forge's pages.
func RepairEvent(named, server string, hasToken bool) (Event, error) {
	pull, err := form.ParseIssue(named)
	if err != nil || pull.Repository == "" {
		return Event{}, outcome.Stopf(outcome.InvalidInput, "pull_request", "%q names no pull request; give it as OWNER/REPO#N.", named)
	}
	if at := form.IssueServer(named); at != "" && !sameHost(at, server) {
		return Event{}, outcome.Stopf(outcome.InvalidInput, "pull_request",
			"The pull request is on %s, and the run asks %s: give a pull request of that, or set GITHUB_SERVER_URL and GITHUB_API_URL.", at, server)
	}
	return Event{
		Event: &actions.Event{Name: "repair"}, Surroundings: Surroundings{Repository: pull.Repository, HasToken: hasToken}, repairRequest: actions.RepairRequest("agent-ci repair", pull.Number, ""),
	}, nil
}

// admitRepair reads the pull request with failed checks. The cause of the event is irrelevant: the
// last commit of the branch decides. It must be a run's unchanged commit, pushed by the token's own
// account. The text of a commit proves neither, so the forge is asked for the pusher.
func (s *Source) admitRepair(ctx context.Context) (*forge.PullRequest, error) {
	if !s.Event.HasToken {
		return nil, outcome.Stopf(outcome.InvalidInput, "no_token", "Repairing a pull request needs a token: set GITHUB_TOKEN.")
	}
	if !s.Publishes || s.Job.Publish.IsFeedback() {
		return nil, outcome.Stopf(outcome.InvalidInput, "repair_publish", "A repair pushes its change itself; remove --publish and publish.as.")
	}
	pull, err := s.pullToRepair(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkNotStopped(pull); err != nil {
		return nil, err
	}
	switch {
	case !strings.EqualFold(pull.HeadRepository, s.Event.Repository):
		return nil, skipPull(pull, "fork", "comes from a fork, whose branch no run repairs: it belongs to somebody outside")
	case !IsRunBranch(pull.Head):
		return nil, skipPull(pull, "foreign_branch", "is a person's (its branch is not below %s), and only those of runs are repaired", BranchPrefix)
	case s.Job.Repair.Attempts == 0:
		return nil, skipPull(pull, "repair_limit", "is not repaired, as the job has repair.attempts: 0")
	}
	return pull, s.requireOwnHead(ctx, pull)
}

// skipPull returns the outcome skipped for a pull request. The format continues a sentence about it.
func skipPull(pull *forge.PullRequest, reason, format string, args ...any) error {
	return outcome.Stopf(outcome.Skipped, reason, "Pull request #%d %s: %s.", pull.Number, fmt.Sprintf(format, args...), pull.URL)
}

// checkNotStopped returns an error if a person closed the pull request or added the stop label.
func (s *Source) checkNotStopped(pull *forge.PullRequest) error {
	stop := s.Job.Repair.StopLabel
	switch {
	case pull.State != "open":
		return skipPull(pull, "pull_request_closed", "is closed, and nothing of it is repaired")
	case stop != "" && forge.HasName(pull.Labels, stop):
		return skipPull(pull, "hands_off", "has the label %q, with which it is left alone (repair.stop_label)", stop)
	}
	return nil
}

// RecheckNotStopped reads the pull request again. It returns an error if a person has stopped the repair.
func (s *Source) RecheckNotStopped(ctx context.Context, number int) error {
	pull, err := ReadPullRequest(ctx, s.eventRepository(), number)
	if err != nil {
		return err
	}
	return s.checkNotStopped(pull)
}

// pullToRepair returns the pull request to repair: that with the request's number, else an open one with
// the request's commit as its head, preferably of a run. It stores the number in the request.
func (s *Source) pullToRepair(ctx context.Context) (*forge.PullRequest, error) {
	if s.Request.Number != 0 {
		return ReadPullRequest(ctx, s.eventRepository(), s.Request.Number)
	}
	if run := s.Event.WorkflowRun; run != nil && !strings.EqualFold(run.HeadRepository.Name(), s.Event.Repository) {
		return nil, outcome.Stopf(outcome.Skipped, "fork", "The checks ran for a fork, and agent-ci repairs no branches of forks.")
	}
	pulls, err := s.eventRepository().PullRequestsWith(ctx, s.Request.SHA)
	if err != nil {
		return nil, ForgeFailure("The pull requests of commit "+clip.SHA(s.Request.SHA)+" cannot be listed", err)
	}
	if len(pulls) == 0 {
		return nil, outcome.Stopf(outcome.Skipped, "head_moved",
			"No open pull request ends in commit %s, which the checks ran on; there is nothing to repair.", clip.SHA(s.Request.SHA))
	}
	ofRun := slices.IndexFunc(pulls, func(p *forge.PullRequest) bool {
		return strings.EqualFold(p.HeadRepository, s.Event.Repository) && IsRunBranch(p.Head)
	})
	chosen := pulls[max(ofRun, 0)] // the first one if none is of a run
	s.Request.Number = chosen.Number
	return ReadPullRequest(ctx, s.eventRepository(), s.Request.Number) // lists omit its state relative to its base
}

// requireOwnHead returns an error unless the branch ends in a commit made by a run and pushed by the
// token's account. It stores the commit for RepairedCommit, and its time as that of the request.
func (s *Source) requireOwnHead(ctx context.Context, pull *forge.PullRequest) error {
	tip, err := LookUpBranch(ctx, s.eventRepository(), pull.Head)
	switch {
	case err != nil:
		return err
	case tip == nil:
		return skipPull(pull, "foreign_branch", "has no branch %s any more", pull.Head)
	case s.Request.SHA != "" && tip.SHA != s.Request.SHA:
		return skipPull(pull, "head_moved", "has new commits since the checks ran on %s, and those are looked at by themselves", clip.SHA(s.Request.SHA))
	}
	if !tip.MadeByRun() {
		return skipPull(pull, "foreign_commit", "ends in commit %s by %s, which no run made: a person has taken it over", clip.SHA(tip.SHA), tip.ContentAuthor())
	}
	pusher, account, isOwn, err := FindPusher(ctx, s.Forge, s.eventRepository(), pull.Head, tip.SHA)
	if err != nil {
		return err
	}
	if !isOwn {
		return skipPull(pull, "foreign_commit", "ends in commit %s, which %s pushed, and this token is %s's: only what that account pushed is repaired",
			clip.SHA(tip.SHA), cmp.Or(pusher.Login, "nobody that GitHub tells of"), cmp.Or(account, "nobody"))
	}
	s.repairHead = tip
	s.Request.RequestedAt = tip.Committed // nobody asks after that
	return nil
}

// FindPusher returns who moved the branch to commit sha, the token's login, and whether they are the same.
func FindPusher(ctx context.Context, client forge.Forge, repository forge.Repository, branch, sha string) (pusher forge.User, account string, isSame bool, err error) {
	if account, err = client.ActingAs(ctx); err != nil {
		return pusher, account, false, ForgeFailure("The account of the token cannot be asked for", err)
	}
	if pusher, err = repository.PushedBy(ctx, branch, sha); err != nil {
		return pusher, account, false, ForgeFailure("Who pushed to "+branch+" cannot be asked for", err)
	}
	return pusher, account, account != "" && strings.EqualFold(pusher.Login, account), nil
}

// RepairedCommit returns the last commit of the pull request under repair, or nil for another task.
func (s *Source) RepairedCommit() *forge.Commit { return s.repairHead }
