package markdown

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
)

type textCase struct{ name, in, want string }

// wantTexts compares what a function makes of texts.
func wantTexts(t *testing.T, convert func(string) string, cases []textCase) {
	t.Helper()
	for _, c := range cases {
		must.Same(t, c.want, convert(c.in), c.name, c.in)
	}
}

type rowsCase struct {
	name, in string
	want     []string
}

func wantRows(t *testing.T, convert func(string) []string, cases []rowsCase) {
	t.Helper()
	for _, c := range cases {
		must.Same(t, c.want, convert(c.in), c.name, c.in)
	}
}

func TestText(t *testing.T) {
	wantTexts(t, Text, []textCase{
		{"plain text stays", "a plain, snake_case line; 50% (of it)", "a plain, snake_case line; 50% (of it)"},
		{"mention", "thanks @octocat", "thanks @&#8203;octocat"},
		{"mention by entity", "thanks &#64;octocat", "thanks &amp;#&#8203;64;octocat"},
		{"issue", "see #12 and o/r#3", "see #&#8203;12 and o/r#&#8203;3"},
		{"issue, the other way", "see GH-12", "see GH&#8203;-12"},
		{"closing keyword", "Fixes: #7", "Fixes: #&#8203;7"},
		{"link", "[x](https://a.example) www.b.example", `\[x\](https:&#8203;//a.example) www&#8203;.b.example`},
		{"image", "![x](y)", `!\[x\](y)`},
		{"html", "<img src=x> <!-- c -->", "&lt;img src=x> &lt;!-- c -->"},
		{"table cell", "a | b", "a &#124; b"},
		{"mathematics", "$x$", "<span>$</span>x<span>$</span>"},
		{"emphasis and strike", "*a* _b_ ~c~ `d`", "\\*a\\* \\_b\\_ \\~c\\~ \\`d\\`"},
		{"heading", "# a", `\# a`},
		{"list", "- a", `\- a`},
		{"numbered list", "1. a", `1\. a`},
		{"quote", "> a", "&gt; a"},
		{"workflow command", "::error::x", `\::error::x`},
		{"skips CI, after a squash", "[Skip CI] [skip it] [ci-skip", `&#91;Skip CI\] \[skip it\] \[ci-skip`},
		{"command to a bot", "/approve", `\/approve`},
		{"old workflow command", "##[error]x", `\##&#8203;\[error\]x`},
		{"several lines", "a\n\n# b\r\n\tc", "a # b c"},
		{"colours", "\x1b[31mred\x1b[0m \x1b", "red ␛"},
		{"bidirectional and zero width", "a\u202eb\u200bc\U000e0041d", "abcd"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
		{"nothing", "\u200b", ""},
	})
}

func TestCode(t *testing.T) {
	wantTexts(t, Code, []textCase{
		{"plain", "go test ./...", "`go test ./...`"},
		{"mentions do nothing in code", "@types/node", "`@types/node`"},
		{"backticks", "a `b` ``c``", "``` a `b` ``c`` ```"},
		{"backtick at an end only", "`", "`` ` ``"},
		{"two lines", "a\nb", "`a b`"},
		{"closing keyword, for a squashed commit", "fixes #1", "`fixes ＃1`"},
		{"workflow command", "::warning::x", "`：：warning::x`"},
		{"table cell", "a | `b`", "<code>a &#124; \\`b\\`</code>"},
		{"empty", " ", ""},
	})
}

func TestFence(t *testing.T) {
	wantTexts(t, Fence, []textCase{
		{"plain", "a\nb", "```\na\nb\n```\n"},
		{"ends in a newline", "a\n", "```\na\n```\n"},
		{"empty", "", "```\n```\n"},
		{"a fence inside", "```go\nx\n```", "````\n```go\nx\n```\n````\n"},
		{"a longer fence than ours", "````````", "`````````\n````````\n`````````\n"},
		{"commands to bots", "/approve\n\t/lgtm cancel\nx /hold\n/bin/true\n/tmp: none", "```\n／approve\n\t／lgtm cancel\nx /hold\n/bin/true\n/tmp: none\n```\n"},
		{"skips CI, after a squash", "git commit -m 'x [ci skip]' a[no]", "```\ngit commit -m 'x ［ci skip]' a[no]\n```\n"},
		{"bots that are named", "x @Claude go\n@dependabot[bot] merge\n@property\n@openhands-agent", "```\nx ＠Claude go\n＠dependabot[bot] merge\n@property\n＠openhands-agent\n```\n"},
		{"marks of our own", "<!-- agent-ci: template -->", "```\n＜!-- agent-ci: template -->\n```\n"},
		{"workflow command", "a\n  ::stop-commands::x", "```\na\n  ：：stop-commands::x\n```\n"},
	})
}

func TestProse(t *testing.T) {
	wantRows(t, Prose, []rowsCase{
		{"paragraphs", "a\nb\n\nc", []string{"a\n", "b\n", "\nc\n"}},
		{"headings become bold lines", "# A #\ntext", []string{"**A**\n", "\ntext\n"}},
		{"list", "- a\n  - b\n      - c\n* d\n1) e", []string{"- a\n", "    - b\n", "        - c\n", "- d\n", "1. e\n"}},
		{"an item goes on", "- a\n  more", []string{"- a\n", "  more\n"}},
		{"code", "x\n```go\n@a #1\n```\ny", []string{"x\n", "\n```\n@a #1\n```\n", "\ny\n"}},
		{"code without an end", "```\na", []string{"```\na\n```\n"}},
		{"bold and code stay", "**a `b` c** @c `@d`", []string{"**a** `b` **c** @&#8203;c `@d`\n"}},
		{"code in a heading", "# A `b|c`", []string{"**A** <code>b&#124;c</code>\n"}},
		{"text after code is within its line", "`a`: b `c`# d", []string{"`a`: b `c`# d\n"}},
		{"an empty span does not end the line's start", "` ` ` `# head", []string{"\\# head\n"}},
		{"marks without an end", "`a **b", []string{"\\`a \\*\\*b\n"}},
		{"html", "<details>\n\n# x", []string{"&lt;details>\n", "\n**x**\n"}},
		{"rule", "---", []string{"\\---\n"}},
		{"nothing", "\n\u200b\n", nil},
	})
}

func TestTemplate(t *testing.T) {
	wantRows(t, Template, []rowsCase{
		{"headings and boxes stay", "## What #\n\n- [x] a\n  - [ ] b `c`\n* [X] d\n1. [ ] e", []string{"## What\n", "\n- [ ] a\n", "    - [ ] b `c`\n", "- [ ] d\n", "1. [ ] e\n"}},
		{"what is for who fills it in", "a<!-- b\n\nc -->\n<!-- no end\nd", []string{"a\n"}},
		{"nobody is asked", "cc @octo/core, fixes #1, [x](https://a.example)", []string{`cc @&#8203;octo/core, fixes #&#8203;1, \[x\](https:&#8203;//a.example)` + "\n"}},
		{"other HTML is text", "<details>\n\nx", []string{"&lt;details>\n", "\nx\n"}},
		{"no box", "- [y] a\n- []\n- [ ]", []string{`- \[y\] a` + "\n", `- \[\]` + "\n", `- \[ \]` + "\n"}},
		{"nothing", "<!-- only this -->\n", nil},
	})
}

func TestShow(t *testing.T) {
	wantTexts(t, Show, []textCase{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"direction", "a\u202eb\u2066", "a‹U+202E›b‹U+2066›"},
		{"no width, tags, fillers", "\u200bx\ufeff\U000e0041\u3164", "‹U+200B›x‹U+FEFF›‹U+E0041›‹U+3164›"},
		{"colours go, other controls are pictures", "\x1b[31mred\x1b[0m \x1b]0;title\a\b", "red ␛]0;title␇␈"},
		{"emoji", "✔️ 👩‍💻 #️⃣", "✔ 👩💻 #⃣"},
		{"what hides among emoji's marks", "a\ufe0f✔\ufe0f\ufe0f\U000e0101 x\u200dy", "a‹U+FE0F›✔‹U+FE0F›‹U+E0101› x‹U+200D›y"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
	})
}

func TestTitle(t *testing.T) {
	wantTexts(t, Title, []textCase{
		{"plain", "Fix the greeting", "Fix the greeting"},
		{"mention and reference", "@a fixes #1, GH-2", "@\u200ba fixes #\u200b1, GH-\u200b2"},
		{"link", "see https://a.example", "see https:\u200b//a.example"},
		{"skips CI", "tidy [skip ci] [CI-Skip] [no ci]", "tidy [\u200bskip ci] [\u200bCI-Skip] [\u200bno ci]"},
		{"workflow command", " ::error::x", ":\u200b:error::x"},
		{"lines", "a\n\nb", "a b"},
		{"too long", strings.Repeat("😀", 200), strings.Repeat("😀", 127) + "…"},
	})
}

func TestCommit(t *testing.T) {
	in := "Mended it.\r\n\nCo-authored-by: Mona <m@example.com>\nskip-checks: true\nFixes #7, o/r#8\n\n[skip ci] @octocat\n"
	want := "Mended it.\n\n Co-authored-by: Mona <m＠example.com>\n skip-checks: true\nFixes ＃7, o/r＃8\n\n［skip ci] ＠octocat"
	must.Same(t, want, Commit(in), "Commit")
}

func TestHeadline(t *testing.T) {
	wantTexts(t, Headline, []textCase{
		{"first line", "Mended the greeting.\nMore.", "Mended the greeting"},
		{"after a heading", "## Summary\n\nMended it", "Mended it"},
		{"a heading alone", "## What I did", "What I did"},
		{"list item", "- **Mended** it", "Mended it"},
		{"after a fence and a rule", "---\n```\nMended it", "Mended it"},
		{"long line", strings.Repeat("word ", 16) + "end. Next sentence", strings.Repeat("word ", 16) + "end"},
		{"nothing", "\n# \n", ""},
	})
}

func TestCut(t *testing.T) {
	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"fits", "abc", 3, "abc"},
		{"too long", "abcd", 3, "ab…"},
		{"wide characters count once", "漢字漢字", 4, "漢字漢字"},
		{"characters of two units are not cut in half", "😀😀", 3, "😀…"},
		{"one unit", "😀", 1, "…"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, Cut(test.in, test.limit), test.in, test.limit)
		})
	}
}

// seeds are texts that tried to get out of where they were put.
var seeds = []string{
	"", "plain", "@octocat fixes #1 GH-2 https://x.example www.x.example <b> | $x$",
	"&#64;octocat &commat;octocat &#35;1", "\\@octocat \\\\@octocat \\`@octocat\\`",
	"`a`\u200b```@o``x```", "`` ` `` `a **b` c** ` ` ` `# h", "**`a`****@b**", "``@a`` ```` `@b`",
	"```\n@a\n~~~\n````\n```", "~~~ `\n@a", "- a\n\n\t\t@b\n1. ```\n@c", "> ```\n> @d\n\n@e",
	"::error::x\n  ::x::\n##[group]\n\u200b::x", "`::x`\n- ::x\n# ::x", "\x1b[\x1b[31m31m\x1b]0;x\a", "😀漢\u202e字\xff\u2028@a\u0085@b",
	"a\n===\nb\n---\n", "[x]: https://a.example\n[x]", "a\\\n@b", "|a|\n|-|\n|@b|", "*`*`@a`*`",
}

func FuzzInert(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		wantInert(t, Text(s)+"\n")
		wantInert(t, "- "+Code(s)+" "+Text(s)+"\n")
		wantInert(t, "| "+Code(s)+" |\n")
		wantInert(t, Fence(s))
		wantInert(t, strings.Join(Prose(s), ""))
		wantInert(t, strings.ReplaceAll(strings.Join(Template(s), ""), "[ ] ", ""))
		must.Lack(t, Code(s), "|")
		for _, line := range []string{Text(s), inHTML(s), Code(s), Title(s)} {
			if strings.ContainsAny(line, "\r\n") || !utf8.ValidString(line) {
				t.Errorf("%q is not one line of UTF-8", line)
			}
		}
		if units := len(utf16.Encode([]rune(Title(s)))); units > maxTitle {
			t.Errorf("a title has %d units", units)
		}
	})
}

func FuzzFenceHolds(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines := strings.Split(strings.TrimSuffix(Fence(s), "\n"), "\n")
		fence := lines[0]
		for _, line := range lines[1 : len(lines)-1] {
			must.Lack(t, line, fence)
		}
		must.Same(t, fence, lines[len(lines)-1], "is not closed in", lines)
	})
}

func FuzzCleanTwice(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := visibleText(s)
		must.Same(t, once, visibleText(once), s)
	})
}
