package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestReportIsShown(t *testing.T) {
	for _, name := range []string{"ordinary", "hostile", "red", "setup"} {
		path := report(t, fixture(t, name))
		for _, s := range screens {
			t.Run(name+"-"+s.name, func(t *testing.T) {
				ctx := open(t, path, s)
				if wide := ask[int64](t, ctx, "document.documentElement.scrollWidth"); wide > s.width {
					t.Errorf("the page is %d wide, the screen %d", wide, s.width)
				}
				if wide := ask[[]string](t, ctx, "[...document.querySelectorAll('section, .diff, pre')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.id || e.className)"); len(wide) > 0 {
					t.Errorf("wider than their place: %q", wide)
				}
				if light := ask[bool](t, ctx, "/^rgb\\(2\\d\\d/.test(getComputedStyle(document.body).backgroundColor)"); light == s.dark {
					t.Errorf("light is %v", light)
				}
				accessible(t, ctx)
				ask[bool](t, ctx, "document.getElementById('unfold').click() || true")
				accessible(t, ctx)
				keep(t, name+"-"+s.name+".png", get(t, ctx, chromedp.FullScreenshot(100)))
			})
		}
	}
}

// accessible fails for what axe-core finds.
func accessible(t *testing.T, ctx context.Context) {
	t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("axe-core is missing, run npm ci in e2e/browser: %v", err)
	}
	do(t, ctx, chromedp.Evaluate[chromedp.Void](string(axe)))
	type violation struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	for _, v := range ask[[]violation](t, ctx, "axe.run().then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({HTML: n.html.slice(0, 300)}))})))") {
		t.Errorf("%s: %s: %q", v.ID, v.Help, v.Nodes)
	}
}

// found is what the page says of a search, and how many entries it shows.
type found struct {
	Status string
	Shown  int
}

func look(t *testing.T, ctx context.Context) found {
	t.Helper()
	return ask[found](t, ctx, "({Status: document.getElementById('found').textContent, Shown: [...document.querySelectorAll('#entries > li')].filter((li) => li.checkVisibility()).length})")
}

func TestSearch(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[2])
	want := func(what string, w found) {
		t.Helper()
		mustBe(t, w, look(t, ctx), what)
	}
	want("at first", found{"26 entries", 26})
	command(t, ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Key: "/", Code: "Slash", WindowsVirtualKeyCode: 191})
	do(t, ctx, chromedp.KeyEvent("FAREWELL  name"))
	want("a word of a diff", found{"1 of 26 entries", 1})
	do(t, ctx, chromedp.KeyEvent(kb.Escape))
	want("after Escape", found{"26 entries", 26})
	do(t, ctx, chromedp.KeyEvent("case_200"), chromedp.KeyEvent(kb.Enter))
	want("a word of a folded output", found{"1 of 26 entries", 1})
	if !ask[bool](t, ctx, "document.activeElement.matches('a.seq') && document.activeElement.closest('li').querySelector('details').open") {
		t.Error("Enter does not go to what was found and unfold it")
	}
	do(t, ctx, chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("no such words"))
	want("nothing", found{"0 of 26 entries", 0})
	do(t, ctx, chromedp.KeyEvent(kb.Escape), chromedp.Click(chromedp.CSS("#problems")))
	want("problems", found{"4 of 26 entries", 4})
	do(t, ctx, chromedp.Evaluate[chromedp.Void]("location.hash = '#e1'"))
	want("a link to what was filtered away", found{"26 entries", 26})
}

func TestFolding(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[0])
	open := func() int {
		t.Helper()
		return ask[int](t, ctx, "document.querySelectorAll('#entries details[open]').length")
	}
	mustBe(t, 1, open(), "unfolded entries at first, which is the patch")
	do(t, ctx, chromedp.Focus(chromedp.CSS("#e14 summary")), chromedp.KeyEvent(kb.Enter))
	mustBe(t, 2, open(), "unfolded entries after Enter on one")
	do(t, ctx, chromedp.Click(chromedp.CSS("#unfold")))
	all := ask[int](t, ctx, "document.querySelectorAll('#entries details').length")
	mustBe(t, all, open(), "unfolded entries after the button")
	do(t, ctx, chromedp.Click(chromedp.CSS("#fold")))
	mustBe(t, 0, open(), "unfolded entries after folding all")
}

// outside are the pages that links may lead to.
var outside = regexp.MustCompile(`^https://github\.com/octo-org/widgets(/(issues/7|pull/8|actions/runs/42|commit/[0-9a-f]{40}))?$`)

func TestEveryLink(t *testing.T) {
	for _, name := range []string{"ordinary", "hostile", "red", "setup"} {
		t.Run(name, func(t *testing.T) {
			ctx := open(t, report(t, fixture(t, name)), screens[2])
			do(t, ctx, chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('details').forEach((fold) => { fold.open = false; })"))
			type arrival struct {
				Href    string
				Visible bool
				Top     float64
			}
			followed := ask[[]arrival](t, ctx, `(async () => {
				const arrivals = [];
				for (const a of document.querySelectorAll('a[href^="#"]')) {
					a.click();
					await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
					const target = document.getElementById(location.hash.slice(1));
					const box = target && target.getBoundingClientRect();
					arrivals.push({Href: a.getAttribute("href"), Visible: !!target && location.hash === a.getAttribute("href") && target.checkVisibility(), Top: box ? box.top : -1});
				}
				return arrivals;
			})()`)
			if len(followed) < 8 {
				t.Errorf("there are only %d links", len(followed))
			}
			for _, a := range followed {
				if !a.Visible || a.Top < -1 || a.Top > float64(screens[2].height) {
					t.Errorf("%s: visible %v, %.0f from the top", a.Href, a.Visible, a.Top)
				}
			}
			for _, href := range ask[[]string](t, ctx, `[...document.querySelectorAll('a:not([href^="#"])')].map((a) => a.href)`) {
				if !outside.MatchString(href) {
					t.Errorf("a link leads to %s", href)
				}
			}
		})
	}
}

// TestWhatFailedIsSeenAtOnce looks at what a reader sees of a red run without a click, and
// that the way from a check to its output is short.
func TestWhatFailedIsSeenAtOnce(t *testing.T) {
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			ctx := open(t, report(t, fixture(t, "red")), s)
			for _, id := range []string{"output-1", "output-2", "f1"} {
				if !ask[bool](t, ctx, "document.querySelector('#"+id+" pre').checkVisibility()") {
					t.Errorf("%s is folded", id)
				}
			}
			do(t, ctx, chromedp.Click(chromedp.CSS("#verification a[href='#output-2']")))
			if top := ask[float64](t, ctx, "document.getElementById('output-2').getBoundingClientRect().top"); top < 0 || top > float64(s.height) {
				t.Errorf("the link to the output ends %.0f from it", top)
			}
			colours := ask[[]string](t, ctx, "[...document.querySelectorAll('#verification tbody tr:first-child .badge')].map((e) => getComputedStyle(e).backgroundColor)")
			if len(colours) != 3 || colours[0] != colours[2] || colours[0] == colours[1] {
				t.Errorf("result, before and after look like %q", colours)
			}
		})
	}
}

// TestDefaultsTakeNoScreens measures what a phone shows of the settings.
func TestDefaultsTakeNoScreens(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[0])
	do(t, ctx, chromedp.Click(chromedp.CSS("#unfold")))
	if height := ask[float64](t, ctx, "document.getElementById('settings').getBoundingClientRect().height"); height > float64(screens[0].height)/2 {
		t.Errorf("the settings take %.0f of a screen of %d", height, screens[0].height)
	}
	if ask[bool](t, ctx, "document.getElementById('settings').compareDocumentPosition(document.getElementById('timeline')) !== Node.DOCUMENT_POSITION_PRECEDING") {
		t.Error("the settings come before the timeline")
	}
}

// A link to the middle of a call unfolds it, also on arrival.
func TestLinkToAnEvent(t *testing.T) {
	ctx := chromium(t)
	path := report(t, fixture(t, "ordinary"))
	screens[0].set(t, ctx)
	do(t, ctx, chromedp.Navigate("file://"+path+"#e16"))
	if !ask[bool](t, ctx, "document.getElementById('e16').checkVisibility() && document.getElementById('e16').closest('details').open") {
		t.Error("the event cannot be seen")
	}
	keep(t, "link-phone.png", get(t, ctx, chromedp.CaptureScreenshot()))
}

func TestSideBySide(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[3])
	type columns struct{ Old, New, Lines float64 }
	where := func() columns {
		t.Helper()
		return ask[columns](t, ctx, "({Old: document.querySelector('.diff del').getBoundingClientRect().left, New: document.querySelector('.diff ins').getBoundingClientRect().left, Lines: [...document.querySelectorAll('.diff .keep')].filter((p) => p.checkVisibility()).length})")
	}
	unified := where()
	do(t, ctx, chromedp.Click(chromedp.CSS("#beside")))
	beside := where()
	if unified.Old != unified.New || beside.New < beside.Old+100 || beside.Lines != 2*unified.Lines {
		t.Errorf("unified %+v, side by side %+v", unified, beside)
	}
	keep(t, "side-by-side.png", get(t, ctx, chromedp.Screenshot(chromedp.CSS("#e19"))))
	do(t, ctx, chromedp.Click(chromedp.CSS("#beside")), chromedp.Click(chromedp.CSS("#beside")), chromedp.Click(chromedp.CSS("#beside")))
	mustBe(t, unified, where(), "unified again")
}

func TestPrinted(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[3])
	pdf := get(t, ctx, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || bytes.Count(pdf, []byte("/Type /Page\n")) < 2 {
		t.Errorf("%d bytes are no PDF of several pages", len(pdf))
	}
	keep(t, "ordinary.pdf", pdf)
	command(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if ask[bool](t, ctx, "document.getElementById('tools').checkVisibility() || document.querySelector('nav').checkVisibility()") {
		t.Error("the tools are printed")
	}
}

// The policy would stop a script even if one came into the page.
func TestPolicyIsKept(t *testing.T) {
	ctx := chromium(t)
	do(t, ctx, chromedp.Navigate("file://"+report(t, fixture(t, "hostile"))))
	stopped := ask[[]string](t, ctx, `new Promise((done) => {
		const stopped = [];
		document.addEventListener("securitypolicyviolation", (e) => { stopped.push(e.effectiveDirective); if (stopped.length === 5) done(stopped.sort()); });
		const add = (name, fill) => { const e = document.createElement(name); fill(e); document.body.append(e); };
		add("script", (e) => { e.textContent = "window.ran = true"; });
		add("p", (e) => { e.setAttribute("onclick", "window.ran = true"); e.click(); });
		add("style", (e) => { e.textContent = "body { display: none }"; });
		add("img", (e) => { e.src = "https://example.invalid/x.png"; });
		fetch("https://example.invalid/").catch(() => {});
	})`)
	if want := "[connect-src img-src script-src-attr script-src-elem style-src-elem]"; fmt.Sprint(stopped) != want {
		t.Errorf("stopped %v, want %s", stopped, want)
	}
	if ask[bool](t, ctx, "window.ran === true") {
		t.Error("a script ran")
	}
}

func TestKeyboard(t *testing.T) {
	ctx := open(t, report(t, fixture(t, "ordinary")), screens[2])
	tab := func() { do(t, ctx, chromedp.KeyEvent(kb.Tab)) }
	tab()
	mustBe(t, "skip", ask[string](t, ctx, "document.activeElement.className"), "the first stop, a link to the timeline")
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	tab()
	mustBe(t, "search", ask[string](t, ctx, "document.activeElement.id"), "the stop after the link")
	outline := ask[string](t, ctx, "getComputedStyle(document.activeElement).outlineStyle")
	if outline == "none" {
		t.Error("the focus cannot be seen")
	}
}

// long is a run of so many events, with the texts of an ordinary one and outputs
// that fill the page.
func long(t *testing.T, events int) []byte {
	t.Helper()
	lines := bytes.SplitAfter(bytes.TrimSpace(fixture(t, "ordinary")), []byte("\n"))
	lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
	first, turns := lines[:6], lines[6:28]
	var log []byte
	for seq := 1; seq <= events; seq++ {
		line := turns[(seq-1)%len(turns)]
		if seq <= len(first) {
			line = first[seq-1]
		}
		log = append(log, renumbered(t, line, seq, (seq-1)/len(turns)*6)...)
	}
	return log
}

// renumbered is a line with its number, and with those of turns and calls
// raised, so that none comes twice.
func renumbered(t *testing.T, line []byte, seq, by int) []byte {
	t.Helper()
	var event map[string]any
	mustDo(t, json.Unmarshal(line, &event))
	event["seq"] = seq
	data := event["data"].(map[string]any)
	for _, name := range []string{"turn", "number"} {
		if n, ok := data[name].(float64); ok {
			data[name] = int(n) + by
		}
	}
	if output, ok := data["output"].(string); ok {
		data["output"] = output + strings.Repeat(fmt.Sprintf("ok  \texample.com/widgets/part%d\t0.012s\n", seq), 100)
	}
	raw := mustGet(json.Marshal(event))(t)
	return append(raw, '\n')
}

func TestLongRun(t *testing.T) {
	path := report(t, long(t, 5000))
	info := mustGet(os.Stat(path))(t)
	if info.Size() > 6_000_000 {
		t.Errorf("the page has %d bytes", info.Size())
	}
	ctx := open(t, path, screens[2])
	type times struct{ Shown, Loaded, First, Typed, Cleared float64 }
	took := ask[times](t, ctx, `(async () => {
		const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
		const shown = await new Promise((done) => new PerformanceObserver((seen) => {
			const paint = seen.getEntriesByName("first-contentful-paint")[0];
			if (paint) done(paint.startTime);
		}).observe({type: "paint", buffered: true}));
		await frame();
		const timing = performance.getEntriesByType("navigation")[0];
		const search = document.getElementById("search");
		const answer = async (text) => {
			const start = performance.now();
			search.value = text;
			search.dispatchEvent(new Event("input"));
			document.body.getBoundingClientRect();
			await frame();
			return performance.now() - start;
		};
		return {
			Shown: shown, Loaded: timing.loadEventEnd,
			First: await answer("widgets"), Typed: await answer("part4000"), Cleared: await answer(""),
		};
	})()`)
	t.Logf("figures of 5000 events: page %.1f MB (limit 6), first shown after %.0f ms, all of it after %.0f ms (limit 1000); the first search answers in %.0f ms, the next in %.0f ms, all shown again in %.0f ms (limit 100)",
		float64(info.Size())/1e6, took.Shown, took.Loaded, took.First, took.Typed, took.Cleared)
	do(t, ctx, chromedp.Evaluate[chromedp.Void]("location.hash = '#e4000'"))
	keep(t, "long-desktop.png", get(t, ctx, chromedp.CaptureScreenshot()))
	if top := ask[float64](t, ctx, "document.getElementById('e4000').getBoundingClientRect().top"); top < 0 || top > float64(screens[2].height) {
		t.Errorf("a link to event 4000 ends %.0f from it", top)
	}
}
