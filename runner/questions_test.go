package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/question"
)

// mostUnits is how long GitHub lets a comment be, in UTF-16 code units.
const mostUnits = 65_536

func TestQuestionsFitWhateverTheAgentWrites(t *testing.T) {
	long := strings.Repeat("@", 20_000)
	options := slices.Repeat([]question.Option{{Label: long, Description: long}}, 50)
	questions := slices.Repeat([]question.Question{{Question: long, Options: options}}, 200)
	body := questionsComment(questions)
	if units := markdown.Units(body); units > mostUnits {
		t.Errorf("it has %d units", units)
	}
	if !strings.Contains(body, " more ") {
		t.Errorf("it does not say that there is more:\n%s", body[len(body)-200:])
	}
	if body := questionsComment(questions[:1]); !strings.Contains(body, "1. @") {
		t.Errorf("the only question is not shown:\n%s", body)
	}
}
