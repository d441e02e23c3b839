package report

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// sectionOf returns the section of a page with an id.
func sectionOf(page, id string) string {
	_, rest, _ := strings.Cut(page, `<section id="`+id+`"`)
	text, _, _ := strings.Cut(rest, "</section>")
	return text
}

func TestPageShowsDiffsUnderFiles(t *testing.T) {
	files := sectionOf(rendered(t, unchained(t, fixture(t, "ordinary"))), "files")
	must.Contain(t, files,
		`<a href="#f1"><code>greet/greet.go</code></a>`, `<details class="file" id="f1" open>`, `line 4 › import`,
		`<del><span>	return &#34;Hello`, `<ins><span>// Farewell takes leave`, `<span>-- a comment that looks like a head`,
		"The change is longer than what is shown here; all of it is changes.patch in the run directory.",
	)
	must.Lack(t, files, "KcmZQzWMT")
}

func TestParsesUnifiedDiffs(t *testing.T) {
	got := parseUnified("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+y\n\\ No newline at end of file\n+diff --git a/b b/b\n" +
		"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\n--- \"a/\\303\\244\"\n+++ \"b/\\303\\244\"\n@@ -3,2 +3,1 @@ f()\n k\n-z\ncut")
	want := map[string][]v4a.Hunk{
		"a": {{Context: []string{"line 1"}, Lines: []v4a.Line{{Kind: v4a.Remove, Text: "x"}, {Kind: v4a.Insert, Text: "y"}, {Kind: v4a.Insert, Text: "diff --git a/b b/b"}}}},
		"ä": {{Context: []string{"line 3", "f()"}, Lines: []v4a.Line{{Kind: v4a.Keep, Text: "k"}, {Kind: v4a.Remove, Text: "z"}}}},
	}
	must.Same(t, want, got)
	for _, broken := range []string{"", "@@ -1 +1 @@\n-x", "--- a/a\n@@ -1,999999999 +1 @@", "--- a/a\n@@ -1 +1 @@\n\n", "+++ x\n@@ -1 +1 @@\n x"} {
		parseUnified(broken)
	}
}

func TestFailedSetupPageOmitsEmptySections(t *testing.T) {
	page := rendered(t, unchained(t, fixture(t, "setup")))
	for _, id := range []string{"summary", "plan", "verification", "files"} {
		if strings.Contains(page, `id="`+id+`"`) || strings.Contains(page, `href="#`+id+`"`) {
			t.Errorf("the page has a section %s, or a link there", id)
		}
	}
	must.Contain(t, sectionOf(page, "failed-setup"), "<details open><summary>The last lines of <b>setup modules</b> (exit 1)</summary>")
	must.Contain(t, page, `<span class="badge bad">Could not start</span>`)
}

// TestSectionsGolden keeps the page of a run with something in every section, without style, script and timeline.
func TestSectionsGolden(t *testing.T) {
	page := rendered(t, transcripttest.Recorded(t, append(transcripttest.Rich(), transcripttest.Finished(154))))
	_, page, _ = strings.Cut(page, "<header>")
	before, rest, _ := strings.Cut(page, `<ol class="entries"`)
	_, behind, _ := strings.Cut(rest, "</ol></section>")
	behind, _, _ = strings.Cut(behind, "<script>")
	got := strings.NewReplacer("</tr><", "</tr>\n<", "</li><", "</li>\n<", "</p><", "</p>\n<", "</div><", "</div>\n<", "<table", "\n<table", "<details", "\n<details").Replace(before + "…" + behind)
	golden.Compare(t, "testdata/rich.html", got)
}
