package show

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	source "github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// hostile are texts by which a page, an issue, a terminal or a spreadsheet would do something.
var hostile = []string{
	"<script>alert(1)</script>", "</summary></details><img src=x onerror=alert(1)>", "[click](https://evil.example)", "@octocat fixes #7", "`` ` ``", "a\nb\n\n# c", "\x1b[2J\x1b]8;;https://evil.example\x07x",
	"\u202egpj.exe", "=cmd|' /C calc'!A1", "+1", "-1", "@SUM(1)", "\tx", "https://evil.example/x", "www.evil.example", "::error::x", "a\"b,c\r\nd", strings.Repeat("long ", 5000), "\xff\xfe", "$\\alpha$", "--- \n| a | b |", "{{.}}", "${{ secrets.X }}", "..", "a/../../b",
}

func known[T any](v T) *T { return &v }

// status is one of so many targets, whose texts are all hostile.
func status(targets int) campaign.Status {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	s := campaign.Status{
		Version: 1, Campaign: "bump", Template: "aa", Plan: "bb", Ledger: "cc", Counts: map[campaign.Class]int{}, Server: "https://github.com", Runs: targets,
		Wait: campaign.Wait{Why: campaign.WaitStopped, Words: "3 of the last 4 runs ended with " + hostile[0], Until: at},
	}
	s.Budget.USD, s.Budget.USDPerDay = 100, 10
	classes := campaign.Classes()
	for i := range targets {
		text := hostile[i%len(hostile)]
		row := campaign.Row{
			Target: campaign.Target{Key: text, Repository: "octo-org/" + text, Issue: i % 3, Path: text, Blocker: text}, Class: classes[i%len(classes)], Attempts: 1, Since: &at,
			Report: &campaign.Report{
				RunID: text, Outcome: "internal_error", Reason: text, Message: text, CostUSD: known(0.25), Tokens: known(int64(7)), Commit: text,
			},
			Pull: &campaign.PullState{Number: i + 1, State: "open"},
		}
		row.Report.PullRequest.Number, row.Report.PullRequest.URL = i+1, "https://evil.example/octo-org/widgets/pull/1"
		if i%2 == 0 {
			row.Repository = "octo-org/widgets"
		}
		s.Counts[row.Class]++
		s.Targets = append(s.Targets, row)
	}
	return s
}

func written(t testing.TB, write func(io.Writer, campaign.Status) error, s campaign.Status) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, write(&out, s))
	return out.String()
}

// pulls are where anything of a status may lead.
var pulls = regexp.MustCompile(`^https://github\.com/octo-org/[\w.-]*\w[\w.-]*/pull/\d+$`)

func TestTableNeutralisesControlCharacters(t *testing.T) {
	s := status(60)
	text := written(t, Table, s)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x202e }) {
			t.Errorf("%q", line)
		}
	}
	must.Same(t, 1+60+7, strings.Count(text, "\n"))
	must.Contain(t, text, "60 targets: 4 waiting", "0.00 of 100.00 dollars spent; 0 tokens", "spent today (UTC)", "Waits: 3 of the last")
}

// A change without a pull request is shown by its commit, branch and run directory.
func TestShowsLocalChanges(t *testing.T) {
	row := campaign.Row{
		Target: campaign.Target{Key: "bump-widgets-01", Repository: "octo-org/widgets"}, Class: campaign.Committed, Attempts: 1, Directory: "/l/bump/runs/bump-widgets-01-5ab1-1",
		Report: &campaign.Report{RunID: "r", Outcome: "changed", Commit: strings.Repeat("ab", 20), Branch: "agent-ci/bump-widgets-01"},
	}
	s := campaign.Status{Campaign: "bump", Counts: map[campaign.Class]int{campaign.Committed: 1}, Targets: []campaign.Row{row}}
	table := written(t, Table, s)
	must.Contain(t, table,
		"TARGET            STATE    PULL REQUEST  RUN                     NOTE\n",
		"octo-org/widgets  changed                bump-widgets-01-5ab1-1  commit abababababab on agent-ci/bump-widgets-01\n",
		"\nThe directories of RUN are in /l/bump/runs\n",
	)
	must.Contain(t, written(t, Markdown, s), "commit abababababab on agent")
	must.Contain(t, written(t, Page, s), "commit abababababab on agent-ci/bump-widgets-01")
	s.Targets[0].Directory = ""
	must.Lack(t, written(t, Table, s), "directories of RUN")
}

// A status explains how a run may cost more than its limit.
func TestTableExplainsClaim(t *testing.T) {
	s := campaign.Status{
		Targets: []campaign.Row{{Target: campaign.Target{Repository: "octo-org/widgets", Base: "main", SHA: strings.Repeat("ab", 20)}, Class: campaign.Waiting}},
		Counts:  map[campaign.Class]int{campaign.Waiting: 2}, Limits: campaign.Claim{USD: 2, Tokens: 1_000_000}, Claim: campaign.Claim{USD: 2.62, Tokens: 1_410_000}, Estimate: known(1.5),
	}
	unpriced, narrow, over := s, s, s
	unpriced.Unpriced = "the price of m is not known"
	narrow.Limits.USD = 1.31
	over.Counts = nil
	for want, s := range map[string]campaign.Status{
		"octo-org/widgets  waiting                     main at abababababab\n":                                                                             s,
		"\nA run may cost up to 2.62 dollars: 2.00 (limits.cost_usd) plus 0.62 for requests under way when the limit is reached.\n":                        s,
		"\nA run may use up to 1,410,000 tokens: 1,000,000 (limits.tokens) plus 410,000 for such requests.\n":                                              s,
		"\nThe 2 runs that are left may cost up to 5.24 dollars and use up to 2,820,000 tokens.\nBy the runs so far, they will cost about 1.50 dollars.\n": s,
		"\nThe cost of a run is unknown: the price of m is not known.\n":                                                                                   unpriced,
		"\nWarning: requests under way can use up a whole limit":                                                                                           narrow,
	} {
		must.Contain(t, written(t, Table, s), want)
	}
	must.Lack(t, written(t, Table, over), "may")
}

// The Markdown is read by a reader of GitHub's Markdown that is not ours.
func TestMarkdownNeutralisesHostileTexts(t *testing.T) {
	text := written(t, Markdown, status(120))
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()
	src := []byte(text)
	tag := regexp.MustCompile(`^(?:</details>)?\s*(?:<details>\n<summary>[a-z ]+: \d+</summary>)?$`)
	links := 0
	var said strings.Builder
	err := ast.Walk(parser.Parse(source.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			if raw := string(n.Lines().Value(src)); !tag.MatchString(strings.TrimSpace(raw)) {
				t.Errorf("HTML: %q", raw)
			}
		case *ast.RawHTML:
			if raw := string(n.Segments.Value(src)); !slices.Contains([]string{"<span>", "</span>", "<code>", "</code>"}, raw) { // by which a $ begins no formula, and a | ends no cell
				t.Errorf("HTML in a line: %q", raw)
			}
		case *ast.AutoLink:
			t.Errorf("a link by itself: %s", n.URL(src))
		case *ast.Image:
			t.Errorf("an image: %s", n.Destination)
		case *ast.Link:
			if links++; !pulls.Match(n.Destination) {
				t.Errorf("a link to %s", n.Destination)
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			t.Errorf("a block of code: %q", n.Lines().Value(src))
		case *ast.Heading:
			must.Same(t, 2, n.Level, "a heading of level")
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			said.Write(n.Segment.Value(src))
			said.WriteString("\n")
		}
		return ast.WalkContinue, nil
	})
	if err != nil || links == 0 {
		t.Errorf("%d links, %v", links, err)
	}
	must.Same(t, "", regexp.MustCompile(`(?m)(?:^|\W)@octocat|fixes #\d|www\.evil|://evil|^::`).FindString(said.String()))
}

func TestMarkdownFitsIssueLimit(t *testing.T) {
	s := status(16 * 150)
	text := written(t, Markdown, s)
	if units := markdown.Units(text); units > 65_536 || units < 30_000 {
		t.Errorf("it has %d units", units)
	}
	if opened, closed := strings.Count(text, "\n</details>"), strings.Count(text, "<details>\n<summary>"); opened != closed || closed != len(campaign.Classes())-1 {
		t.Errorf("%d folds, %d ends of folds", closed, opened)
	}
	must.Same(t, true, regexp.MustCompile(`\n… and \d+ more targets\.\n`).MatchString(text), "it does not say how many are left out")
}

func TestMarkdownShowsProgress(t *testing.T) {
	s := campaign.Status{Campaign: "bump", Counts: map[campaign.Class]int{campaign.Merged: 1, campaign.Waiting: 3}, Targets: make([]campaign.Row, 4)}
	s.Targets[0] = campaign.Row{Target: campaign.Target{Repository: "octo-org/widgets", Issue: 7}, Class: campaign.Merged}
	want := "## Campaign bump\n\n`" + strings.Repeat("█", 10) + strings.Repeat("░", 30) + "` 1 of 4 targets settled\n\n| State | Targets |\n|---|--:|\n| waiting | 3 |\n| merged | 1 |\n\n"
	if text := written(t, Markdown, s); !strings.HasPrefix(text, want) || !strings.Contains(text, "- `octo-org/widgets#7`\n") {
		t.Errorf("%s", text)
	}
	must.Contain(t, written(t, Markdown, campaign.Status{Campaign: "bump"}), "0 of 0 targets settled")
}

func TestPageNeutralisesHostileTexts(t *testing.T) {
	text := written(t, Page, status(120))
	root := must.Get(html.Parse(strings.NewReader(text)))(t)
	elements := map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		elements[n.Data]++
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "style", a.Key == "srcset":
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			case a.Key == "href" && a.Val != "#targets" && !pulls.MatchString(a.Val):
				t.Errorf("a link to %s", a.Val)
			}
		}
	}
	if elements["script"] != 1 || elements["style"] != 1 || elements["img"] != 0 || elements["tr"] != 120+1 || elements["progress"] != 1 {
		t.Errorf("%v", elements)
	}
	must.Same(t, false, strings.ContainsAny(text, "\u202e\x1b"), "it has characters that turn or steer text")
	must.Contain(t, text, "104 of 120 targets settled", `content="default-src &#39;none&#39;; style-src &#39;sha256-`)
}

func TestLinksNeedValidForgeAddress(t *testing.T) {
	for _, server := range []string{"", "javascript:alert(1)//", "data:text/html,x", "//evil.example", "https://github.com\" onclick=\"x"} {
		s := status(60)
		s.Server = server
		must.Lack(t, written(t, Page, s)+written(t, Markdown, s), "/octo-org/widgets/pull/")
	}
}

func TestPageShowsEmptyCampaign(t *testing.T) {
	text := written(t, Page, campaign.Status{Campaign: "bump", Counts: map[campaign.Class]int{}})
	must.Contain(t, text, "0 of 0 targets settled")
	must.Lack(t, text, "<progress")
}

// Classes that there are have words, and what looks bad is not called good.
func TestEveryClassHasWords(t *testing.T) {
	for _, class := range campaign.Classes() {
		if classStyles[class].words == "" {
			t.Errorf("%s has no words", class)
		}
	}
}
