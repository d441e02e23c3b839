package report

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// rendered is the page of a log.
func rendered(t testing.TB, log string) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, Write(&b, strings.NewReader(log)))
	return b.String()
}

// unchained is a log without a chain, which a report does not look at.
func unchained(t testing.TB, run []happening) string {
	t.Helper()
	var b strings.Builder
	for i, h := range run {
		data := must.Get(json.Marshal(h.Data))(t)
		line := must.Get(json.Marshal(eventlog.Event{
			V: eventlog.Version, Seq: int64(i + 1), Agent: transcript.MainAgent, Type: h.Kind, Data: data,
			Time: time.Date(2026, 3, 1, 9, 0, i, 0, time.UTC),
		}))(t)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// readPage is a page as a browser reads it.
type readPage struct {
	elements []*html.Node
	ids      map[string]int
	text     string // outside of script and style
}

func parsed(t testing.TB, page string) readPage {
	t.Helper()
	root := must.Get(html.Parse(strings.NewReader(page)))(t)
	d := readPage{ids: map[string]int{}}
	var text strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			d.elements = append(d.elements, n)
			if id, ok := attribute(n, "id"); ok {
				d.ids[id]++
			}
		case html.TextNode:
			if n.Parent.Data != "script" && n.Parent.Data != "style" {
				text.WriteString(n.Data)
			}
		case html.CommentNode:
			t.Errorf("the page has a comment: %q", n.Data)
		}
	}
	d.text = text.String()
	return d
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// all are the elements of a name.
func (d readPage) all(name string) []*html.Node {
	var found []*html.Node
	for _, n := range d.elements {
		if n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

// ours are the elements and the attributes that the page is written with.
var (
	ourElements = strings.Fields(`html head meta title style script body a header p h1 h2 h3 span dl div dt dd ul ol li nav main
		section table thead tbody tr th td code b i br pre del ins mark details summary label input button footer`)
	ourAttributes = strings.Fields(`lang charset http-equiv content name class href id aria-label aria-labelledby aria-describedby
		aria-hidden role tabindex hidden scope data-name type autocomplete spellcheck placeholder open rel`)
	ourClasses = strings.Fields(`skip brand verdict severe ending badge good bad open figures notices prose quote plan sign state
		stack facts tools find check buttons entries turn call note seq at body agent about end line cut h li d0 d1 d2 d3
		diff name place keep change part long file word nested`)
)

// madePage is the page of the repository or a commit, of which the page makes the address itself.
var madePage = regexp.MustCompile(`^https://github\.com/(?:octo-org/widgets|example/greet)(?:/commit/[0-9a-f]{40})?$`)

// harmless fails when anything stands in a page that it is not written with.
func (d readPage) harmless(t testing.TB) {
	t.Helper()
	for _, n := range d.elements {
		must.Same(t, true, slices.Contains(ourElements, n.Data), "the page has an element", n.Data)
		for _, a := range n.Attr {
			must.Same(t, true, slices.Contains(ourAttributes, a.Key), n.Data, "has an attribute", a.Key, a.Val)
		}
		class, _ := attribute(n, "class")
		for _, c := range strings.Fields(class) {
			must.Same(t, true, slices.Contains(ourClasses, c), n.Data, "has a class", c)
		}
		if href, ok := attribute(n, "href"); ok && !strings.HasPrefix(href, "#") && (transcript.Site{}).Page(href) == "" && !madePage.MatchString(href) {
			t.Errorf("a link leads to %q", href)
		}
	}
	for name, want := range map[string]string{"script": script, "style": Style} {
		found := d.all(name)
		if len(found) != 1 || len(found[0].Attr) != 0 || found[0].FirstChild.Data != want {
			t.Errorf("the page has %d elements <%s>, or not the one that is built in", len(found), name)
		}
	}
}

func TestPagesAreHarmlessAndComplete(t *testing.T) {
	for _, name := range []string{"ordinary", "hostile", "red", "setup"} {
		t.Run(name, func(t *testing.T) {
			run := fixture(t, name)
			d := parsed(t, rendered(t, unchained(t, run)))
			d.harmless(t)
			for id, n := range d.ids {
				if n > 1 {
					t.Errorf("%d elements have the id %s", n, id)
				}
			}
			for _, a := range d.all("a") {
				href, _ := attribute(a, "href")
				if target, inside := strings.CutPrefix(href, "#"); inside && d.ids[target] == 0 {
					t.Errorf("a link leads to %s, which is not there", href)
				}
			}
			for i := range run {
				must.Same(t, 1, d.ids[fmt.Sprintf("e%d", i+1)], i+1, run[i].Kind, "has no place on the page")
			}
		})
	}
}

func TestPolicyBlocksOutsideContent(t *testing.T) {
	d := parsed(t, rendered(t, unchained(t, fixture(t, "ordinary"))))
	var policies []string
	for i, n := range d.elements {
		if equiv, ok := attribute(n, "http-equiv"); ok {
			must.Same(t, "Content-Security-Policy", equiv, "the page has an http-equiv")
			content, _ := attribute(n, "content")
			policies = append(policies, content)
		}
		if (n.Data == "style" || n.Data == "script") && len(policies) == 0 {
			t.Errorf("<%s>, element %d, comes before the policy", n.Data, i)
		}
	}
	want := "default-src 'none'; style-src " + cspHash(Style) + "; script-src " + cspHash(script) + "; base-uri 'none'; form-action 'none'"
	if len(policies) != 1 || policies[0] != want {
		t.Errorf("policies %q, want one: %s", policies, want)
	}
}

func TestPageShowsRunDetails(t *testing.T) {
	text := parsed(t, rendered(t, unchained(t, fixture(t, "ordinary")))).text
	must.Contain(t, text,
		"Greet people politely", "changed/pull_request", "Pull request #8 was created", "blanks around a name do not count",
		"failed before too", "namespaces, landlock, seccomp", "The policy refused 1 call.", "by no_push",
		"25,800 in (12,400 cached)", "2 min 31 s", "+1,204 −9", "I should look at the test", "exit 1 · 0.8 s",
		"The whole output, 1,234,567 bytes, is outputs/call-6.txt", "HTTP 503", "Farewell", "名前", "from 120,000 tokens to", "web_search_call",
		"comments_left_out", "go mod download", "Turn 4", "4.4 s · 5,100 in, 310 out", "26 entries",
	)
	for _, not := range []string{"gAAAA", "unconfined", "not verified"} {
		must.Lack(t, text, not)
	}
}

func TestEscapesHostileText(t *testing.T) {
	text := parsed(t, rendered(t, unchained(t, fixture(t, "hostile")))).text
	for _, want := range []string{"<script>alert(1)</script>", "‹U+202E›abc‹U+2066›", "‹U+200B›‹U+FEFF›red", "␛]8;;http://evil.example␇␀␈", "&lt;b&gt;"} {
		if got := strings.Count(text, want); got < 10 {
			t.Errorf("the page shows %q %d times", want, got)
		}
	}
	for _, hidden := range []string{"\u202e", "\u2066", "\u200b", "\ufeff", "\x1b", "\x00", "\x08"} {
		must.Same(t, false, strings.Contains(text, hidden), "the page has the character", hidden)
	}
}

func TestPageShowsKilledRun(t *testing.T) {
	run := fixture(t, "ordinary")[:13] // in the middle of a call
	log := unchained(t, run) + `{"v":1,"se`
	d := parsed(t, rendered(t, log))
	must.Contain(t, d.text, "Not finished", "The run has not ended, or it was killed.", "last line is torn", "did not end")
	d.harmless(t)
}

func TestPageKeepsCallOrder(t *testing.T) {
	run := []happening{
		called(1, 1, "never_ends", "{}"),
		called(1, 2, "slow", "{}"), called(1, 3, "quick", "{}"),
		ended(1, 3, "quick", "", nil), ended(1, 2, "slow", "", nil),
		ended(1, 9, "never_began", "", nil),
		called(1, 4, "twice", "{}"), called(1, 4, "twice", "{}"),
		ended(1, 4, "twice", "", map[string]any{"exit_code": 1}), ended(1, 4, "twice", "", nil),
		asked(2), asked(2), answered(2), answered(3),
	}
	text := parsed(t, rendered(t, unchained(t, run))).text
	at := 0
	for _, want := range []string{
		"never_ends", "did not end", "slow", "ok", "quick", "ok", "never_began", "ok", "twice", "exit 1", "twice", "ok",
		"Turn 2", "no answer", "Turn 2", "5.4 s", "Turn 3",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or in another place:\n%s", want, text)
		}
		at += i + len(want)
	}
}

// growing is a log that is longer each time it is read.
type growing struct {
	io.ReadSeeker
	logs []string
}

func (g *growing) Seek(int64, int) (int64, error) {
	g.ReadSeeker = strings.NewReader(g.logs[0])
	g.logs = g.logs[1:]
	return 0, nil
}

func TestIgnoresEventsAppendedWhileReading(t *testing.T) {
	run := fixture(t, "ordinary")
	var b strings.Builder
	must.Do(t, Write(&b, &growing{logs: []string{unchained(t, run[:10]), unchained(t, run)}}))
	if d := parsed(t, b.String()); d.ids["e10"] != 1 || d.ids["e11"] != 0 {
		t.Error("the timeline does not end where the first reading ended")
	}
}

func TestWriteReturnsErrors(t *testing.T) {
	for name, log := range map[string]string{
		"no event": "{}\n",
		"no JSON":  "x\n",
	} {
		t.Run(name, func(t *testing.T) {
			must.Fail(t, "", Write(io.Discard, strings.NewReader(log)), "no error")
		})
	}
	must.Fail(t, "", Write(refusing{}, strings.NewReader(unchained(t, fixture(t, "ordinary")))), "a page that cannot be written is no error")
}

// A damaged event is reported, and shown as far as it can be read.
func TestShowsDamagedEvents(t *testing.T) {
	var page strings.Builder
	must.Do(t, Write(&page, strings.NewReader(`{"v":1,"seq":1,"time":"2026-03-01T09:00:00Z","agent":"main","type":"tool.started","data":{"turn":"x","tool":"shell"},"prev":""}`+"\n")))
	must.Contain(t, page.String(), "The transcript is damaged: transcript event 1 (tool.started): turn is a string, not a whole number.", "<b>shell</b>")
}

// Entries wait for a call that never ends. Those of the first pass do so without their texts, which may have gigabytes.
func TestFirstPassKeepsNoTexts(t *testing.T) {
	lost := transcript.ToolStarted{Turn: 999, Number: 1, CallID: "lost", Tool: "shell"}
	run := append([]happening{{Kind: transcript.TypeToolStarted, Data: lost}}, fixture(t, "ordinary")...)
	entries := newAssembler(&transcript.View{}, (&textSizes{}).record, nil, func(*entry) {})
	for e, err := range transcript.Read(strings.NewReader(unchained(t, run))) {
		must.Do(t, err)
		entries.add(e)
	}
	for _, n := range entries.queue {
		must.Same(t, 0, len(n.Message)+len(n.Parts), "texts of", n.Name)
	}
	if waiting := len(entries.queue); waiting < 10 {
		t.Errorf("only %d entries wait", waiting)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func FuzzNothingBecomesMarkup(f *testing.F) {
	for _, seed := range []string{evil, "", "plain", "```\n</pre>", "**<b>** `<i>`", "*** Begin Patch\n*** Add File: x\n+<b>\n*** End Patch", `{"cmd":"<script>"}`, "\r\n\x1b[1m\u202e", "&amp;&#x3c;", "<!--", "javascript:alert(1)", "https://github.com/octo-org/widgets/pull/8\" onclick=\"x", "</style></script><script>", "\x00' style=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		run := []happening{
			{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: s, Version: s, Key: s, Scripted: s, RunPage: s, ChangedSettings: json.RawMessage(`{"a":{` + quoted(s) + `:` + quoted(s) + `}}`), Job: json.RawMessage(quoted(s))}},
			{Kind: transcript.TypeTask, Data: transcript.Task{Source: s, Title: s, Text: s, Issue: s, URL: s}},
			{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Repository: s, Base: s, BaseSHA: s}},
			{Kind: transcript.TypePolicy, Data: transcript.Policy{Level: s, Layers: []string{s}, WorkTree: s, NoOverlay: s}},
			asked(1, json.RawMessage(`{"role":`+quoted(s)+`,"content":`+quoted(s)+`}`)),
			answered(1, transcripttest.Message(s), json.RawMessage(`{"type":`+quoted(s)+`}`)),
			{Kind: transcript.TypePlan, Data: transcript.Plan{Explanation: s, Steps: []transcript.PlanStep{{Step: s, Status: s}}}},
			called(1, 1, s, s), ended(1, 1, s, s, map[string]any{"denied": s}),
			called(1, 2, "apply_patch", "*** Begin Patch\n*** Update File: "+strings.ReplaceAll(s, "\n", " ")+"\n@@\n-"+strings.ReplaceAll(s, "\n", "\n-")+"\n+x"+strings.ReplaceAll(s, "\n", "\n+")+"\n*** End Patch"),
			{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: s, Run: s, Before: s, After: s}}}},
			{Kind: transcript.TypeChange, Data: transcript.Change{Files: []changeset.File{{Path: s, Status: changeset.Status(s)}, {Path: "a"}}, Patch: s, DiffCut: true, Diff: "--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@ " + s + "\n-" + s + "\n+" + s + "\n" + s}},
			{Kind: transcript.TypePublish, Data: transcript.Publish{Step: s, Branch: s, URL: s, Remote: s, HeadSHA: s}},
			{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: s, Message: s}},
			{Kind: transcript.Type(s), Data: s},
			{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{Outcome: s, Reason: s, Message: s, Summary: s}},
		}
		d := parsed(t, rendered(t, unchained(t, run)))
		d.harmless(t)
		if len(s) < 100 && utf8.ValidString(s) {
			shown := strings.Join(strings.Fields(markdown.Show(s)), " ")
			must.Contain(t, strings.Join(strings.Fields(d.text), " "), shown)
		}
	})
}

func TestBoundsPageSize(t *testing.T) {
	const events = 1000
	dense := strings.Repeat("<\"'>&+\u202e", 400)
	turn := []happening{
		asked(1), answered(1, transcripttest.Message("I look at the next place, `file.go`, and **fix** it.")),
		called(1, 1, "exec_command", `{"cmd":"go test ./..."}`), ended(1, 1, "exec_command", dense, map[string]any{"exit_code": 1}),
		called(1, 2, "apply_patch", "*** Begin Patch\n*** Update File: a\n@@ f\n x\n-old "+dense+"\n+new "+dense+"\n*** End Patch"), ended(1, 2, "apply_patch", dense, nil),
	}
	warning := happening{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: "dense", Message: strings.Repeat("- `a`\n", 250)}}
	patch := called(1, 1, "apply_patch", "*** Begin Patch\n*** Add File: a\n"+strings.Repeat("+\n", 500)+"*** End Patch")
	diff := happening{Kind: transcript.TypeChange, Data: transcript.Change{
		Files: []changeset.File{{Path: "a"}}, Diff: "--- a/a\n+++ b/a\n@@ -1,0 +1,66000 @@\n" + strings.Repeat("+<\n", transcript.DiffBytes/3),
	}}
	for name, run := range map[string][]happening{
		"turns": slices.Repeat(turn, events/len(turn)), "warnings": slices.Repeat([]happening{warning}, events), "patches": append(slices.Repeat([]happening{patch}, events), diff),
	} {
		t.Run(name, func(t *testing.T) {
			page := len(rendered(t, unchained(t, run)))
			if page > pageBytes || page < pageBytes/3 {
				t.Errorf("%d bytes, want up to %d, and no less than a third", page, pageBytes)
			}
		})
	}
	if page := len(rendered(t, unchained(t, []happening{diff}))); page > 2*filesBytes {
		t.Errorf("a page of one long diff has %d bytes", page)
	}
}

func BenchmarkWrite(b *testing.B) {
	call := []happening{called(1, 1, "exec_command", `{"cmd":"go test ./..."}`), ended(1, 1, "exec_command", transcripttest.Numbered(60), nil)}
	log := unchained(b, slices.Repeat(call, 2500))
	for b.Loop() {
		must.Do(b, Write(io.Discard, strings.NewReader(log)))
	}
}
