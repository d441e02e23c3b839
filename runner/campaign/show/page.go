package show

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/report"
)

var (
	//go:embed style.css
	ownStyle string
	//go:embed script.js
	script string
	//go:embed page.html
	layout string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{"field": field, "thousands": func(n int) string { return transcript.Thousands(int64(n)) }}).Parse(layout))

// Page writes the status as a page in HTML, which loads nothing.
func Page(w io.Writer, status campaign.Status) error {
	s := newSheet(status)
	var head strings.Builder
	err := report.Head(field(s.Campaign, 100)+" · agent-ci campaign", report.Style()+ownStyle, script).Render(&head)
	if err == nil {
		err = page.Execute(w, struct {
			*sheet
			Head, Script template.HTML // both are ours
		}{s, template.HTML(head.String()), template.HTML("<script>" + script + "</script>")})
	}
	if err != nil {
		return fmt.Errorf("write the page of the campaign: %w", err)
	}
	return nil
}
