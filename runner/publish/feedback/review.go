package feedback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// review publishes a review that only comments: an agent neither approves nor blocks. Findings on no line of the diff are in
// the review's text.
func (s Poster) review(ctx context.Context, raw json.RawMessage) (step transcript.Publish, err error) {
	o, err := decode[reviewObject](raw)
	if err != nil {
		return step, err
	}
	on, beside, err := s.place(ctx, o.Findings)
	if err != nil {
		return step, err
	}
	step = transcript.Publish{Findings: len(on), Beside: len(beside)}
	there, err := s.earlierPosts(ctx)
	if err != nil {
		return step, err
	}
	if i := slices.IndexFunc(there, func(each earlierPost) bool { return each.run == s.RunID }); i >= 0 { // this run posted it before it was killed
		step.URL, step.Operation = there[i].URL, "none"
		return step, nil
	}
	made, err := s.repository().CreateReview(ctx, s.On.Number, s.newReview(o, on, nil, beside))
	if forge.KindOf(err) == forge.Invalid && len(on) > 0 {
		step.Findings, step.Beside = 0, len(o.Findings)
		s.Record.Warn("review_lines", "The forge took no comments on lines of the diff (%v). The text of the review has these findings instead: %s.", err, lines(on))
		made, err = s.repository().CreateReview(ctx, s.On.Number, s.newReview(o, nil, on, beside))
	}
	if err != nil {
		return step, intake.ForgeFailure(fmt.Sprintf("Pull request #%d cannot be reviewed", s.On.Number), err)
	}
	step.URL, step.Operation = made.URL, "created"
	return step, nil
}

// newReview returns a review with comments on lines of the diff, and all other findings in its text.
func (s Poster) newReview(o reviewObject, on, refused []placedFinding, beside []finding) forge.NewReview {
	review := forge.NewReview{CommitSHA: s.On.HeadSHA, Body: s.reviewText(o, refused, beside)}
	for _, p := range on {
		comment := p.at
		comment.Body = findingText(p.finding)
		review.Comments = append(review.Comments, comment)
	}
	return review
}

// placedFinding is a finding on lines of the diff.
type placedFinding struct {
	finding
	at forge.LineComment
}

// lines lists the places of findings, for a warning.
func lines(all []placedFinding) string {
	var places []string
	for _, p := range all {
		places = append(places, fmt.Sprintf("%s:%d", markdown.FileName(p.at.Path), p.at.Line))
	}
	return strings.Join(places, ", ")
}

// place separates findings on the diff from others. A resumed run reads the diff again. If the pull request has moved since,
// no finding is on the diff.
func (s Poster) place(ctx context.Context, findings []finding) (on []placedFinding, beside []finding, err error) {
	files := s.On.Files
	if s.On.Pull == nil {
		if files, err = s.diffAgain(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range findings {
		at, ok := placeOf(f, files)
		if !ok {
			beside = append(beside, f)
			continue
		}
		on = append(on, placedFinding{f, at})
	}
	return on, beside, nil
}

// diffAgain reads the pull request's diff again. It returns nil if the pull request has another head now.
func (s Poster) diffAgain(ctx context.Context) ([]forge.PullFile, error) {
	pull, files, err := intake.ReadDiff(ctx, s.repository(), s.On.Number)
	if err != nil {
		return nil, err
	}
	if pull.HeadSHA != s.On.HeadSHA {
		s.Record.Warn("pull_request_moved", "Pull request #%d got new commits after %s was reviewed; the findings are in the text of the review.", s.On.Number, gitops.Short(s.On.HeadSHA))
		return nil, nil
	}
	return files, nil
}

// placeOf returns a finding's place on the new side of the diff, or false. An end line in another hunk is left out.
func placeOf(f finding, files []forge.PullFile) (forge.LineComment, bool) {
	i := slices.IndexFunc(files, func(file forge.PullFile) bool { return file.Path == f.Path })
	if i < 0 {
		return forge.LineComment{}, false
	}
	for _, hunk := range files[i].Hunks() {
		if !hunk.Has(f.Line) {
			continue
		}
		at := forge.LineComment{Path: f.Path, Line: f.Line}
		if f.EndLine > f.Line && hunk.Has(f.EndLine) {
			at.From, at.Line = f.Line, f.EndLine
		}
		return at, true
	}
	return forge.LineComment{}, false
}
