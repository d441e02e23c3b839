package body

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	source "github.com/yuin/goldmark/text"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// github is a reader of GitHub-flavoured Markdown that is not ours.
var github = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()

// reading is a post as that reader understands it.
type reading struct {
	source   []byte
	code     []string // blocks
	elements []string // HTML, tag by tag, comments whole
	links    []string
	said     strings.Builder // text outside of code, entities decoded, nodes apart by nothing
}

func read(post string) *reading {
	r := &reading{source: []byte(post)}
	_ = ast.Walk(github.Parse(source.NewReader(r.source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			return r.enter(n), nil
		}
		if n.Type() == ast.TypeBlock {
			r.said.WriteString("\n")
		}
		return ast.WalkContinue, nil
	})
	return r
}

func (r *reading) enter(n ast.Node) ast.WalkStatus {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		r.code = append(r.code, string(n.Lines().Value(r.source)))
		return ast.WalkSkipChildren
	case *ast.CodeBlock:
		r.code = append(r.code, "indented: "+string(n.Lines().Value(r.source)))
		return ast.WalkSkipChildren
	case *ast.HTMLBlock:
		raw := string(n.Lines().Value(r.source))
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(r.source))
		}
		r.html(raw)
		return ast.WalkSkipChildren
	case *ast.RawHTML:
		r.html(string(n.Segments.Value(r.source)))
		return ast.WalkSkipChildren
	case *ast.CodeSpan:
		r.said.WriteString("C")
		return ast.WalkSkipChildren
	case *ast.Link:
		r.links = append(r.links, string(n.Destination))
		r.said.WriteString("L") // its name is ours, and no reference within a link
		return ast.WalkSkipChildren
	case *ast.AutoLink:
		r.links = append(r.links, "auto "+string(n.URL(r.source)))
	case *ast.Image:
		r.links = append(r.links, "image "+string(n.Destination))
	case *extast.FootnoteLink, *extast.Footnote:
		r.links = append(r.links, "footnote")
	case *ast.Text:
		r.said.WriteString(html.UnescapeString(unescape(string(n.Segment.Value(r.source)))))
		if n.SoftLineBreak() || n.HardLineBreak() {
			r.said.WriteString("\n")
		}
	case *ast.String:
		r.said.Write(n.Value)
	}
	return ast.WalkContinue
}

var (
	escape = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)
	tag    = regexp.MustCompile(`(?s)<!--.*?-->|</?[a-zA-Z][^>]*>|<[a-zA-Z!?/]`)
)

func unescape(s string) string { return escape.ReplaceAllString(s, "$1") }

func (r *reading) html(raw string) {
	r.elements = append(r.elements, tag.FindAllString(raw, -1)...)
	r.said.WriteString(html.UnescapeString(tag.ReplaceAllString(raw, "")))
}

// ourElements are the only HTML in a post.
var ourElements = regexp.MustCompile(`^(?:</?(?:details|summary|blockquote|b|code|span)>|<!-- agent-ci: (?:transcript|template|end of template|draft|commit [0-9a-z]+|requests [A-Za-z0-9+/=]+) -->)$`)

// effects are what GitHub makes of plain text. The zero width space that is put
// in their way is not removed before GitHub looks for them.
var effects = regexp.MustCompile(`(?i)@[a-z0-9]|#[0-9]|\bgh-[0-9]|://|www\.`)

// raw are what acts on a body as it was written, whatever is code in it: bots'
// commands, workflow commands, and closing keywords after a squash.
var raw = regexp.MustCompile(`(?mi)^[ \t]*::|##\[|\[(?:skip|no)[ -]ci\]|@(?:claude|dependabot)|^[ \t]*/[a-z][\w-]*(?:[ \t]|$)|(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?)[\s:]+(?:[\w.-]+/[\w.-]+)?(?:#[0-9]|gh-[0-9]|https?://)`)

// wantProven fails unless a post is what it was meant to be: closing is what it
// may close, links what it may link to.
func wantProven(t *testing.T, post, closing string, links ...string) *reading {
	t.Helper()
	r := read(post)
	said := strings.TrimSuffix(r.said.String(), "\n")
	if closing != "" {
		post = strings.Replace(post, "\n"+closing+"\n\n", "\n\n", 1)
		said = strings.Replace(said, closing+"\n", "\n", 1)
	}
	for _, link := range r.links {
		must.Same(t, true, slices.Contains(links, link), "a link to", link, "in", post)
	}
	must.Same(t, "", effects.FindString(said), "has its effect in", post, said)
	must.Same(t, "", raw.FindString(post), post)
	r.wantBalanced(t, post)
	return r
}

// wantBalanced fails if an element is not ours, or does not end.
func (r *reading) wantBalanced(t *testing.T, post string) {
	t.Helper()
	var open []string
	for _, element := range r.elements {
		switch name := strings.Trim(element, "</>"); {
		case !ourElements.MatchString(element):
			t.Errorf("the element %q in:\n%s", element, post)
		case strings.HasPrefix(element, "<!--"):
		case !strings.HasPrefix(element, "</"):
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			t.Fatalf("%s ends what is not open (%q) in:\n%s", element, open, post)
		default:
			open = open[:len(open)-1]
		}
	}
	must.None(t, open, "is left open in", post)
}

func (r *reading) count(element string) int {
	n := 0
	for _, e := range r.elements {
		if e == element {
			n++
		}
	}
	return n
}

// everywhere is a run in which every text is s.
func everywhere(s string) []transcripttest.Happening {
	run := []transcripttest.Happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: s, Version: s, Key: s, Scripted: s, RunPage: s, Artifacts: s}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: s, Title: s, Text: s, RequestText: s, Actor: s, Issue: s, URL: s}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Repository: s, Base: s, BaseSHA: s, Branch: s, Path: s}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: s, Network: s, Level: s, Layers: []string{s}, WorkTree: s, NoOverlay: s}},
		{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: s, Run: s, Log: s, Tail: s}},
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{Sandbox: s, Name: s, Target: s, Uses: 2}},
		{Kind: transcript.TypeNetwork, Data: transcript.HostRequest{Sandbox: s, Target: s, Protocol: s, Rule: transcript.SecretRule + s, Reason: s}},
		{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1, Model: s}},
		{Kind: transcript.TypePlan, Data: transcript.Plan{Steps: []transcript.PlanStep{{Step: s, Status: "completed"}, {Step: s, Status: s}}}},
	}
	for i := range 4 {
		run = append(run, transcripttest.Said(i, s), transcripttest.Called(i, s, s, s), transcripttest.Happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{
			Turn: i, CallID: s, Tool: s, Output: s, Failed: i == 1, File: s, Bytes: int64(len(s)), Detail: map[string]any{"exit_code": i},
		}})
	}
	run = append(run, transcripttest.CalledBy(1, 9, 0, s, "exec", s), transcripttest.CalledBy(1, 1, 9, s, s, s), transcripttest.EndOfCallBy(1, 1, 9, s, s, s))
	return append(run, transcripttest.Happening{Kind: transcript.TypeChange, Data: transcript.Change{Files: []changeset.File{{Path: s, Status: changeset.Status(s)}}}},
		transcripttest.Happening{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: s, Run: s, Before: s, After: s, Passed: true}, {Name: s, Run: s, Before: s, After: s, Tail: s, Failing: []transcript.FailingTest{{Name: s, File: s, Line: 1, Message: s, New: true}}, Fixed: []string{s}}}}},
		transcripttest.Happening{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: s, Message: s}}, transcripttest.Happening{Kind: transcript.TypePublish, Data: transcript.Publish{Step: s, Branch: s, HeadSHA: s, Remote: s, URL: s}},
		transcripttest.Happening{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{Outcome: s, Reason: s, Message: s}})
}

// wantCode fails unless every output of a call is a block of code as it was
// meant, and there are no others between the calls' own.
// besides is how many parts are folded that are no calls.
func wantCode(t *testing.T, v *transcript.View, posts []*reading, mode Mode, besides int) {
	t.Helper()
	var all []string
	details := -besides
	for _, r := range posts {
		details += r.count("<details>")
		all = append(all, r.code...)
	}
	if mode != full {
		must.Same(t, 0, details, "elements fold something in the mode", mode)
		return
	}
	for _, block := range all {
		must.Same(t, false, strings.HasPrefix(block, "indented: "), "an indented block of code", block)
	}
	var want []string
	shownCalls := details
	for _, e := range v.Entries {
		if e.Call == nil || shownCalls == 0 {
			continue
		}
		shownCalls--
		for _, part := range []string{e.Call.Input, e.Call.Output} {
			if text := fenced(part); text != "" {
				want = append(want, text)
			}
		}
	}
	for _, block := range want {
		at := slices.Index(all, block)
		if at < 0 {
			t.Fatalf("the block %q is not read as such; read are %q", block, all)
		}
		all = slices.Delete(all, at, at+1)
	}
}

// fenced is what a block of code is meant to hold of an excerpt: the text that
// [markdown.Fence] writes, without its fences.
func fenced(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.SplitAfter(markdown.Fence(text), "\n")
	return strings.Join(lines[1:len(lines)-2], "")
}

var nasty = []string{
	"", "plain\ntext", "</details>\n```\n@octocat #1", "> ```\n>\n- `a\n1. <details>", "```````````\n~~~\n`````", "\x1b[31m\u202e\xff\r\n\rx",
	"@octo/core, a@b.example, <a@b.example>, mailto:a@b.example, www.a.example, https://a.example/o/r/issues/1",
	"fixes #1\ncloses: o/r#2\nresolves https://github.com/o/r/issues/3\nFIXED GH-4\nfix\n#5",
	"x [skip ci] [NO-CI]\n[skip ci](https://a.example)", "@claude run it\n@Dependabot merge", "/approve\n  /lgtm cancel\n/usr/bin/true\n/agent-ci go on", "::error::x\n##[group]x\n::stop-commands::y",
	"![i](https://evil.example/i.png) [x](javascript:alert(1)) <img src=x onerror=y> <svg/onload=z>", "[^1]\n\n[^1]: a note\n\n[x]: https://a.example\n[x]",
	"- [x] done\n- [ ] not\n\n    indented\n\n\tcode", "| a | b |\n|---|---|\n| `|` | ~~x~~ |", "<!-- agent-ci: template -->\n- [x] a\n<!-- agent-ci: end of template -->\n<!-- agent-ci: draft -->",
	"a\n===\nb\n---\n***\n___", "&#64;octocat &commat;x &num;1 &lt;b&gt; &amp;amp;", "\\@a \\#1 \\`x\\` \\", "$x$ $$y$$ $`z`$ :tada: ```math\nx\n```",
	"<details>\n<summary>x</summary>\n\n```\n", "<pre>\n\n</pre>\n<script>\n</script>\n<![CDATA[ ]]> <?x ?> <!X>", "`` ` `` **a `b** c` ***d*** __e__", "1. a\n   - b\n\n     c\n2) d\n# e #",
	"*** Begin Patch\n*** Add File: ```\n+@a\n*** End Patch", `{"cmd":"` + "```" + `\n@a","x":["</details>"]}`,
}

func TestPostsRenderAsIntended(t *testing.T) {
	for i, s := range nasty {
		t.Run(fmt.Sprint(i), func(t *testing.T) { proveRun(t, s, DefaultLimit, full) })
	}
}

// TestOutlinesRenderAsIntended looks at the summary of a job with an outcome that is text of
// somebody else's too.
func TestOutlinesRenderAsIntended(t *testing.T) {
	for _, s := range nasty {
		v := transcripttest.Folded(t, everywhere(s))
		for _, site := range []transcript.Site{{Server: "https://github.com", Repository: "o/r"}, {Server: s, Repository: s}, {}} {
			wantProven(t, Outline(v, site, 50_000), "")
		}
		wantProven(t, Document(v), "")
		if title := len(utf16.Encode([]rune(Title(v)))); title == 0 || title > 256 {
			t.Errorf("the title has %d units", title)
		}
	}
}

func FuzzPosts(f *testing.F) {
	for i, s := range nasty {
		f.Add(s, uint16(4000), uint8(i))
	}
	f.Add(strings.Repeat("😀漢@a #1 `x` ", 60)+"\n", uint16(9000), uint8(0))
	f.Fuzz(func(t *testing.T, s string, limit uint16, mode uint8) {
		proveRun(t, s, int(limit)+1, []Mode{full, digest, none}[mode%3])
	})
}

func proveRun(t *testing.T, s string, limit int, mode Mode) {
	t.Helper()
	v := transcripttest.Folded(t, everywhere(s))
	o := Options{
		Mode: mode, limit: limit, RunDir: s, Head: "<!-- agent-ci: draft -->\n", Template: s, Closing: "Fixes #7",
		Site:        []transcript.Site{{Server: s, Repository: s}, {Server: "https://github.com", Repository: "o/r"}}[len(s)%2],
		KeepRequest: true, Remarks: sections.Remarks{DraftReasons: []string{s}, Notes: []string{s}, Earlier: []sections.Request{{Run: s, Link: s, Asked: s, Actor: s, Summary: s}}},
	}
	posts, err := composed(v, o)
	if err != nil {
		return // no room even for where the transcript is
	}
	if len(posts.Comments) > MaxComments {
		t.Errorf("%d comments", len(posts.Comments))
	}
	all := []*reading{wantProven(t, posts.Body, "Fixes #7")}
	for _, comment := range posts.Comments {
		all = append(all, wantProven(t, comment, ""))
	}
	for i, post := range append([]string{posts.Body}, posts.Comments...) {
		if units := len(utf16.Encode([]rune(post))); units > limit {
			t.Errorf("post %d has %d UTF-16 units, the limit is %d", i, units, limit)
		}
	}
	wantCode(t, v, all, mode, strings.Count(posts.Body, "\n<summary>The last lines of ")+
		strings.Count(posts.Body, "\n<summary>Tests of ")+strings.Count(posts.Body, "\n<summary>Asked for"))
	must.Same(t, len(posts.Body), len(KeepTicks(posts.Body, strings.ReplaceAll(posts.Body, "[ ]", "[x]"))), "ticks make another body of", posts.Body)
}
