package feedback

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const patch = "@@ -1,3 +1,4 @@ func a() {\n one\n+two\n three\n-four\n+five\n@@ -20,0 +22,2 @@\n+six\n+seven\n\\ No newline at end of file"

// maxText is the limit of most texts in the schemas, in characters.
const maxText = 10_000

func TestPlacesFindingsOnDiffLines(t *testing.T) {
	files := []forge.PullFile{{Path: "a.go", Patch: patch}, {Path: "picture.png"}}
	for _, c := range []struct {
		path      string
		line, end int
		want      forge.LineComment // zero for none
	}{
		{"a.go", 1, 1, forge.LineComment{Path: "a.go", Line: 1}},
		{"a.go", 4, 4, forge.LineComment{Path: "a.go", Line: 4}},
		{"a.go", 5, 5, forge.LineComment{}},
		{"a.go", 2, 4, forge.LineComment{Path: "a.go", From: 2, Line: 4}},
		{"a.go", 2, 1, forge.LineComment{Path: "a.go", Line: 2}},
		{"a.go", 4, 22, forge.LineComment{Path: "a.go", Line: 4}},
		{"a.go", 22, 23, forge.LineComment{Path: "a.go", From: 22, Line: 23}},
		{"a.go", 24, 24, forge.LineComment{}},
		{"b.go", 1, 1, forge.LineComment{}},
		{"picture.png", 1, 1, forge.LineComment{}},
	} {
		got, ok := positionOf(finding{Path: c.path, Line: c.line, EndLine: c.end}, files)
		must.Same(t, c.want, got, c)
		must.Same(t, c.want.Line > 0, ok, c)
	}
}

func speaker() Poster {
	return Poster{Subject: intake.Subject{Subject: transcript.Subject{Number: 7, Pull: true, HeadSHA: strings.Repeat("a", 40)}}, Key: "review", RunID: "r1", Link: "https://ci.example/o/r/actions/runs/1"}
}

// alive is what GitHub acts on.
var alive = regexp.MustCompile(`@[A-Za-z]|[^&]#[0-9]|<script|https?://evil|(?m)^::`)

func TestDefusesModelText(t *testing.T) {
	const hostile = "@octocat Fixes #1 <script>x</script>\n::error::y\n[z](https://evil.example) -->"
	f := finding{Path: "a`@b.go", Line: 1, EndLine: 1, Severity: "high", Title: hostile, Body: hostile}
	for name, text := range map[string]string{
		"finding": findingText(f),
		"review":  speaker().reviewText(reviewObject{Summary: hostile}, nil, []finding{f}),
		"comment": speaker().commentText(commentObject{Comment: hostile}),
	} {
		must.Same(t, "", alive.FindString(regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "")), name, "is alive in", text)
	}
}

func TestTextsFitGitHub(t *testing.T) {
	long := strings.Repeat("word ", maxText/5)
	var beside []finding
	for i := range maxFindings {
		beside = append(beside, finding{Path: fmt.Sprint(i), Line: 1, Severity: "low", Title: "Long", Body: long})
	}
	review := speaker().reviewText(reviewObject{Summary: long}, nil, beside)
	if units := markdown.Units(review); units > 65_536 || !strings.Contains(review, "more findings that there is no room for") || !strings.HasSuffix(review, footerOf(speaker())) {
		t.Errorf("a review has %d units and ends in %q", units, review[len(review)-200:])
	}
	if units := markdown.Units(findingText(finding{Title: "T", Body: strings.Repeat(long+"\n\n", 20)})); units > 65_536 {
		t.Errorf("a finding has %d units", units)
	}
	if units := markdown.Units(speaker().commentText(commentObject{Comment: strings.Repeat("@a ", maxComment/3)})); units > 65_536 {
		t.Errorf("a comment has %d units", units)
	}
}

// What the schema allows is there to its last word, however it stands in lines; where
// GitHub has no room for it, it is said.
func TestKeepsTextOrNotesOmission(t *testing.T) {
	var words, code strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&words, "word%d ", i)
		fmt.Fprintf(&code, "line %d\n", i)
	}
	long := words.String()
	for name, text := range map[string]string{
		"one paragraph":       long,
		"an item of a list":   "- a\n- " + long,
		"code of many lines":  "```go\n" + code.String()[:maxComment-2000] + "\n```\nline end",
		"code on a long line": "```\n" + long + "\n```",
		"one word":            strings.Repeat("word0", maxComment/5),
	} {
		got := speaker().commentText(commentObject{Comment: text})
		kept := strings.NewReplacer("\n", "", " ", "", "`", "")
		want := kept.Replace(strings.NewReplacer("- ", "", "```go", "").Replace(text))
		if is := kept.Replace(strings.ReplaceAll(got, "- ", "")); !strings.Contains(is, want) || len(text) > maxComment || markdown.Units(got) > 65_536 {
			t.Errorf("%s: of %d characters %d are there: %.200q", name, len(text), len(got), got)
		}
	}
	must.Contain(t, speaker().commentText(commentObject{Comment: strings.Repeat("@a ", maxComment/3)}), "no room for the rest")
}

func footerOf(s Poster) string {
	lines := strings.SplitAfter(strings.TrimSpace(s.footer("x")), "by ")
	return lines[1] + "\n"
}

func TestFeedbackMarkNamesTask(t *testing.T) {
	text := intake.FeedbackMark("a --> b", "input", "run") + "Words."
	must.Lack(t, strings.SplitN(text, "\n", 2)[0], "> b")
	if input, run, is := intake.FeedbackOf(strings.ReplaceAll(text, "\n", "\r\n"), "a --> b"); input != "input" || run != "run" || !is {
		t.Errorf("the mark is of %q by %q: %v", input, run, is)
	}
	if _, _, is := intake.FeedbackOf(text, "another"); is {
		t.Error("a mark is of another task, too")
	}
	if _, _, is := intake.FeedbackOf("<!-- agent-ci: feedback x -->\n", "x"); is {
		t.Error("half a mark is one")
	}
}

// Each schema is closed: all properties are required, and there are no others.
func TestSchemasRefuseInvalidObjects(t *testing.T) {
	for as, objects := range map[string]map[string]bool{
		job.AsReview: {
			`{"summary": "S", "findings": []}`: true,
			`{"summary": "S", "findings": [{"path": "a", "line": 1, "end_line": 1, "severity": "low", "title": "T", "body": "B"}]}`: true,
			`{"summary": "S", "findings": [{"path": "a", "line": 0, "end_line": 1, "severity": "low", "title": "T", "body": "B"}]}`: false,
			`{"summary": "S", "findings": [], "event": "APPROVE"}`:                                                                  false,
			`{"summary": "S"}`: false,
		},
		job.AsLabels: {
			`{"labels": ["bug"], "reason": "R"}`:      true,
			`{"labels": ["Bug"], "reason": "R"}`:      false,
			`{"labels": ["security"], "reason": "R"}`: false,
			`{"labels": []}`:                          false,
		},
		job.AsComment: {`{"comment": "C"}`: true, `{"comment": ""}`: false, `"C"`: false},
	} {
		schema := must.Get(Schema(job.Publish{As: as, Labels: []string{"bug", "question"}}))(t)
		for limit, of := range map[string]string{
			fmt.Sprintf(`"maxLength":%d`, maxTitle): job.AsReview, fmt.Sprintf(`"maxLength":%d`, maxText): job.AsLabels,
		} {
			if of == as {
				must.Contain(t, string(schema.Source), limit)
			}
		}
		for object, fits := range objects {
			err := schema.Check(json.RawMessage(object))
			must.Same(t, fits, err == nil, as, object, err)
		}
	}
}
