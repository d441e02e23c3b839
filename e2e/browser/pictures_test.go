package browser

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	stdhtml "html"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

var (
	pictures = flag.String("pictures", "", "folder for the pictures of the documentation; none are made when empty")
	runDir   = flag.String("shown", "", "the run directory that the pictures show")
	terminal = flag.String("terminal", "", "file with what that run printed")
	board    = flag.String("campaign", "", "the page of a campaign")
	issue    = flag.String("issue", "", "file with the issue and the pull request that the first picture shows")
)

// largestPicture is the largest size of a picture, in bytes.
const largestPicture = 150_000

// TestPictures makes the screenshots of the documentation, each light and dark, from
// the runs that .ci/pictures made.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("-pictures is not given")
	}
	file := func(name string, page []byte) string {
		path := filepath.Join(t.TempDir(), name)
		mustDo(t, os.WriteFile(path, page, 0o600))
		return path
	}
	for _, p := range []struct {
		name, page    string
		width, height int64
		before        string // a step that a person would do by hand
	}{
		{"issue-to-pull-request", file("way.html", wayPage(t)), 1000, 580, "true"},
		{"pull-request", file("body.html", pullRequestPage(t, filepath.Join(*runDir, "pull_request.md"))), 860, 1020, unfoldCall("details", "exec_command")},
		{"report", filepath.Join(*runDir, "report.html"), 1000, 760, "true"},
		{"campaign-page", *board, 1000, 640, "true"},
		{"terminal", file("terminal.html", terminalPage(t)), 900, 893, "true"},
	} {
		for _, scheme := range []string{"light", "dark"} {
			name := p.name + "-" + scheme + ".png"
			ctx := chromium(t)
			screen{"", p.width, p.height, scheme == "dark"}.set(t, ctx)
			do(t, ctx, chromedp.EmulateViewport(p.width, p.height, chromedp.EmulateScale(1.5)), chromedp.Navigate("file://"+p.page))
			ask[bool](t, ctx, p.before)
			picture := small(t, get(t, ctx, chromedp.CaptureScreenshot()))
			if len(picture) > largestPicture {
				t.Errorf("%s has %d bytes, more than %d", name, len(picture), largestPicture)
			}
			mustDo(t, os.WriteFile(filepath.Join(*pictures, name), picture, 0o644))
		}
	}
}

// terminalPage shows what the run printed, from its first line of progress on.
func terminalPage(t *testing.T) []byte {
	t.Helper()
	raw := mustGet(os.ReadFile(*terminal))(t)
	_, printed, found := strings.Cut(string(raw), "\nagent-ci: ")
	if !found {
		t.Fatalf("no line of progress in %s", *terminal)
	}
	return []byte("<!doctype html><meta charset=utf-8><style>" + style(t, "terminal.css") + "</style><pre>$ <b>agent-ci run job.yml</b>\nagent-ci: " +
		stdhtml.EscapeString(printed) + "</pre>")
}

// unfoldCall opens the first folded call of a tool.
func unfoldCall(element, tool string) string {
	return "[...document.querySelectorAll('" + element + "')].find((d) => d.innerText.includes('" + tool + "')).open = true"
}

// pullRequestPage shows the body of a pull request.
func pullRequestPage(t *testing.T, file string) []byte {
	t.Helper()
	source := mustGet(os.ReadFile(file))(t)
	return []byte("<!doctype html><meta charset=utf-8><style>" + style(t, "pull_request.css") + "</style><main>" + shown(t, source) + "</main>")
}

// wayPage shows an issue beside the pull request that came of it.
func wayPage(t *testing.T) []byte {
	t.Helper()
	type text struct {
		Number      int
		Title, Body string
	}
	var from struct{ Issue, Pull text }
	raw, err := os.ReadFile(*issue)
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil {
		t.Fatal(err)
	}
	card := func(class, kind string, of text) string {
		return fmt.Sprintf(`<section class=%s><header><span>%s</span><h1>%s <i>#%d</i></h1></header><main>%s</main></section>`,
			class, kind, stdhtml.EscapeString(of.Title), of.Number, shown(t, []byte(of.Body)))
	}
	return []byte("<!doctype html><meta charset=utf-8><style>" + style(t, "pull_request.css") + style(t, "way.css") + "</style><div class=way>" +
		"<div>" + card("issue", "Issue", from.Issue) + "<p class=label>label <b>agent-ci</b></p></div>" +
		"<div class=arrow>→</div>" + card("pull", "Pull request", from.Pull) + "</div>")
}

func style(t *testing.T, name string) string {
	t.Helper()
	raw := mustGet(os.ReadFile(filepath.Join("testdata", name)))(t)
	return string(raw)
}

// shown is Markdown by GitHub's rules, for a style that is nobody's.
func shown(t *testing.T, source []byte) string {
	t.Helper()
	var page bytes.Buffer
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))
	mustDo(t, markdown.Convert(source, &page))
	// An alert is GitHub's own; to Markdown it is a quotation.
	return strings.NewReplacer(
		"<blockquote>\n<p>[!NOTE]<br>", `<blockquote class="note"><p><b>Note</b><br>`,
		"<blockquote>\n<p>[!NOTE]</p>", `<blockquote class="note"><p><b>Note</b></p>`,
		"<blockquote>\n<p>[!WARNING]<br>", `<blockquote class="warning"><p><b>Warning</b><br>`,
	).Replace(page.String())
}

// small is a PNG with the 256 colours that a page of text gets along with.
func small(t *testing.T, raw []byte) []byte {
	t.Helper()
	full := mustGet(png.Decode(bytes.NewReader(raw)))(t)
	bounds := full.Bounds()
	reduced := image.NewPaletted(bounds, commonColours(full))
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.Set(x, y, full.At(x, y))
		}
	}
	var out bytes.Buffer
	mustDo(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced))
	return out.Bytes()
}

// commonColours are the 256 colours that most of a picture has.
func commonColours(picture image.Image) color.Palette {
	counts := map[color.RGBA]int{}
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	ordered := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	palette := make(color.Palette, 0, 256)
	for _, each := range ordered[:min(len(ordered), 256)] {
		palette = append(palette, each)
	}
	return palette
}
