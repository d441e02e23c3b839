package report

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMarksChangedWords(t *testing.T) {
	show := func(l line) string {
		var b strings.Builder
		for _, p := range l {
			if p.Marked {
				b.WriteString("[" + p.Text + "]")
				continue
			}
			b.WriteString(p.Text)
		}
		return b.String()
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
			c := compareLines([]string{test.old}, []string{test.fresh})
			must.Same(t, test.wantOld, show(c.Old[0]), "old")
			must.Same(t, test.wantNew, show(c.New[0]), "new")
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

// TestShowsEdits has edit and write show what they were to change, lines that stay among it.
func TestShowsEdits(t *testing.T) {
	one := func(s string) []line { return []line{{{Text: s}}} }
	for tool, test := range map[string]struct {
		input string
		want  fileDiff
	}{
		"edit": {
			`{"filePath":"a.txt","oldString":"x\nold\ny","newString":"x\nnew\ny"}`,
			fileDiff{Op: "Changed", Path: "a.txt", Hunks: []hunk{{Blocks: []change{{Keep: "x"}, {Old: one("old"), New: one("new")}, {Keep: "y"}}}}},
		},
		"write": {`{"filePath":"a.txt","content":"new\n"}`, fileDiff{Op: "Wrote", Path: "a.txt", Hunks: []hunk{{Blocks: []change{{Old: []line{}, New: one("new")}}}}}},
	} {
		patch, _ := patchOf(tool, test.input)
		must.Same(t, []fileDiff{test.want}, newDiff(fixedLimit(textBytes), patch).Files, tool)
	}
	made, _ := patchOf("edit", `{"filePath":"a.txt","oldString":"","newString":"new"}`)
	must.Same(t, "Added", newDiff(fixedLimit(textBytes), made).Files[0].Op, "a file that is made")
}

func TestDiffBlocks(t *testing.T) {
	patch, _ := patchOf("apply_patch", "*** Begin Patch\n*** Update File: a.txt\n@@ func f()\n keep\n \n-old\n+new\n-older\n \n*** End Patch")
	d := newDiff(fixedLimit(textBytes), patch)
	one := func(s string) []line { return []line{{{Text: s}}} }
	want := []fileDiff{{Op: "Changed", Path: "a.txt", Hunks: []hunk{{Place: "func f()", Blocks: []change{
		{Keep: "keep\n"}, {Old: one("old"), New: one("new")}, {Old: one("older"), New: []line{}}, {Keep: ""},
	}}}}}
	must.Same(t, want, d.Files)
	must.Same(t, "6 lines of this patch not shown", newDiff(fixedLimit(4*lineBytes), patch).Hidden, "what is cut")
}

func TestProse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"paragraphs", "a\nb\n\nc", "<p>a\nb</p><p>c</p>"},
		{"items", "- a\n  more\n  - b\n3. c", `<p class="li d0">• a` + "\n" + `more</p><p class="li d1">• b</p><p class="li d0">3. c</p>`},
		{"hostile", "<b> **`<i>`** [x](javascript:1)", "<p>&lt;b&gt; <code>&lt;i&gt;</code> [x](javascript:1)</p>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got strings.Builder
			must.Do(t, prose(excerpt{Head: test.in}).Render(&got))
			must.Same(t, test.want, got.String())
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
		{"ends at lines", "one\ntwo\nthree\nfour\nfive\nsix", 18, excerpt{Head: "one\ntwo", Hidden: "3 lines, 16 bytes not shown", Tail: "six"}},
		{"one long line", strings.Repeat("x", 30), 9, excerpt{Head: "xxxxxx", Hidden: "21 bytes not shown", Tail: "xxx"}},
		{"what is escaped counts", "<<<<<<", 15, excerpt{Head: "<<", Hidden: "3 bytes not shown", Tail: "<"}},
		{"no character is split", "äääääää", 7, excerpt{Head: "ää", Hidden: "8 bytes not shown", Tail: "ä"}},
		{"no room", "abc", 0, excerpt{Hidden: "3 bytes not shown"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, cut(fixedLimit(test.limit), test.in))
		})
	}
}
