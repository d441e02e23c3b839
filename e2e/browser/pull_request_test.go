package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPullRequestOnAPhone looks at a body as a phone shows it: the verdict first, how
// each check came out without a swipe, and links that lead to what the run made.
func TestPullRequestOnAPhone(t *testing.T) {
	page := filepath.Join(t.TempDir(), "body.html")
	mustDo(t, os.WriteFile(page, pullRequestPage(t, "../../runner/record/transcript/body/testdata/body_full.md"), 0o600))
	ctx := open(t, page, screens[0])
	if text := ask[string](t, ctx, "document.querySelector('main').innerText.trim()"); !strings.HasPrefix(text, "⚠️ 1 check passes, check lint fails as before, 21 s\n") || !strings.Contains(text, "\nFixes #7\n") {
		t.Errorf("the body begins with %.60q", text)
	}
	const results = "[...document.querySelectorAll('table')].find((t) => t.innerText.includes('Result')).querySelectorAll('tr > :nth-child(2)')"
	words := ask[[]string](t, ctx, "[..."+results+"].map((e) => e.innerText)")
	if want := []string{"Result", "✅ passed: 1 test fixed", "⚠️ failed before too"}; !slices.Equal(words, want) {
		t.Errorf("the second column is %q, want %q", words, want)
	}
	if right := ask[float64](t, ctx, "Math.max(...[..."+results+"].map((e) => e.getBoundingClientRect().right))"); right > float64(screens[0].width) {
		t.Errorf("the results end at %.0f, the screen at %d", right, screens[0].width)
	}
	want := []string{
		"https://github.com/example/greet/issues/7", "https://github.com/example/greet/commit/" + strings.Repeat("a", 40),
		"https://github.com/example/greet/actions/runs/123456789",
	}
	if links := ask[[]string](t, ctx, "[...document.querySelectorAll('a')].map((a) => a.href)"); !slices.Equal(links, want) {
		t.Errorf("the links are %q, want %q", links, want)
	}
	keep(t, "pull-request-phone.png", get(t, ctx, chromedp.CaptureScreenshot()))
}
