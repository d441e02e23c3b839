package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Proposal is a judged change with its description.
type Proposal struct {
	RunID        string
	Job          *job.Job
	Task         intake.Task // the change goes to its branch
	Base         gitops.Base // base of the change
	Change       *gitops.ChangeSet
	Verification transcript.Verify // results of the checks on the change
	Summary      string
	Cost         *float64      // cost of the work in US dollars; nil if unknown
	Stopped      *outcome.Stop // set if a limit stopped the agent

	// InCheckout is the change in the work tree. It is nil for a change made elsewhere; publishing then does
	// not touch the work tree.
	InCheckout *gitops.ChangeSet
	// Judge returns an error for a change that may not be published. The change and the job may be those on a moved base.
	Judge func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error
	// Inspection has the signs found in the change that do not refuse it. Judge updates it.
	Inspection *transcript.Inspection
	// Checks repeats the checks on a moved base; nil if impossible.
	Checks Checks
	// Lessons are the lessons that the change proposes; nil for none.
	Lessons ProposedLessons
	// Bundle has the rules for a change from a bundle; nil for the run's own change.
	Bundle BundleRules
	// Hooks may refuse the change before it is published; nil for none.
	Hooks *hooks.Hooks

	CommitFacts
	descriptionFacts
}

// CommitFacts is what a proposal's commit depends on besides the change.
type CommitFacts struct {
	Key           *sshsig.Key // signs the commit; nil for none
	EarlierCommit string      // commit that this run made before it was killed; "" for none
	ChainHead     string      // digest of a closed transcript; "" while the transcript is open
}

// descriptionFacts is what publishing adds for the description.
type descriptionFacts struct {
	lessons   *transcript.Lessons // set if the change has only these lessons
	movedFrom gitops.Base         // earlier base, if the change followed a moved base; else zero
	notes     []string            // warnings after the transcript was closed
	facts     []string            // statements for the pull request that are no warnings

	earlierRequests []sections.Request // earlier requests on the pull request; nil before they are read
}

// Checks runs the checks of a change again.
type Checks interface {
	// VerifyOnNewBase returns the latest results even with an error. table has those on the earlier base.
	VerifyOnNewBase(ctx context.Context, table transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error)
}

// ProposedLessons knows the lessons in a change.
type ProposedLessons interface {
	// Rebase merges a change with its lessons onto another base.
	Rebase(ctx context.Context, change *gitops.ChangeSet, base gitops.Base) (*gitops.ChangeSet, error)
	// ForReviewers returns the lessons in a change, or nil without any.
	ForReviewers(change *gitops.ChangeSet) (*transcript.Lessons, error)
}

// BundleRules protects a project from the author of a bundle.
type BundleRules interface {
	// RequireBase returns an error if the bundle's base is not part of its base branch.
	RequireBase(base gitops.Base, now BaseBranch) error
	// JobOn reads the job on a moved base.
	JobOn(ctx context.Context, base gitops.Base) (*job.Job, error)
}

// failsUnpublished reports whether checks failed and the job does not publish such a change.
func (p *Proposal) failsUnpublished() bool {
	return !p.Verification.Passed && p.Job.OnVerifyFailed == "none"
}

// Publication is the result of publishing, as far as it got.
type Publication struct {
	Base         gitops.Base // base of the published change, which may have moved
	Change       *gitops.ChangeSet
	Verification transcript.Verify // results of the checks on Change
	Draft        bool              // must not be merged yet; the body says why
	InBase       bool              // the moved base already has the whole change

	Commit         string // tip of Branch; "" if nothing was committed
	Branch         string
	Unchanged      bool   // the branch already had the same change
	whyNotSwitched string // sentence on why the checkout is not on the branch; "" if it is
	Remote         string // where the commit was pushed, for people; "" if it was not
	NotPushed      string // why the commit was not pushed
	Pull           *forge.PullRequest
	Operation      string             // what was done to Pull: created, updated, none
	OpenPullOfTask *forge.PullRequest // an earlier run's open pull request, if this run changed nothing
	BodyFile       string             // file with the body in the run directory; "" if not written
}

// changedReason returns the reason for the outcome changed.
func (p *Publication) changedReason() string {
	switch {
	case p.Commit == "":
		return "left_in_checkout"
	case p.Pull != nil:
		return "pull_request"
	case p.Remote != "":
		return "pushed"
	}
	return "committed"
}

// GoneTree names a replay's temporary tree. It no longer exists when people read the name.
const GoneTree = "the replay's temporary tree"

// DescribeChange says where the change is, and what a person does next. where names the checkout.
func (p *Publication) DescribeChange(where string) string {
	place, next := p.describePlace(where)
	switch {
	case p.Commit != "" && !p.Verification.Passed:
		place += ". Do not merge it."
	case next == "":
		place += "."
	case p.Draft:
		place += ". Before you merge it, read in the body why it would be a draft."
	default:
		place += "; " + next + "."
	}
	return strings.TrimSpace(place + " " + p.whyNotSwitched)
}

// describePlace returns where the change is, without a full stop, and the next step or "".
func (p *Publication) describePlace(where string) (place, next string) {
	short := clip.SHA(p.Commit)
	switch {
	case p.Commit == "" && where == GoneTree:
		return fmt.Sprintf("The change was made in %s, which is removed", where), "give --out to keep it"
	case p.Commit == "":
		return fmt.Sprintf("The change is in %s, uncommitted", where), "git status lists its files, and git diff shows all but new ones"
	case p.Pull != nil && p.Operation == "none":
		return fmt.Sprintf("Pull request #%d holds the same change since an earlier run: %s", p.Pull.Number, p.Pull.URL), ""
	case p.alreadyPublished():
		return fmt.Sprintf("Branch %s holds the same change since an earlier run (commit %s)", p.Branch, short), ""
	case p.Pull != nil:
		return fmt.Sprintf("Pull request #%d was %s: %s", p.Pull.Number, p.Operation, p.Pull.URL), ""
	case p.Remote != "":
		return fmt.Sprintf("The change is commit %s on %s, pushed to %s", short, p.Branch, p.Remote), "review it and merge"
	}
	return fmt.Sprintf("The change is commit %s on %s in %s, not pushed as %s", short, p.Branch, where, p.NotPushed), "review it, and push the branch"
}

// alreadyPublished reports whether an earlier run published the same change.
func (p *Publication) alreadyPublished() bool { return p.Unchanged && p.Operation != "created" }

// DescribeOpenPull returns a sentence about the open pull request of an earlier run, to append to the message
// of a run that changed nothing. It returns "" if there is none.
func (p *Publication) DescribeOpenPull() string {
	if p.OpenPullOfTask == nil {
		return ""
	}
	return fmt.Sprintf(" Pull request #%d of an earlier run stays open: %s. Comment on it to ask for more, or close it.", p.OpenPullOfTask.Number, p.OpenPullOfTask.URL)
}

// Outcome returns the outcome of a run with a change, published or not. stopped is the limit that stopped the
// work, or nil. branch is the task's branch. where names the checkout.
func (p *Publication) Outcome(rec *record.Record, stopped *outcome.Stop, branch, where string) *outcome.Stop {
	committed := ""
	if p.Commit != "" {
		committed = " " + p.DescribeChange(where)
	}
	red := p.describeRedChecks(rec)
	switch {
	case stopped != nil:
		stop := *stopped
		if committed != "" && red != "" {
			stop.Message += " " + red
		}
		stop.Message += committed
		return &stop
	case !p.Verification.Passed:
		return outcome.Stopf(outcome.VerifyFailed, "red", "%s", red+committed)
	case p.alreadyPublished():
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"Branch %s already has this change (commit %s); nothing was pushed.", branch, clip.SHA(p.Commit))
	}
	return outcome.Stopf(outcome.Changed, p.changedReason(), "%s", p.DescribeChange(where))
}

// OutcomeWithoutChange returns the outcome of a run without a change. dropped lists protected files that the
// agent changed. output is the file with the agent's answer.
func (p *Publication) OutcomeWithoutChange(t *intake.Task, j *job.Job, dropped []string, output string) *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent finished without a change; its last message says why.")
	switch {
	case p.InBase:
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "%s already has this change, since %s.", p.Base.Branch, clip.SHA(p.Base.SHA))
	case len(dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed only protected files (%s), which policy.change.protected leaves out; to allow them, change policy.protect.", markdown.SomeFiles(dropped))
	case t.Subject != nil:
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent changed nothing; what it found is in %s, and was not published (--publish none).", output)
	case j.Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	stop.Message += p.DescribeOpenPull()
	return stop
}

// describeRedChecks returns a sentence about the failed checks and their logs, or "".
func (p *Publication) describeRedChecks(rec *record.Record) string {
	var red []string
	for _, row := range p.Verification.Rows {
		if row.Passed {
			continue
		}
		tests := row.DescribeTests()
		if tests != "" {
			tests += ", "
		}
		red = append(red, fmt.Sprintf("%s is %s (%swas %s, %s)", row.Name, row.After, tests, row.Before, rec.DescribeLogPlace(row.Log)))
	}
	if len(red) == 0 {
		return ""
	}
	return fmt.Sprintf("The change does not pass: %s.", strings.Join(red, "; "))
}
