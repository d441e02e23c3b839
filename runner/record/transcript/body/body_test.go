package body

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestBodyGolden(t *testing.T) {
	tests := []struct {
		golden  string
		run     []transcripttest.Happening
		options Options
	}{
		{"body_full.md", transcripttest.Greeting(), Options{
			RunDir: "20260301T090000Z-0a1b2c3d", Closing: "Fixes #7", Site: transcript.Site{Server: "https://github.com", Repository: "example/greet"}, Remarks: sections.Remarks{DraftReasons: []string{"lint did not pass before the change either."}, Notes: []string{"Checks wait for approval."}},
			Head: "<!-- agent-ci: draft -->\n", Template: "<!-- Thanks! -->\n## Checklist\n\n- [x] Tests were added\n",
		}},
		{"body_digest.md", transcripttest.Greeting(), Options{Mode: digest}},
		{"body_none.md", transcripttest.Greeting(), Options{Mode: none}},
		{"body_scripts.md", transcripttest.Scripts(), Options{}},
		{"body_bare.md", bare(), Options{}},
	}
	for _, test := range tests {
		t.Run(test.golden, func(t *testing.T) {
			body := must.Get(alone(transcripttest.Folded(t, test.run), test.options))(t)
			golden.Compare(t, "testdata/"+test.golden, body)
		})
	}
}

func TestDocumentGolden(t *testing.T) {
	for file, run := range map[string][]transcripttest.Happening{
		"document.md": append(transcripttest.Greeting(), transcripttest.Finished(154)), "document_bare.md": bare(), "document_rich.md": transcripttest.Rich(),
	} {
		t.Run(file, func(t *testing.T) {
			view := must.Get(transcript.FoldWithTexts(strings.NewReader(transcripttest.Recorded(t, run))))(t)
			golden.Compare(t, "testdata/"+file, Document(view))
		})
	}
}

// posted checks what holds for every body and comment, and returns them as one.
func posted(t *testing.T, posts Posts, limit int) []string {
	t.Helper()
	all := append([]string{posts.Body}, posts.Comments...)
	for i, post := range all {
		if units := len(utf16.Encode([]rune(post))); units > limit {
			t.Errorf("post %d has %d UTF-16 units, the limit is %d", i, units, limit)
		}
		must.Same(t, true, utf8.ValidString(post), "post", i, "is not UTF-8")
		read(post).wantBalanced(t, post)
	}
	return all
}

func TestComposeShowsEveryCallOnce(t *testing.T) {
	for mode, events := range map[Mode]int{full: 100, digest: 600} {
		t.Run(string(mode), func(t *testing.T) {
			const limit = 6_000
			view := transcripttest.Folded(t, transcripttest.Long(events))
			posts := must.Get(composed(view, Options{Mode: mode, limit: limit, Closing: "Fixes #7"}))(t)
			if len(posts.Comments) == 0 {
				t.Fatal("everything fits in the body; the test tests nothing")
			}
			all := strings.Join(posted(t, posts, limit), "")
			must.Same(t, view.Calls, strings.Count(all, "exec_command"))
			must.Lack(t, all, "not shown here")
			if want := fmt.Sprintf("continues in %d comments below", len(posts.Comments)); len(posts.Comments) > 1 && !strings.Contains(posts.Body, want) {
				t.Errorf("the body does not say %q:\n%s", want, posts.Body)
			}
			if !strings.HasPrefix(posts.Body, "Fixes #7\n\n") {
				t.Errorf("the body does not begin with what it closes: %q", posts.Body[:40])
			}
			for i, comment := range posts.Comments {
				head := fmt.Sprintf("%s\n**Transcript of run `20260301T090000Z-0a1b2c3d`, part %d of %d**\n", CommentMark, i+2, len(posts.Comments)+1)
				if !strings.HasPrefix(comment, head) {
					t.Errorf("comment %d begins with %q, want %q", i, comment[:min(len(comment), 120)], head)
				}
			}
		})
	}
}

func TestComposeCountsOmittedCalls(t *testing.T) {
	view := transcripttest.Folded(t, transcripttest.Long(900))
	posts := must.Get(composed(view, Options{limit: 6_000}))(t)
	all := posted(t, posts, 6_000)
	must.Same(t, MaxComments, len(posts.Comments))
	missing := view.Calls - strings.Count(strings.Join(all, ""), "<b>exec_command</b>")
	want := transcript.GroupThousands(missing) + " more calls are not shown here.\n"
	if missing <= 0 || !strings.HasSuffix(all[len(all)-1], want) || strings.Count(strings.Join(all, ""), "not shown here") != 1 {
		t.Errorf("%d calls are missing; the last comment ends in %q", missing, all[len(all)-1][len(all[len(all)-1])-80:])
	}
}

// patched is a run of many calls, of which a few changed files.
func patched(calls int, changing ...int) []transcripttest.Happening {
	run := transcripttest.Greeting()[:7]
	for n := range calls {
		id := fmt.Sprintf("c%d", n+1)
		if !slices.Contains(changing, n+1) {
			run = append(run, transcripttest.Called(n+1, id, "exec_command", fmt.Sprintf(`{"cmd":"look at %d"}`, n+1)), transcripttest.Ended(n+1, id, "exec_command", transcripttest.Numbered(12), 0))
			continue
		}
		run = append(run, transcripttest.Called(n+1, id, "apply_patch", fmt.Sprintf("*** Begin Patch\n*** Add File: file-%d\n+x\n*** End Patch\n", n+1)),
			transcripttest.Happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{Turn: n + 1, CallID: id, Tool: "apply_patch", Output: "Success.", Detail: map[string]any{"files": []map[string]any{{"path": "x"}}}}})
	}
	return run
}

func TestShowsChangingCallsFirst(t *testing.T) {
	for _, mode := range []Mode{full, digest} {
		view := transcripttest.Folded(t, patched(2420, 3, 150, 151, 2001, 2420))
		body := must.Get(alone(view, Options{Mode: mode, limit: 20_000}))(t)
		posted(t, Posts{Body: body}, 20_000)
		last := 0
		for _, want := range []string{"file-3", "file-150", "file-151", "file-2001", "file-2420"} {
			at := strings.Index(body, want)
			if at < last {
				t.Errorf("%s: %s is missing, or not in its place", mode, want)
			}
			last = at
		}
		shown := strings.Count(body, "exec_command") + strings.Count(body, "apply_patch")
		if want := transcript.GroupThousands(view.Calls-shown) + " more calls are not shown here. The whole transcript is"; shown < 15 || !strings.Contains(body, want) {
			t.Errorf("%s: %d calls are shown; no %q in %s", mode, shown, want, body[len(body)-400:])
		}
		left := 0
		for _, gap := range regexp.MustCompile(`… ([0-9,]+) calls? not shown …`).FindAllStringSubmatch(body, -1) {
			n, _ := strconv.Atoi(strings.ReplaceAll(gap[1], ",", ""))
			left += n
		}
		must.Same(t, view.Calls-shown, left, mode, "the lines between calls say that", "are left out")
	}
}

func TestManyChangingCallsDisplaceOthers(t *testing.T) {
	all := make([]int, 300)
	for i := range all {
		all[i] = i + 101
	}
	view := transcripttest.Folded(t, patched(400, all...))
	posts := must.Get(composed(view, Options{limit: 3_000}))(t)
	text := strings.Join(posted(t, posts, 3_000), "")
	if shown := strings.Count(text, "<b>apply_patch</b>"); shown < 100 || strings.Contains(text, "<b>exec_command</b>") {
		t.Errorf("%d calls that changed files are shown, and others: %v", shown, strings.Contains(text, "<b>exec_command</b>"))
	}
	if !strings.Contains(text, "<code>file-101</code>") && !strings.Contains(text, "file-101") {
		t.Error("the first of them is not shown")
	}
}

func TestRefusesTooSmallBodyLimit(t *testing.T) {
	if body, err := alone(transcripttest.Folded(t, transcripttest.Greeting()), Options{limit: 50}); err == nil || body != "" {
		t.Errorf("a body of 50 characters: %q, %v", body, err)
	}
}

// Every call must find room on an empty page of the default limit, however its
// text swells.
func TestWorstCallFits(t *testing.T) {
	for _, worst := range []string{"$", "`", "@", "😀", "漢", "|", "`\n", "x"} {
		t.Run(worst, func(t *testing.T) {
			text := strings.TrimSuffix(strings.Repeat(strings.Repeat(worst, 400)+"\n", 60), "\n")
			var run []transcripttest.Happening
			for i := range 6 {
				run = append(run, transcripttest.Said(i, text), transcripttest.Called(i, text, text, text), transcripttest.Ended(i, text, text, text, 1))
			}
			posts := must.Get(composed(transcripttest.Folded(t, run), Options{}))(t)
			must.Same(t, 6, strings.Count(strings.Join(posted(t, posts, DefaultLimit), ""), "<summary>"), "of 6 calls are shown")
		})
	}
}

func TestBodyShowsAgentsAndTornLog(t *testing.T) {
	mine := transcripttest.Recorded(t, []transcripttest.Happening{transcripttest.Said(1, "mine")})
	other := strings.ReplaceAll(transcripttest.Recorded(t, []transcripttest.Happening{transcripttest.Said(1, "theirs")}), `"agent":"main"`, `"agent":"reviewer"`)
	view := must.Get(transcript.FoldWithEntries(strings.NewReader(mine + other + `{"v":1,"seq":`)))(t)
	body := must.Get(alone(view, Options{}))(t)
	must.Contain(t, body, "> reviewer:\n>\n> theirs\n")
	must.Same(t, 1, strings.Count(body, "mine"), "body", body)
	must.Contain(t, body, "The transcript's last line is torn")
}

func TestKeepsTicksOfTemplate(t *testing.T) {
	const template = "- [ ] one\n- [ ] two\n  - [ ] three\n1. [ ] four\n"
	body := func(template, summary string) string {
		t.Helper()
		return must.Get(alone(transcripttest.Folded(t, []transcripttest.Happening{transcripttest.Said(1, summary)}), Options{Template: template}))(t)
	}
	fresh := body(template, "Done.")
	tests := []struct{ name, earlier, want string }{
		{"nothing was ticked", fresh, fresh},
		{
			"two boxes, on a page", strings.ReplaceAll(strings.NewReplacer("[ ] two", "[x] two", "[ ] four", "[x] four").Replace(fresh), "\n", "\r\n"),
			strings.NewReplacer("[ ] two", "[x] two", "[ ] four", "[x] four").Replace(fresh),
		},
		{"one that is deeper", strings.Replace(fresh, "[ ] three", "[x] three", 1), strings.Replace(fresh, "[ ] three", "[x] three", 1)},
		{"a box that is gone", strings.Replace(body("- [ ] old\n- [ ] one\n", "Done."), "[ ] old", "[x] old", 1), fresh},
		{"a tick outside of the template", "- [x] one\n" + fresh, fresh},
		{"a body without a template", "- [x] one\n", fresh},
		{"a summary that plays the template", body(template, "```\n"+templateMark+"\n- [x] one\n"+templateEnd+"\n```"), fresh},
		{"the end of the template is gone", strings.Replace(strings.Replace(fresh, templateEnd, "", 1), "[ ] one", "[x] one", 1), fresh},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, KeepTicks(fresh, test.earlier))
		})
	}
}

func TestCutsLongTemplate(t *testing.T) {
	body := must.Get(alone(transcripttest.Folded(t, transcripttest.Greeting()), Options{Template: strings.Repeat("- [ ] "+strings.Repeat("x", 90)+"\n", 200)}))(t)
	form, _, ended := strings.Cut(body, "\n"+templateEnd+"\n")
	if !ended || !strings.Contains(form, " more blocks.\n") || strings.Count(form, "- [ ] x") < 50 || !strings.Contains(body, "## Transcript") {
		t.Errorf("body:\n%s", body)
	}
}

func TestCountsRestOfLongSections(t *testing.T) {
	var steps []transcript.PlanStep
	var files []changeset.File
	for i := range 51 {
		steps = append(steps, transcript.PlanStep{Step: fmt.Sprint("step ", i)})
		files = append(files, changeset.File{Path: strings.Repeat("d/", 100), Status: "M"})
	}
	run := []transcripttest.Happening{{Kind: transcript.TypePlan, Data: transcript.Plan{Steps: steps}}, {Kind: transcript.TypeChange, Data: transcript.Change{Files: files}}}
	body := Outline(transcripttest.Folded(t, run), transcript.Site{}, DefaultLimit)
	must.Contain(t, body, "- [ ] step 49\n\n… and 1 more step.\n", " more files.\n", "51 files")
}

func TestTitle(t *testing.T) {
	tests := []struct {
		name string
		run  []transcripttest.Happening
		want string
	}{
		{"the task's", transcripttest.Greeting(), "Greeting lacks its comma"},
		{"the summary's first line", []transcripttest.Happening{{Kind: transcript.TypeTask, Data: transcript.Task{Text: "Do it"}}, transcripttest.Said(1, "## Done\n\nMended the **greeting** (fixes #7, @octocat).\n\nMore.")}, "Mended the greeting (fixes #\u200b7, @\u200boctocat)"},
		{"the task's first line", []transcripttest.Happening{{Kind: transcript.TypeTask, Data: transcript.Task{Text: "Fix the greeting.\nPlease."}}}, "Fix the greeting"},
		{"the key", []transcripttest.Happening{{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{Key: "prompt-1"}}}, "agent-ci prompt-1"},
		{"nothing", nil, "agent-ci"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, Title(transcripttest.Folded(t, test.run)))
		})
	}
}
