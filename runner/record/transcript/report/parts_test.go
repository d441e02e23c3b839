package report

import (
	"strings"
	"testing"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/policy/must"
)

// nodeHTML returns a node as HTML.
func nodeHTML(t *testing.T, n g.Node) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, n.Render(&b))
	return b.String()
}

func TestMarksChangedWords(t *testing.T) {
	show := func(line g.Node) string {
		return strings.NewReplacer("<span>", "", "\n</span>", "", "<mark>", "[", "</mark>", "]").Replace(nodeHTML(t, line))
	}
	tests := []struct{ name, old, fresh, wantOld, wantNew string }{
		{"a word", "return a + b", "return a - b", "return a [+] b", "return a [-] b"},
		{"words with blanks between", "say hello big now", "say bye now", "say [hello big] now", "say [bye] now"},
		{"what came", "f(x)", "f(x, y)", "f(x)", "f(x[, y])"},
		{"equal", "same", "same", "same", "same"},
		{"nothing in common", "alpha beta", "gamma delta", "alpha beta", "gamma delta"},
		{"empty", "", "x", "", "x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, fresh := compareLines([]string{test.old}, []string{test.fresh})
			must.Same(t, test.wantOld, show(old[0]), "old")
			must.Same(t, test.wantNew, show(fresh[0]), "new")
		})
	}
}

func TestFindsPatchesInCalls(t *testing.T) {
	const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n x\n-y\n+z\n*** End Patch"
	tests := []struct {
		name, input  string
		found, alone bool
		tool         string
	}{
		{"edit", `{"filePath":"a.txt","oldString":"y","newString":"z","replaceAll":true}`, true, true, "edit"},
		{"write", `{"filePath":"a.txt","content":"z"}`, true, true, "write"},
		{"edit of no file", `{"oldString":"y","newString":"z"}`, false, false, "edit"},
		{"arguments like those of an edit", `{"filePath":"a.txt","content":"z"}`, false, false, "mcp__shelf__write"},
		{"freeform", patch + "\n", true, true, ""},
		{"function", `{"input":` + quoted(patch) + `}`, true, true, ""},
		{"operation", `{"type":"update_file","path":"a.txt","diff":"@@\n x\n-y\n+z\n"}`, true, true, ""},
		{"creating operation", `{"type":"create_file","path":"a.txt","diff":"+z\n"}`, true, true, ""},
		{"in a command", `{"cmd":` + quoted("apply_patch <<'EOF'\n"+patch+"\nEOF\nrm -rf x") + `}`, true, false, ""},
		{"in an argv", `{"command":["apply_patch",` + quoted(patch) + `],"workdir":"."}`, true, false, ""},
		{"a broken one", "*** Begin Patch\n+x\n*** End Patch", false, false, ""},
		{"none", `{"cmd":"ls"}`, false, false, ""},
		{"no object", `{`, false, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			patch, alone := patchOf(test.tool, test.input)
			if (patch != nil) != test.found || alone != test.alone {
				t.Errorf("found %v, alone %v", patch != nil, alone)
			}
		})
	}
}

// diffHTML returns the HTML of a file's diff.
func diffHTML(head, blocks string) string {
	return `<div class="diff"><p class="name">` + head + "</p>" + blocks + "</div>"
}

// TestShowsEdits has edit and write show what they were to change, lines that stay among it.
func TestShowsEdits(t *testing.T) {
	for tool, test := range map[string]struct{ input, want string }{
		"edit": {
			`{"filePath":"a.txt","oldString":"x\nold\ny","newString":"x\nnew\ny"}`,
			diffHTML("Changed <code>a.txt</code>", "<pre class=\"keep\">\nx</pre><pre class=\"change\"><del><span>old\n</span></del><ins><span>new\n</span></ins></pre><pre class=\"keep\">\ny</pre>"),
		},
		"write": {`{"filePath":"a.txt","content":"new\n"}`, diffHTML("Wrote <code>a.txt</code>", "<pre class=\"change\"><ins><span>new\n</span></ins></pre>")},
	} {
		patch, _ := patchOf(tool, test.input)
		must.Same(t, test.want, nodeHTML(t, drawDiff(fixedLimit(textBytes), patch)), tool)
	}
	made, _ := patchOf("edit", `{"filePath":"a.txt","oldString":"","newString":"new"}`)
	must.Contain(t, nodeHTML(t, drawDiff(fixedLimit(textBytes), made)), "Added")
}

func TestDiffBlocks(t *testing.T) {
	patch, _ := patchOf("apply_patch", "*** Begin Patch\n*** Update File: a.txt\n@@ func f()\n keep\n \n-old\n+new\n-older\n \n*** End Patch")
	want := diffHTML("Changed <code>a.txt</code>", "<p class=\"place\">func f()</p><pre class=\"keep\">\nkeep\n</pre>"+
		"<pre class=\"change\"><del><span>old\n</span></del><ins><span>new\n</span></ins></pre><pre class=\"change\"><del><span>older\n</span></del></pre><pre class=\"keep\">\n</pre>")
	must.Same(t, want, nodeHTML(t, drawDiff(fixedLimit(textBytes), patch)))
	must.Contain(t, nodeHTML(t, drawDiff(fixedLimit(4*lineBytes), patch)), "6 lines of this patch not shown")
}

func TestProse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"paragraphs", "a\nb\n\nc", "<p>a\nb</p><p>c</p>"},
		{"items", "- a\n  more\n  - b\n3. c", `<p class="li d0">• a` + "\n" + `more</p><p class="li d1">• b</p><p class="li d0">3. c</p>`},
		{"hostile", "<b> **`<i>`** [x](javascript:1)", "<p>&lt;b&gt; <code>&lt;i&gt;</code> [x](javascript:1)</p>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, nodeHTML(t, prose(excerpt{Head: test.in})))
		})
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name, in string
		limit    int
		want     excerpt
	}{
		{"all of it", "a\nb\n", 3, excerpt{Head: "a\nb"}},
		{"ends at lines", "one\ntwo\nthree\nfour\nfive\nsix", 12, excerpt{Head: "one\ntwo", Hidden: "3 lines, 16 bytes not shown", Tail: "six"}},
		{"one long line", strings.Repeat("x", 30), 9, excerpt{Head: "xxxxxx", Hidden: "21 bytes not shown", Tail: "xxx"}},
		{"what is escaped counts", "<<<<<<", 15, excerpt{Head: "<<", Hidden: "3 bytes not shown", Tail: "<"}},
		{"no character is split", "äääääää", 7, excerpt{Head: "ää", Hidden: "8 bytes not shown", Tail: "ä"}},
		{"no room", "abc", 0, excerpt{Hidden: "3 bytes not shown"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, plainWeights.cut(fixedLimit(test.limit), test.in))
		})
	}
}
