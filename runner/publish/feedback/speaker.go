package feedback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Poster posts an agent's findings on an issue or pull request.
type Poster struct {
	Record    *record.Record
	Server    forge.Forge
	Publish   job.Publish
	Subject   intake.Subject
	Key       string // task key
	RunID     string
	Snapshot  string // digest of the task's input
	Commanded bool   // a person asked for this run, so post again for the same input
	Link      string // page of the CI run; may be empty
}

// Posted is what was posted, and the issue or pull request.
type Posted struct {
	transcript.Publish
	Subject intake.Subject
}

// repository returns the repository of the issue or pull request.
func (s Poster) repository() forge.Repository { return s.Server.Repository(s.Subject.Repository) }

// RequireNotPosted stops a run before the model is asked, if an earlier run posted about the same input. For a review,
// the input is the head commit. A run that a person asked for, and a run that sets labels, always continue.
func (s Poster) RequireNotPosted(ctx context.Context) error {
	if s.Commanded || s.Publish.As == job.AsLabels {
		return nil
	}
	input := s.Snapshot
	if s.Publish.As == job.AsReview {
		input = s.Subject.HeadSHA
	}
	earlier, err := s.earlierPosts(ctx)
	if err != nil {
		return err
	}
	for _, each := range earlier {
		if each.input == input && each.run != s.RunID {
			return outcome.Stopf(outcome.Skipped, "same_input", "%s did not change since its last review, labels or comment: %s; ask for more in a comment, or change it first.", s.Subject.Name(), each.URL)
		}
	}
	return nil
}

// PostFromFile posts the agent's object, which is in a file of the record. Before that it runs the hooks, which
// may refuse; allHooks may be nil. draft is what hooks learn about the post.
func (s Poster) PostFromFile(ctx context.Context, file string, allHooks *hooks.Hooks, draft hooks.Draft) (*Posted, error) {
	raw, err := s.Record.Read(file)
	if err != nil {
		return nil, err
	}
	if allHooks != nil {
		draft.As, draft.Body, draft.Labels, draft.Files = s.Publish.As, string(raw), []string{}, []string{}
		if err := allHooks.BeforePublish(ctx, draft); err != nil {
			return nil, err
		}
	}
	return s.postObject(ctx, raw)
}

// postObject posts the agent's object, and records the step.
func (s Poster) postObject(ctx context.Context, raw json.RawMessage) (*Posted, error) {
	publish := map[string]func(context.Context, json.RawMessage) (transcript.Publish, error){
		job.AsReview: s.postReview, job.AsLabels: s.postLabels, job.AsComment: s.postComment,
	}[s.Publish.As]
	step, err := publish(ctx, raw)
	if err != nil {
		return nil, err
	}
	step.Step, step.Number, step.HeadSHA = s.Publish.As, s.Subject.Number, s.Subject.HeadSHA
	return &Posted{step, s.Subject}, s.Record.Append(step)
}

// earlierPost is a comment or review that a run posted for this task. input identifies what it was about.
type earlierPost struct {
	forge.Comment
	input, run string
}

// earlierPosts returns what runs posted for this task: reviews for publish.as review, or else comments.
// Anybody can write the mark of a task, so the author must be a bot or the token's account.
func (s Poster) earlierPosts(ctx context.Context) (found []earlierPost, err error) {
	all, err := s.existingPosts(ctx)
	if err != nil {
		return nil, err
	}
	own := intake.ByAppOrTokenAccount(ctx, s.Server)
	for _, each := range all {
		if input, run, marked := intake.FeedbackOf(each.Body, s.Key); marked && own(each) {
			found = append(found, earlierPost{each, input, run})
		}
	}
	return found, nil
}

// existingPosts returns everybody's reviews for publish.as review, or else everybody's comments.
func (s Poster) existingPosts(ctx context.Context) ([]forge.Comment, error) {
	read, failure := s.repository().Comments, "The comments of #%d cannot be read"
	if s.Publish.As == job.AsReview {
		read, failure = s.repository().Reviews, "The reviews of pull request #%d cannot be read"
	}
	all, err := read(ctx, s.Subject.Number)
	return all, intake.ForgeFailure(fmt.Sprintf(failure, s.Subject.Number), err)
}

// postLabels adds the chosen labels that the job allows. It counts those that this run added before it was killed.
func (s Poster) postLabels(ctx context.Context, raw json.RawMessage) (step transcript.Publish, err error) {
	chosen, err := decodeObject[labelsObject](raw)
	if err != nil {
		return step, err
	}
	issue, err := s.repository().Issue(ctx, s.Subject.Number)
	if err != nil {
		return step, intake.ForgeFailure(fmt.Sprintf("The labels of #%d cannot be read", s.Subject.Number), err)
	}
	intended, err := s.intendedLabels()
	if err != nil {
		return step, err
	}
	var missing, alreadyAdded []string
	for _, name := range chosen.Labels {
		if slices.Contains(s.Publish.Labels, name) && !forge.HasName(issue.Labels, name) && !forge.HasName(missing, name) {
			missing = append(missing, name)
		}
	}
	for _, name := range intended {
		if forge.HasName(issue.Labels, name) && !forge.HasName(alreadyAdded, name) {
			alreadyAdded = append(alreadyAdded, name)
		}
	}
	step = transcript.Publish{URL: s.Subject.URL, Operation: "none", Labels: append(alreadyAdded, missing...)}
	if len(step.Labels) > 0 {
		step.Operation = "updated"
	}
	if len(missing) == 0 {
		return step, nil
	}
	intent := transcript.Publish{Step: job.AsLabels, Number: s.Subject.Number, URL: s.Subject.URL, Operation: transcript.PublishBegun, Labels: missing}
	if err := s.Record.Append(intent); err != nil {
		return step, err
	}
	return step, intake.ForgeFailure(fmt.Sprintf("#%d cannot be labelled", s.Subject.Number), s.repository().AddLabels(ctx, s.Subject.Number, missing))
}

// intendedLabels returns the labels that this run was about to add before it was killed, by its transcript.
func (s Poster) intendedLabels() (labels []string, err error) {
	_, err = s.Record.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		if step, is := e.Content.(transcript.Publish); is && step.Operation == transcript.PublishBegun {
			labels = append(labels, step.Labels...)
		}
		return nil
	})
	return labels, err
}

// postComment creates the comment, or updates that of an earlier run. The step's Operation is created, updated, or
// none if the earlier comment says the same.
func (s Poster) postComment(ctx context.Context, raw json.RawMessage) (step transcript.Publish, err error) {
	o, err := decodeObject[commentObject](raw)
	if err != nil {
		return step, err
	}
	earlier, err := s.earlierPosts(ctx)
	if err != nil {
		return step, err
	}
	text := s.commentText(o)
	if len(earlier) == 0 {
		created, err := s.repository().CreateComment(ctx, s.Subject.Number, text)
		if err != nil {
			return step, intake.ForgeFailure(fmt.Sprintf("The comment on #%d cannot be written", s.Subject.Number), err)
		}
		return transcript.Publish{URL: created.URL, Operation: "created"}, nil
	}
	step = transcript.Publish{URL: earlier[0].URL, Operation: "none"}
	if sameContent(earlier[0].Body, text) && earlier[0].input == s.Snapshot {
		return step, nil
	}
	step.Operation = "updated"
	return step, intake.ForgeFailure(fmt.Sprintf("The comment on #%d cannot be brought up to date", s.Subject.Number), s.repository().EditComment(ctx, earlier[0].ID, text))
}

// decodeObject parses an object that the schema has validated.
func decodeObject[T any](raw json.RawMessage) (object T, err error) {
	if err = plainjson.Unmarshal(raw, &object); err != nil {
		err = fmt.Errorf("read what the agent gave to be published: %w", err)
	}
	return object, err
}

// Outcome returns the outcome of a run that posted something.
func (s *Posted) Outcome() *outcome.Stop {
	switch s.Step {
	case job.AsReview:
		return outcome.Stopf(outcome.NoChanges, "reviewed", "%s was reviewed, with %s: %s.", s.Subject.Name(), s.describeFindings(), s.URL)
	case job.AsLabels:
		if len(s.Labels) == 0 {
			return outcome.Stopf(outcome.NoChanges, "labelled", "%s got no new label, because no other label of publish.labels fits: %s.", s.Subject.Name(), s.URL)
		}
		return outcome.Stopf(outcome.NoChanges, "labelled", "%s was given %s: %s.", s.Subject.Name(), strings.Join(s.Labels, ", "), s.URL)
	}
	how := map[string]string{"created": "was written", "updated": "was brought up to date", "none": "says the same already"}[s.Operation]
	name := s.Subject.Name()
	return outcome.Stopf(outcome.NoChanges, "commented", "The comment on %s %s: %s.", strings.ToLower(name[:1])+name[1:], how, s.URL)
}

// describeFindings returns the numbers of findings in words.
func (s *Posted) describeFindings() string {
	switch {
	case s.Findings+s.FindingsInText == 0:
		return "nothing found"
	case s.FindingsInText == 0:
		return transcript.CountNoun(s.Findings, "finding")
	}
	return fmt.Sprintf("%s, %d of them in its text", transcript.CountNoun(s.Findings+s.FindingsInText, "finding"), s.FindingsInText)
}
