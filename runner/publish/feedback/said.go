package feedback

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// End returns the end of a run that posted something.
func (s *Posted) End() *outcome.Stop {
	switch s.As {
	case job.AsReview:
		return outcome.Stopf(outcome.NoChanges, "reviewed", "%s was reviewed, with %s: %s.", s.On.Name(), s.findings(), s.URL)
	case job.AsLabels:
		if len(s.Labels) == 0 {
			return outcome.Stopf(outcome.NoChanges, "labelled", "%s got no new label, because no other label of publish.labels fits: %s.", s.On.Name(), s.URL)
		}
		return outcome.Stopf(outcome.NoChanges, "labelled", "%s was given %s: %s.", s.On.Name(), strings.Join(s.Labels, ", "), s.URL)
	}
	how := map[string]string{"created": "was written", "updated": "was brought up to date", "none": "says the same already"}[s.Operation]
	name := s.On.Name()
	return outcome.Stopf(outcome.NoChanges, "commented", "The comment on %s %s: %s.", strings.ToLower(name[:1])+name[1:], how, s.URL)
}

func (s *Posted) findings() string {
	switch {
	case s.Findings+s.Beside == 0:
		return "nothing found"
	case s.Beside == 0:
		return transcript.Count(s.Findings, "finding")
	}
	return fmt.Sprintf("%s, %d of them in its text", transcript.Count(s.Findings+s.Beside, "finding"), s.Beside)
}
