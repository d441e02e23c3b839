package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
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
	RunID   string
	Job     *job.Job
	Task    intake.Task // the change goes to its branch
	Base    gitops.Base // that the change is made on
	Change  *gitops.ChangeSet
	Table   transcript.Verify // of the checks on the change
	Summary string
	Cost    *float64      // of the work in dollars; nil if unknown
	Stopped *outcome.Stop // the limit that ended the agent's work; nil: the agent ended

	// InCheckout is the change in the work tree; nil for one made elsewhere, which leaves the work
	// tree alone.
	InCheckout *gitops.ChangeSet
	// Inspection is what was found in the change beside what is refused. Judge of Follow keeps it up to date.
	Inspection *transcript.Inspection
	// Hooks may refuse the change before anything of it is published; nil for none.
	Hooks *hooks.Hooks

	Follow Follow
	CommitFacts
	described
}

// CommitFacts are what a proposal's commit depends on besides the change.
type CommitFacts struct {
	Key           *sshsig.Key // that signs the commit; nil for none
	EarlierCommit string      // made before a kill; "" for none
	ChainHead     string      // of a closed transcript; "" while it is written
}

// described is what publishing adds to a proposal for its description.
type described struct {
	lessons   *transcript.Lessons // that the change is of, and nothing else; nil for another change
	movedFrom gitops.Base         // where the change followed its base to another one; else zero
	notes     []string            // warnings after the transcript was closed
	facts     []string            // of the pull request, which are no warnings

	earlierRequests []sections.Request // on the pull request; nil before they are read
}

// Follow has the functions for a change that may differ from the transcript's, as on a moved base.
type Follow struct {
	// Allow ends a run that may not follow the base branch; may be nil.
	Allow func(base gitops.Base, now BaseBranch) error
	// Configure reads the job on a new base; nil keeps the job.
	Configure func(ctx context.Context, base gitops.Base) (*job.Job, error)
	// MoveOnto puts the change on another base; nil merges each of its files.
	MoveOnto func(ctx context.Context, change *gitops.ChangeSet, base gitops.Base) (*gitops.ChangeSet, error)
	// Judge refuses an unpublishable change.
	Judge func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error
	// Verify repeats the checks on a new base; nil if impossible. It returns the latest table, also
	// with an error.
	Verify func(ctx context.Context, table transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error)
	// Lessons returns the lessons in a change for reviewers; nil uses the transcript.
	Lessons func(change *gitops.ChangeSet) (*transcript.Lessons, error)
}

// failsUnpublished reports a failing change that is not published.
func (p *Proposal) failsUnpublished() bool { return !p.Table.Passed && p.Job.OnVerifyFailed == "none" }

// Publication is the result of publishing so far.
type Publication struct {
	Base   gitops.Base // base of the published change; differs from the proposal's if the base moved
	Change *gitops.ChangeSet
	Table  transcript.Verify // of the checks on it
	Draft  bool              // it must not be merged as it is, for reasons that the body gives
	InBase bool              // there was a change, and the base has all of it since it moved

	Commit         string // on Branch; empty when nothing was committed
	Branch         string
	Unchanged      bool   // the branch held the same change already
	whyNotSwitched string // why the checkout was not switched to the branch, as a sentence; empty if it was
	Remote         string // where the commit was pushed, for people; empty: nowhere
	NotPushed      string // why not
	Pull           *forge.PullRequest
	Operation      string             // on Pull: created, updated, none
	OpenPullOfTask *forge.PullRequest // of the task, beside a run without a change; nil for none
	BodyFile       string             // of the pull request, in the run directory; empty: not written
}

// reason is how a change was published, in a word.
func (p *Publication) reason() string {
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

// GoneTree names a replay's temporary tree, which no longer exists when people read of it.
const GoneTree = "the replay's temporary tree"

// Sentence describes the change's place and the next step. where names the checkout.
func (p *Publication) Sentence(where string) string {
	place, next := p.describePlace(where)
	switch {
	case p.Commit != "" && !p.Table.Passed:
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

// describePlace describes the change's place, without a full stop, and a person's next step, or "".
func (p *Publication) describePlace(where string) (place, next string) {
	short := gitops.Short(p.Commit)
	switch {
	case p.Commit == "" && where == GoneTree:
		return fmt.Sprintf("The change was made in %s, which is removed", where), "give --out to keep it"
	case p.Commit == "":
		return fmt.Sprintf("The change is in %s, uncommitted", where), "look at it with git diff"
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

func (p *Publication) alreadyPublished() bool { return p.Unchanged && p.Operation != "created" }

// OpenSentence names an earlier run's open pull request beside a run without a change, as the end
// of a message, or "".
func (p *Publication) OpenSentence() string {
	if p.OpenPullOfTask == nil {
		return ""
	}
	return fmt.Sprintf(" Pull request #%d of an earlier run stays open: %s. Comment on it to ask for more, or close it.", p.OpenPullOfTask.Number, p.OpenPullOfTask.URL)
}

// Outcome returns the outcome of a run with a change, also if not published. stopped is the limit that
// ended the work, or nil. branch is the task's. where names the checkout for a person.
func (p *Publication) Outcome(rec *record.Record, stopped *outcome.Stop, branch, where string) *outcome.Stop {
	committed := ""
	if p.Commit != "" {
		committed = " " + p.Sentence(where)
	}
	red := p.redChecks(rec)
	switch {
	case stopped != nil:
		stop := *stopped
		if committed != "" && red != "" {
			stop.Message += " " + red
		}
		stop.Message += committed
		return &stop
	case !p.Table.Passed:
		return outcome.Stopf(outcome.VerifyFailed, "red", "%s", red+committed)
	case p.alreadyPublished():
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"Branch %s already has this change (commit %s); nothing was pushed.", branch, gitops.Short(p.Commit))
	}
	return outcome.Stopf(outcome.Changed, p.reason(), "%s", p.Sentence(where))
}

// WithoutChange returns the end of a run without anything to publish. dropped are protected files that
// the agent changed, output is the file with its object.
func (p *Publication) WithoutChange(t *intake.Task, j *job.Job, dropped []string, output string) *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent finished without a change; its last message says why.")
	switch {
	case p.InBase:
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "%s already has this change, since %s.", p.Base.Branch, gitops.Short(p.Base.SHA))
	case len(dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed only protected files (%s), which policy.change.protected leaves out; to allow them, change policy.protect.", markdown.SomeFiles(dropped))
	case t.Subject != nil:
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent changed nothing; what it found is in %s, and was not published (--publish none).", output)
	case j.Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	stop.Message += p.OpenSentence()
	return stop
}

// redChecks returns a sentence with the failed checks and their logs, or "".
func (p *Publication) redChecks(rec *record.Record) string {
	var red []string
	for _, row := range p.Table.Rows {
		if row.Passed {
			continue
		}
		tests := row.Tests()
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
