package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// readPullTask takes the task from what was said on a pull request: for one of a
// run the issue that it was made for, and the words that ask for more.
func (r *run) readPullTask(ctx context.Context) error {
	pull := r.pull
	r.job.PullRequest.Branch = pull.Head
	r.task.name, r.task.url = fmt.Sprintf("pull request #%d", pull.Number), pull.URL
	in, err := r.pullInput(ctx)
	if err != nil {
		return err
	}
	words, err := r.requestParts(ctx)
	if err != nil {
		return err
	}
	in.parts = append(in.parts, words...)
	return r.takeInput(in, fmt.Sprintf("Pull request #%d", pull.Number))
}

// pullInput is what the pull request is about.
func (r *run) pullInput(ctx context.Context) (input, error) {
	if r.joins() {
		return r.readJoinTask(ctx)
	}
	pull := r.pull
	in := input{title: r.pullTitle(), parts: []clean.Part{{Kind: "pull_request", Author: "agent-ci", Text: fmt.Sprintf(
		"The checkout holds the change of pull request #%d already, uncommitted. Go on from there: what is asked for below is to be added to it.", pull.Number)}}}
	if m := issueInBranch.FindStringSubmatch(strings.TrimPrefix(pull.Head, runBranches)); m != nil {
		number, _ := strconv.Atoi(m[1]) // digits alone match
		about, err := r.originalIssue(ctx, number)
		if err != nil {
			return input{}, err
		}
		in.parts = append(about.parts, in.parts...)
	}
	said, err := r.saidOnPull(ctx)
	in.parts = append(in.parts, said...)
	return in, err
}

// saidOnPull are the comments below the pull request that count.
func (r *run) saidOnPull(ctx context.Context) ([]clean.Part, error) {
	repository := r.eventRepository()
	ref := job.Issue{Repository: repository.Name(), Number: r.pull.Number}
	pull, err := repository.Issue(ctx, r.pull.Number)
	if err != nil {
		return nil, issueFailure(ref, err)
	}
	return r.commentsThatCount(ctx, ref, pull)
}

// pullTitle is the pull request's title as it was when it was asked for.
func (r *run) pullTitle() string {
	switch q := r.request; {
	case q.Pull != nil:
		return q.Pull.Title
	case q.Issue != nil:
		return q.Issue.Title
	}
	return r.pull.Title
}

// onPullBase makes sure that the pull request's own base configures the run.
func (r *run) onPullBase() error {
	if r.pull == nil || r.pull.Base == r.base.Branch {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "base",
		"Pull request #%d goes to %s and the checkout is on %s; check %s out.", r.pull.Number, r.pull.Base, r.baseName(), r.pull.Base)
}

// originalIssue reads the issue of a run's branch; that it is gone, or closed
// meanwhile, does not matter to the pull request. The event does not tell what
// stood there when it happened: an issue that was touched since is left out.
func (r *run) originalIssue(ctx context.Context, number int) (input, error) {
	repository := r.eventRepository()
	ref := job.Issue{Repository: repository.Name(), Number: number}
	issue, err := repository.Issue(ctx, number)
	switch {
	case forge.KindOf(err) == forge.NotFound:
		return input{}, nil
	case err != nil:
		return input{}, issueFailure(ref, err)
	case issue.PullRequest:
		return input{}, nil
	}
	name, url := r.task.name, r.task.url
	r.adoptIssue(ref, issue)
	r.task.name, r.task.url = name, url
	if r.afterTrigger(issue.UpdatedAt) {
		r.rec.Warn("edited_after_trigger", "%s was changed after more was asked for on the pull request; its text was not read.", ref)
		return input{}, nil
	}
	return r.issueInput(ctx, ref, issue)
}

// requestParts are the words that ask for more, of the comment or review itself,
// after what was said on lines of the diff: by the review that asks, and by who
// counts before it. Their numbers of lines are left out: they change with the
// branch, and the same input would be another one.
func (r *run) requestParts(ctx context.Context) ([]clean.Part, error) {
	q := r.request
	repository := r.eventRepository()
	comments, err := repository.ReviewComments(ctx, q.Number)
	if err != nil {
		return nil, forgeFailure(fmt.Sprintf("The comments on the diff of pull request #%d cannot be read", q.Number), err)
	}
	var earlier, asking []clean.Part
	for _, c := range comments {
		part := clean.Part{Kind: "comment", Author: c.Author.Login, Text: fmt.Sprintf("On the last of these lines of %s:\n\n%s\n\n%s", markdown.FileName(c.Path), c.DiffHunk, c.Body)}
		if r.event.Review != nil && c.ReviewID == q.WordsID && strings.EqualFold(c.Author.Login, q.Actor.Login) {
			part.Kind = "request"
			asking = append(asking, part)
			continue
		}
		if c.ID == q.WordsID || r.afterTrigger(c.CreatedAt) || r.afterTrigger(c.UpdatedAt) {
			continue
		}
		counts, err := r.commentCounts(ctx, repository, forge.Comment{Author: c.Author})
		if err != nil {
			return nil, forgeFailure("The role of "+c.Author.Login+" cannot be asked for", err)
		}
		if counts {
			earlier = append(earlier, part)
		}
	}
	words := q.Words
	if on := q.On; on != nil {
		words = fmt.Sprintf("On line %d of %s:\n\n%s\n\n%s", on.Line, markdown.FileName(on.Path), on.DiffHunk, words)
	}
	if strings.TrimSpace(words) != "" {
		asking = append([]clean.Part{{Kind: "request", Author: q.Actor.Login, Text: words}}, asking...)
	}
	return append(earlier, asking...), nil
}

// goOn puts the change of the pull request into the checkout, as if the agent
// had made it: configuration and checks stay those of the base. It comes after
// the baseline, and counts as part of the change.
func (r *run) goOn(ctx context.Context) error {
	if r.pull == nil || r.joins() {
		return nil
	}
	tip, err := lookUpBranch(ctx, r.eventRepository(), r.pull.Head)
	if err != nil {
		return err
	}
	if tip == nil {
		return nil
	}
	if info := infoOf(tip); !info.Ours() {
		return foreignCommit(r.branch, tipOf(info, true))
	}
	change, err := r.changeOfPull(ctx, tip)
	if err != nil {
		return err
	}
	if err := r.checkout.LayOver(ctx, change); err != nil {
		return fmt.Errorf("go on with pull request #%d: %w", r.pull.Number, err)
	}
	return nil
}

// changeOfPull is the change of a run's commit, merged onto the base as it is
// now.
func (r *run) changeOfPull(ctx context.Context, tip *forge.Commit) (*gitops.ChangeSet, error) {
	made := tip.Parents[0]
	apart := !r.checkout.HasCommit(made)
	for _, sha := range []string{made, tip.SHA} {
		if err := r.fetchCommit(ctx, sha, apart); err != nil {
			return nil, err
		}
	}
	before, err := r.checkout.BaseAt(r.base.Branch, made)
	if err != nil {
		return nil, checkoutFailure(err)
	}
	change, err := r.checkout.Between(ctx, before, gitops.Tree(tip.Tree))
	if err != nil || before.SHA == r.base.SHA {
		return change, err
	}
	onto, err := r.checkout.Rebase(ctx, change, r.base)
	var conflict *gitops.MergeError
	if errors.As(err, &conflict) {
		return nil, outcome.Stopf(outcome.Conflict, "base_moved",
			"%s moved since pull request #%d was made, and the two do not go together: %s; merge %s there, or close it and ask again on the issue.",
			r.baseName(), r.pull.Number, namesOf(conflict), r.baseName()).Because(conflict)
	}
	return onto, err
}
