package feedback

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// TestFeedbackTextsGolden keeps each text that is published, for a look at it in a
// browser (e2e/browser).
func TestFeedbackTextsGolden(t *testing.T) {
	const words = "The loop ends **one too early**:\n\n- `i < n-1` leaves the last one out, says @octocat in #12\n- [look](https://evil.example/x) or <img src=https://evil.example/y onerror=alert(1)> https://evil.example/z www.evil.example\n\n```go\nfor i := range n { // <script>evil()</script>\n}\n```\n\n/approve"
	s := Poster{
		Subject: intake.Subject{Subject: transcript.Subject{Number: 7, Pull: true, HeadSHA: strings.Repeat("a", 40)}},
		Key:     "review", RunID: "20260301T090000Z-0a1b2c3d", Snapshot: strings.Repeat("b", 64), Link: "https://github.com/octo/widgets/actions/runs/123456789",
	}
	f := finding{Path: "loop.go", Line: 12, EndLine: 14, Severity: "high", Title: "The last one is <b>left out</b>", Body: words}
	for name, text := range map[string]string{
		"review.md":  s.reviewText(reviewObject{Summary: words}, nil, []finding{f}),
		"finding.md": findingText(f),
		"comment.md": s.commentText(commentObject{Comment: words + "\n\n" + strings.Repeat("and more of it ", 200)}),
	} {
		golden.Compare(t, filepath.Join("testdata", name), text)
	}
}
