package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

var (
	// Style is the style sheet of agent-ci's pages.
	//go:embed style.css
	Style string
	//go:embed script.js
	script string
)

// page draws the whole page. entries writes the timeline while the page is written.
func (o *overview) page(entries g.Node) g.Node {
	o.FileDiffs = o.fileDiffs()
	source := &sections.Source{View: o.View, Links: sections.LinksOf(o.View, o.View.Site()), EndKnown: true, Timeline: &o.Timeline}
	beforeTimeline, afterTimeline := source.ForPages(sections.Report), source.ForPages(sections.Details)
	places := slices.Concat(beforeTimeline, []document.Section{{ID: "timeline", Title: "Timeline"}}, afterTimeline)
	return h.Doctype(h.HTML(
		h.Lang("en"),
		Head(o.title()+" · agent-ci", Style, script),
		h.Body(
			h.A(h.Class("skip"), h.Href("#timeline"), g.Text("Skip to the timeline")),
			o.header(source, places),
			h.Main(draw(beforeTimeline), o.timelineSection(entries), draw(afterTimeline)),
			h.Footer(h.P(g.Text("Rendered from the transcript alone. This page loads nothing and sends nothing."))),
			h.Script(g.Raw(script)),
		),
	))
}

// Head returns the head of a page. Its Content-Security-Policy (CSP Level 3) permits no network,
// and only the given style and script.
func Head(title, style, script string) g.Node {
	policy := fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", cspHash(style), cspHash(script))
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(policy)),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("referrer"), h.Content("no-referrer")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		h.TitleEl(g.Text(title)),
		h.StyleEl(g.Raw(style)),
	)
}

// cspHash returns the hash of a style or script as a source for the Content-Security-Policy.
func cspHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
