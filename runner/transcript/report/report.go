package report

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Write reads a transcript twice from its start and writes it as an HTML page.
// In memory it holds the numbers of the first reading and, of the second, the
// calls that have not ended. Texts are cut, the longest ones first, so that a
// page of up to 5,000 events has at most 6 MB. A torn last line is noted on the
// page; other faults of the log are errors, as in transcript.Read.
func Write(w io.Writer, log io.ReadSeeker) error {
	first, err := survey(log)
	if err != nil {
		return err
	}
	p := &printer{w: bufio.NewWriterSize(w, 64<<10), templates: parseTemplates()}
	p.print("head", first)
	if err := p.timeline(log, first); err != nil {
		return err
	}
	p.print("foot", first)
	return p.flush()
}

// survey is the first reading: what the page says before the timeline, and how
// much of each text there is room for.
func survey(log io.ReadSeeker) (*overview, error) {
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	room := &scale{}
	first := &overview{Patches: map[string][]int64{}}
	entries := newAssembler(room.most, nil, first.note)
	view, err := transcript.Survey(log, func(_ *transcript.View, e transcript.Event) error { return entries.add(e) })
	if err != nil {
		return nil, err
	}
	entries.end()
	first.View = view
	page := pageBytes
	if view.Change != nil && view.Change.Diff != "" {
		page -= filesBytes
	}
	first.limit = room.limit(page, first.entries)
	first.endless = entries.waiting
	return first, nil
}

// printer executes templates until the first error, which it keeps.
type printer struct {
	w         *bufio.Writer
	templates *template.Template
	err       error
}

func (p *printer) print(name string, data any) {
	if p.err == nil {
		p.err = p.templates.ExecuteTemplate(p.w, name, data)
	}
}

func (p *printer) flush() error {
	if p.err == nil {
		p.err = p.w.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("write report: %w", p.err)
	}
	return nil
}

// timeline is the second reading, of the events that the first one saw.
func (p *printer) timeline(log io.ReadSeeker, first *overview) error {
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	entries := newAssembler(limit(first.limit), first.endless, func(e *entry) { p.print("entry", e) })
	left := first.View.Events
	for e, err := range transcript.Read(log) {
		if torn := (*transcript.TornError)(nil); errors.As(err, &torn) || left == 0 {
			break
		}
		if err != nil {
			return err
		}
		left--
		if err := entries.add(e); err != nil {
			return err
		}
	}
	entries.end()
	return nil
}

var (
	//go:embed page.tmpl
	pageTemplate string
	//go:embed style.css
	style template.CSS
	//go:embed script.js
	script template.JS
)

// parseTemplates is called by the one command that needs the templates: at start-up it
// would cost all of them time.
func parseTemplates() *template.Template {
	return template.Must(template.New("report").Funcs(pageWords).Parse(pageTemplate))
}

func (*overview) Style() template.CSS { return style }

func (*overview) Script() template.JS { return script }

// Policy is the page's Content-Security-Policy.
func (*overview) Policy() string { return Policy(style, script) }

// Style is what pages of agent-ci look like.
func Style() template.CSS { return style }

// Policy is the Content-Security-Policy (CSP Level 3) of a page: nothing is loaded, nothing is sent,
// and of style and script only those two run.
func Policy(style template.CSS, script template.JS) string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
		digest(string(style)), digest(string(script)))
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
