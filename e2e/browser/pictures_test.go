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
	pictures = flag.String("pictures", "", "folder for the pictures of the README; none are made when empty")
	runDir   = flag.String("shown", "", "the run directory that the pictures show")
	issue    = flag.String("issue", "", "file with the issue and the pull request that the first picture shows")
)

// largestPicture is what a picture of the README may weigh, in bytes.
const largestPicture = 150_000

// TestPictures makes the pictures of the README from a run: .ci/pictures gives
// it the demo's.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("-pictures is not given")
	}
	body := filepath.Join(t.TempDir(), "body.html")
	if err := os.WriteFile(body, pullRequestPage(t, filepath.Join(*runDir, "pull_request.md")), 0o600); err != nil {
		t.Fatal(err)
	}
	way := filepath.Join(t.TempDir(), "way.html")
	if err := os.WriteFile(way, wayPage(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name, page    string
		width, height int64
		dark          bool
		before        string // what is done to the page, as a person would by hand
	}{
		{"issue-to-pull-request-light.png", way, 1000, 580, false, "true"},
		{"issue-to-pull-request-dark.png", way, 1000, 580, true, "true"},
		{"pull-request.png", body, 860, 1190, false, unfoldCall("details", "exec_command")},
		{"timeline.png", filepath.Join(*runDir, "report.html"), 1000, 900, false, "(document.querySelector('#e15').scrollIntoView(), true)"},
	} {
		ctx := chromium(t)
		screen{"", p.width, p.height, p.dark}.set(t, ctx)
		do(t, ctx, chromedp.EmulateViewport(p.width, p.height, chromedp.EmulateScale(1.5)), chromedp.Navigate("file://"+p.page))
		ask[bool](t, ctx, p.before)
		picture := small(t, get(t, ctx, chromedp.CaptureScreenshot()))
		if len(picture) > largestPicture {
			t.Errorf("%s has %d bytes, more than %d", p.name, len(picture), largestPicture)
		}
		if err := os.WriteFile(filepath.Join(*pictures, p.name), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unfoldCall opens the first folded call of a tool.
func unfoldCall(element, tool string) string {
	return "[...document.querySelectorAll('" + element + "')].find((d) => d.innerText.includes('" + tool + "')).open = true"
}

// pullRequestPage shows the body of a pull request.
func pullRequestPage(t *testing.T, file string) []byte {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// shown is Markdown by GitHub's rules, for a style that is nobody's.
func shown(t *testing.T, source []byte) string {
	t.Helper()
	var page bytes.Buffer
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))
	if err := markdown.Convert(source, &page); err != nil {
		t.Fatal(err)
	}
	// An alert is GitHub's own; to Markdown it is a quotation.
	return strings.NewReplacer(
		"<blockquote>\n<p>[!NOTE]<br>", `<blockquote class="note"><p><b>Note</b><br>`,
		"<blockquote>\n<p>[!WARNING]<br>", `<blockquote class="warning"><p><b>Warning</b><br>`,
	).Replace(page.String())
}

// small is a PNG with the 256 colours that a page of text gets along with.
func small(t *testing.T, raw []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	bounds := full.Bounds()
	reduced := image.NewPaletted(bounds, commonColours(full))
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.Set(x, y, full.At(x, y))
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
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
