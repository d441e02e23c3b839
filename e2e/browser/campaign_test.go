package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// campaign makes the page of the campaign that the tests of the package show know too, and gives its
// path.
func campaign(t *testing.T) string {
	t.Helper()
	const folder = "../../runner/campaign/show/testdata/"
	cmd := exec.Command(*binary, "campaign", "status", folder+"bump.yml", "--ledger", folder+"ledger", "--format", "html")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("agent-ci campaign status: %v", err)
	}
	path := filepath.Join(t.TempDir(), "campaign.html")
	mustDo(t, os.WriteFile(path, out, 0o600))
	return path
}

func TestCampaignIsShown(t *testing.T) {
	path := campaign(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			ctx := open(t, path, s)
			if wide := ask[int64](t, ctx, "document.documentElement.scrollWidth"); wide > s.width {
				t.Errorf("the page is %d wide, the screen %d", wide, s.width)
			}
			if light := ask[bool](t, ctx, "/^rgb\\(2\\d\\d/.test(getComputedStyle(document.body).backgroundColor)"); light == s.dark {
				t.Errorf("light is %v", light)
			}
			if wide := ask[float64](t, ctx, "document.querySelector('progress').getBoundingClientRect().width"); wide < 200 {
				t.Errorf("the progress is %f wide", wide)
			}
			accessible(t, ctx)
			keep(t, "campaign-"+s.name+".png", get(t, ctx, chromedp.FullScreenshot(100)))
		})
	}
}

// rows are the names of the targets that are seen, in their order.
func rows(t *testing.T, ctx context.Context) []string {
	t.Helper()
	return ask[[]string](t, ctx, "[...document.querySelectorAll('#rows tbody tr')].filter((row) => row.checkVisibility()).map((row) => row.cells[0].textContent)")
}

func TestTargetsAreFilteredAndSorted(t *testing.T) {
	ctx := open(t, campaign(t), screens[2])
	said := func() string { t.Helper(); return ask[string](t, ctx, "document.getElementById('found').textContent") }
	want := func(what, words string, n int, first string) {
		t.Helper()
		if got := rows(t, ctx); said() != words || len(got) != n || n > 0 && !strings.HasPrefix(got[0], first) {
			t.Errorf("%s: %q, %d rows: %q", what, said(), len(got), got)
		}
	}
	want("at first", "40 targets", 40, "octo-org/service-00")
	do(t, ctx, chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent("SERVICE-1 rate_limited"))
	want("words", "2 of 40 targets", 2, "octo-org/service-11")
	do(t, ctx, chromedp.Evaluate[chromedp.Void]("(document.getElementById('search').value = '', document.getElementById('state').value = 'checks red', document.getElementById('state').dispatchEvent(new Event('change')))"))
	want("a state", "4 of 40 targets", 4, "octo-org/service-03")
	do(t, ctx, chromedp.Evaluate[chromedp.Void]("(document.getElementById('state').value = '', document.getElementById('state').dispatchEvent(new Event('change')))"))
	do(t, ctx, chromedp.Focus(chromedp.CSS("#rows thead th:nth-child(3) button")), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Enter))
	want("pull requests, the last one first", "40 targets", 40, "octo-org/service-18")
	mustBe(t, "descending", ask[string](t, ctx, "document.querySelector('#rows thead th:nth-child(3)').ariaSort"), "the order that the column names")
	if links := ask[[]string](t, ctx, "[...document.querySelectorAll('#rows a')].map((a) => a.href)"); len(links) != 4 || links[0] != "https://github.com/octo-org/service-18/pull/118" {
		t.Errorf("the links are %q", links)
	}
}
