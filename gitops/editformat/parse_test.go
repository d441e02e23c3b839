package editformat_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/policy/must"
)

var formats = []editformat.Format{editformat.Diff, editformat.Udiff, editformat.Whole}

func TestParsesReadsCommandsAndPlans(t *testing.T) {
	plan := []editformat.Step{{"Look", "completed"}, {"Edit it", "in_progress"}, {"Test", "pending"}}
	for name, test := range map[string]struct {
		text string
		want editformat.Answer
	}{
		"words":              {"All is done.\n", editformat.Answer{}},
		"nothing":            {"", editformat.Answer{}},
		"read":               {"```read\na.go\n- `d/b c.go`\n\n./a.go\n```\n", editformat.Answer{Reads: []string{"a.go", "d/b c.go"}}},
		"bash":               {"```bash\ngo test ./...\nls\n```\n", editformat.Answer{Commands: []string{"go test ./...\nls\n"}}},
		"several commands":   {"```sh\nls\n```\nand\n~~~shell\npwd\n~~~\n", editformat.Answer{Commands: []string{"ls\n", "pwd\n"}}},
		"prompts":            {"```bash\n$ ls\n$ pwd\n```\n", editformat.Answer{Commands: []string{"ls\npwd\n"}}},
		"console":            {"```console\n$ ls\n```\n", editformat.Answer{Commands: []string{"ls\n"}}},
		"what commands said": {"```console\n$ ls\na.go\n```\n", editformat.Answer{}},
		"empty command":      {"```bash\n\n```\n", editformat.Answer{}},
		"plan":               {"```plan\n- [x] Look\n2. [>] Edit it\n* Test\n\n```\n", editformat.Answer{Plan: plan}},
		"last plan":          {"```plan\nx\n```\n```plan\n[x] Look\n[~] Edit it\n[ ] Test\n```\n", editformat.Answer{Plan: plan}},
		"other fences":       {"```go\nx\n```\n\n```\n```bash\n```\n", editformat.Answer{}},
		"inside another":     {"````text\n```bash\nrm -r x\n```\n````\n", editformat.Answer{}},
		"inline":             {"Write ```bash ls``` so.\n", editformat.Answer{}},
		"too far in":         {"    ```bash\n    ls\n    ```\n", editformat.Answer{}},
		"open":               {"```bash\nrm -r build", editformat.Answer{Problems: []string{"Line 1 of the answer: the fence that opens there is not closed, so nothing from there on was taken; close it with a line of ```"}}},
		"open in another":    {"```go\nx\n\n```bash\nls", editformat.Answer{Problems: []string{"Line 1 of the answer: the fence that opens there is not closed, so nothing from there on was taken; close it with a line of ```"}}},
		"nested in words": {"It says:\n```text\n```go\nx\n```\n\n```bash\nrm -r x\n```\n```\n", editformat.Answer{Commands: []string{"rm -r x\n"}, Problems: []string{
			"Line 2 of the answer: the fence that opens there has fences of its own, and so it is not clear what stands in it; put it between longer ones",
		}}},
		"nested in commands": {"```bash\ncat > a.md <<E\n```go\nx\n```\nE\n```\n", editformat.Answer{Problems: []string{
			"Line 1 of the answer: the text of the bash fence has fences of its own, and so it is not clear where it ends; put it between longer ones, of ````",
		}}},
		"nested in last words": {"```text\n```go\nx\n```\nand\n```\n", editformat.Answer{}},
		"open, of words":       {"```\nx\n", editformat.Answer{}},
		"marks as words":       {"```plan\n- [completed] Look\n- [In progress] Edit it\n- [pending] Test\n```\n", editformat.Answer{Plan: plan}},
		"a link is no mark":    {"```plan\n- [docs](a.md)\n```\n", editformat.Answer{Plan: []editformat.Step{{"[docs](a.md)", "pending"}}}},
		"strange mark":         {"```plan\n- [?] Look\n```\n", editformat.Answer{Problems: []string{"Line 2 of the answer: a step of a plan is marked [ ], [>] or [x], not [?]"}}},
		"plan of nothing":      {"```plan\n\n```\n", editformat.Answer{Problems: []string{"Line 1 of the answer: the plan has no steps; write one a line: - [ ] what is to be done"}}},
	} {
		for _, f := range formats {
			t.Run(string(f)+", "+name, func(t *testing.T) {
				must.Same(t, test.want, editformat.Parse(f, test.text))
			})
		}
	}
}

// What is no whole block is not taken, and the model is told why.
func TestSkipsUnusableBlocks(t *testing.T) {
	edit := block("two\n", "2\n")
	for name, test := range map[string]struct {
		format  editformat.Format
		text    string
		edits   int
		problem string
	}{
		"example":                {editformat.Diff, fenced("For example", "text", edit), 0, ""},
		"example, or not":        {editformat.Diff, fenced("a.go", "text", edit), 0, "its fence is one of text"},
		"example beside another": {editformat.Diff, fenced("a.go", "text", edit) + fenced("b.go", "go", edit), 1, ""},
		"example in Markdown":    {editformat.Diff, "````markdown\n" + fenced("a.go", "go", edit) + "````\n", 0, ""},
		"below other lines":      {editformat.Diff, "```go\nfunc main() {\n}\n" + edit + "```\n", 0, "line 4"},
		"text with its path":     {editformat.Diff, "```txt\na.md\n" + edit + "```\n", 1, ""},
		"far in, as code":        {editformat.Diff, "    a.go\n    <<<<<<< SEARCH\n    two\n    =======\n    2\n    >>>>>>> REPLACE\n", 0, ""},
		"quoted":                 {editformat.Diff, "> a.go\n> <<<<<<< SEARCH\n> two\n> =======\n> 2\n> >>>>>>> REPLACE\n", 0, ""},
		"behind fences in words": {editformat.Diff, "```text\n```go\nx\n```\nand\n" + fenced("a.go", "go", edit) + "```\n", 1, "line 1 of the answer: the fence that opens there has fences of its own"},
		"open fence":             {editformat.Diff, "a.go\n```go\n" + edit, 0, "line 2"},
		"open fence below":       {editformat.Diff, fenced("a.go", "go", edit) + "```\nx\n" + edit, 1, "Line 9"},
		"no end":                 {editformat.Diff, "a.go\n<<<<<<< SEARCH\ntwo\n=======\n2\n", 0, ">>>>>>> REPLACE is missing"},
		"no divider":             {editformat.Diff, "a.go\n<<<<<<< SEARCH\ntwo\n>>>>>>> REPLACE\n", 0, "======= is missing"},
		"two dividers":           {editformat.Diff, "a.go\n<<<<<<< SEARCH\ntwo\n=======\n2\n=======\n3\n>>>>>>> REPLACE\n", 0, "with 9 characters"},
		"another begins":         {editformat.Diff, "a.go\n<<<<<<< SEARCH\ntwo\n" + edit, 1, "another one begins"},
		"two ways to read it":    {editformat.Diff, "a.go\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>>> REPLACE\nx\n>>>>>>> REPLACE\n", 0, "is not clear"},
		"too few characters":     {editformat.Diff, "a.go\n<<<< SEARCH\ntwo\n====\n2\n>>>> REPLACE\n", 0, ""},
		"too many characters":    {editformat.Diff, "a.go\n<<<<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", 0, ""},
		"conflict":               {editformat.Diff, "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n", 0, ""},
		"block of another":       {editformat.Udiff, "a.go\n" + edit, 0, ""},
		"diff of another":        {editformat.Diff, "```diff\n--- a/x\n+++ b/x\n@@ @@\n-x\n+y\n```\n", 0, ""},
		"open diff":              {editformat.Udiff, "```diff\n--- a/x\n+++ b/x\n@@ @@\n-x\n+y\n", 0, "not closed"},
		"diff without a fence":   {editformat.Udiff, "--- a/x\n+++ b/x\n@@ @@\n-x\n+y\n", 0, ""},
		"file named in words":    {editformat.Whole, "Here is `a.go` again:\n\n```go\nx\n```\n", 0, "Line 3 of the answer: the fence that opens there was not taken"},
		"open file":              {editformat.Whole, "a.go\n```go\nx\n", 0, "not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := editformat.Parse(test.format, test.text)
			problems := strings.Join(got.Problems, "\n")
			if len(got.Edits) != test.edits || (problems == "") != (test.problem == "") || !strings.Contains(strings.ToLower(problems), strings.ToLower(test.problem)) {
				t.Errorf("%d edits, want %d; problems: %s", len(got.Edits), test.edits, problems)
			}
		})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	got := editformat.Parse(editformat.Diff, strings.Repeat("<<<<<<< SEARCH\n", 1000))
	if len(got.Edits) > 0 || len(got.Problems) == 0 || len(strings.Join(got.Problems, "\n")) > 4<<10 {
		t.Errorf("%d edits, problems %q", len(got.Edits), got.Problems)
	}
}
