package feedback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// postReview publishes a review that only comments: an agent neither approves nor blocks. Findings on no line
// of the diff are in the review's text.
func (s Poster) postReview(ctx context.Context, raw json.RawMessage) (step transcript.Publish, err error) {
	o, err := decodeObject[reviewObject](raw)
	if err != nil {
		return step, err
	}
	onDiff, offDiff, err := s.splitByDiff(ctx, o.Findings)
	if err != nil {
		return step, err
	}
	step = transcript.Publish{Findings: len(onDiff), FindingsInText: len(offDiff)}
	earlier, err := s.earlierPosts(ctx)
	if err != nil {
		return step, err
	}
	if earlierIndex := slices.IndexFunc(earlier, func(post earlierPost) bool { return post.run == s.RunID }); earlierIndex >= 0 { // this run posted it before it was killed
		step.URL, step.Operation = earlier[earlierIndex].URL, "none"
		return step, nil
	}
	posted, err := s.repository().CreateReview(ctx, s.Subject.Number, s.newReview(o, onDiff, nil, offDiff))
	if forge.KindOf(err) == forge.Invalid && len(onDiff) > 0 {
		step.Findings, step.FindingsInText = 0, len(o.Findings)
		s.Record.Warn("review_lines", "The forge took no comments on lines of the diff (%v). The text of the review has these findings instead: %s.", err, describePositions(onDiff))
		posted, err = s.repository().CreateReview(ctx, s.Subject.Number, s.newReview(o, nil, onDiff, offDiff))
	}
	if err != nil {
		return step, intake.ForgeFailure(fmt.Sprintf("Pull request #%d cannot be reviewed", s.Subject.Number), err)
	}
	step.URL, step.Operation = posted.URL, "created"
	return step, nil
}

// newReview returns a review with comments on lines of the diff, and all other findings in its text.
func (s Poster) newReview(o reviewObject, onDiff, refused []diffFinding, offDiff []finding) forge.NewReview {
	review := forge.NewReview{CommitSHA: s.Subject.HeadSHA, Body: s.reviewText(o, refused, offDiff)}
	for _, p := range onDiff {
		comment := p.position
		comment.Body = findingText(p.finding)
		review.Comments = append(review.Comments, comment)
	}
	return review
}

// diffFinding is a finding on lines of the diff.
type diffFinding struct {
	finding
	position forge.LineComment
}

// describePositions lists the places of findings, for a warning.
func describePositions(all []diffFinding) string {
	var places []string
	for _, p := range all {
		places = append(places, fmt.Sprintf("%s:%d", markdown.FileName(p.position.Path), p.position.Line))
	}
	return strings.Join(places, ", ")
}

// splitByDiff separates findings on the diff from others. A resumed run reads the diff again. If the pull
// request has moved since, no finding is on the diff.
func (s Poster) splitByDiff(ctx context.Context, findings []finding) (onDiff []diffFinding, offDiff []finding, err error) {
	files := s.Subject.Files
	if isResumed := s.Subject.PullRequest == nil; isResumed {
		if files, err = s.rereadDiff(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range findings {
		position, ok := positionOf(f, files)
		if !ok {
			offDiff = append(offDiff, f)
			continue
		}
		onDiff = append(onDiff, diffFinding{f, position})
	}
	return onDiff, offDiff, nil
}

// rereadDiff reads the pull request's diff again. It returns nil if the pull request has another head now.
func (s Poster) rereadDiff(ctx context.Context) ([]forge.PullFile, error) {
	pull, files, err := intake.ReadDiff(ctx, s.repository(), s.Subject.Number)
	if err != nil {
		return nil, err
	}
	if pull.HeadSHA != s.Subject.HeadSHA {
		s.Record.Warn("pull_request_moved", "Pull request #%d got new commits after %s was reviewed; the findings are in the text of the review.", s.Subject.Number, clip.SHA(s.Subject.HeadSHA))
		return nil, nil
	}
	return files, nil
}

// positionOf returns a finding's place on the new side of the diff. It returns false if the diff does not have
// the line. It leaves out an end line in another hunk.
func positionOf(f finding, files []forge.PullFile) (forge.LineComment, bool) {
	i := slices.IndexFunc(files, func(file forge.PullFile) bool { return file.Path == f.Path })
	if i < 0 {
		return forge.LineComment{}, false
	}
	for _, hunk := range files[i].Hunks() {
		if !hunk.Contains(f.Line) {
			continue
		}
		position := forge.LineComment{Path: f.Path, Line: f.Line}
		if f.EndLine > f.Line && hunk.Contains(f.EndLine) {
			position.From, position.Line = f.Line, f.EndLine
		}
		return position, true
	}
	return forge.LineComment{}, false
}
