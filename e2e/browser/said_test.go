package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWhatIsSaidOnAPage looks at reviews, findings and comments as a phone shows them: what
// people read first, nothing of the marks, no link but our own, nothing that is wider than
// the screen, and no element of a model's making.
func TestWhatIsSaidOnAPage(t *testing.T) {
	const repository = "https://github.com/octo/widgets"
	const run = repository + "/actions/runs/123456789"
	for _, c := range []struct {
		file, begins string
		links        []string
	}{
		{"feedback/testdata/review.md", "The loop ends one too early:", []string{run}},
		{"feedback/testdata/finding.md", "The last one is <b>left out</b> (high)", nil},
		{"feedback/testdata/comment.md", "The loop ends one too early:", []string{run}},
		{"progress/testdata/running.md", "agent-ci is at work (run).\n", []string{run}},
		{"progress/testdata/ended.md", "✅ 1 check passes, 7 s\n", []string{run, run + "#artifacts", repository + "/pull/8"}},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "said.html")
			mustDo(t, os.WriteFile(page, pullRequestPage(t, "../../runner/publish/"+c.file), 0o600))
			ctx := open(t, page, screens[0])
			text := ask[string](t, ctx, "document.querySelector('main').innerText.trim()")
			if !strings.HasPrefix(text, c.begins) || strings.Contains(text, "agent-ci: ") {
				t.Errorf("it reads %.300q", text)
			}
			if links := ask[[]string](t, ctx, "[...document.querySelectorAll('a')].map((a) => a.href)"); !slices.Equal(links, c.links) && len(links)+len(c.links) > 0 {
				t.Errorf("the links are %q, want %q", links, c.links)
			}
			if made := ask[[]string](t, ctx, "[...document.querySelectorAll('main :is(script, img, iframe, form, b, table, [onerror])')].map((e) => e.outerHTML)"); len(made) > 0 {
				t.Errorf("a text of a model made %q", made)
			}
			const wide = "[...document.querySelectorAll('main > :not(pre)')].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML)"
			if over := ask[[]string](t, ctx, wide); len(over) > 0 {
				t.Errorf("wider than the screen: %q", over)
			}
			keep(t, strings.TrimSuffix(filepath.Base(c.file), ".md")+"-phone.png", get(t, ctx, chromedp.CaptureScreenshot()))
		})
	}
}
