package body

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Document is a run as one document: what was asked, what came of it, and every
// message and call with as much of its text as the view has. It has no limit.
func Document(v *transcript.View) string {
	p := &page{left: math.MaxInt}
	p.put("# agent-ci run " + code(v.Started.RunID) + "\n")
	own := ownOf(v, transcript.Site{})
	own.told, own.files = v.Finished != nil, true
	said := summary(v)
	said.head = "\n## Summary\n\n"
	sections := append([]section{scripted(v), result(v, own), task(v.Task, own), said}, account(v, own, nil, nil)...)
	for _, s := range append(sections, setup(v.Setup), published(v.Publish, own), chainEnd(v)) {
		s.most, s.share = 0, 0
		p.section(s)
	}
	whole := &book{[]*strings.Builder{&p.Builder}, room{left: p.left}}
	for _, e := range shownEntries(v, Full) {
		whole.put(entryBlock(e, Full, 0))
	}
	return p.String()
}

func result(v *transcript.View, own Own) section {
	if v.Finished == nil {
		return section{head: "\n", rows: []string{"The run has not ended, or it was killed.\n"}}
	}
	f := v.Finished
	return section{head: "\n", rows: []string{fmt.Sprintf("Outcome: %s, exit %d. %s\n", code(f.Outcome+"/"+f.Reason), f.ExitCode, own.Sentence(markdown.Cut(f.Message, remarkWidth)))}}
}

func task(t transcript.Task, own Own) section {
	s := section{head: "\n## Task\n\n"}
	if t.Title != "" {
		s.rows = append(s.rows, text(t.Title)+"\n\n")
	}
	if t.URL != "" {
		s.rows = append(s.rows, linked(cmp.Or(text(t.Issue), "its page"), own.Site.Page(t.URL), t.URL)+"\n\n")
	}
	if t.Text != "" {
		s.rows = append(s.rows, markdown.Fence(t.Text, ""))
	}
	return s
}

func setup(all []transcript.Setup) section {
	rows := rowsOf(all, func(step transcript.Setup) string {
		return fmt.Sprintf("| %s | %s | %d | %s |\n", text(step.Name), cell(step.Run), step.ExitCode, transcript.Duration(step.Seconds))
	})
	return section{head: "\n## Setup\n\n| Step | Command | Exit | Time |\n|---|---|--:|--:|\n", rows: rows}
}

func published(all []transcript.Publish, own Own) section {
	return section{head: "\n## Published\n\n", rows: rowsOf(all, own.publishRow)}
}

func chainEnd(v *transcript.View) section {
	if v.Events == 0 {
		return section{}
	}
	return section{head: "\n## Chain\n\n", rows: []string{fmt.Sprintf("%s, the SHA-256 of the last one's line is %s.\n", transcript.Count(int(v.Events), "event"), code(v.Head))}}
}

// publishRow is a step of publishing, with links to the pull request and the commit.
func (o Own) publishRow(p transcript.Publish) string {
	row := "- " + text(strings.ReplaceAll(p.Step, "_", " "))
	add := func(part string) {
		if part != "" {
			row += " " + part
		}
	}
	if p.Number > 0 {
		add(o.pullLink(p.Number, p.URL))
	} else {
		add(code(p.URL))
	}
	add(text(p.Operation))
	add(code(p.Branch))
	if p.HeadSHA != "" {
		add(o.commit(p.HeadSHA))
	}
	add(code(p.Remote))
	return row + "\n"
}

// Outline is what came of a run, as Markdown of at most limit UTF-16 code units:
// how it ended, what the agent said, plan, verification, files, warnings and
// usage, and nothing of its calls. Its links go to the site, or where that is the zero
// value, to the one that the transcript names.
func Outline(v *transcript.View, site transcript.Site, limit int) string {
	p, own := &page{left: limit}, ownOf(v, site)
	own.told, own.files = v.Finished != nil, true
	for _, s := range append([]section{scripted(v), result(v, own), summary(v)}, append(account(v, own, nil, nil), published(v.Publish, own))...) {
		p.section(s)
	}
	return strings.TrimLeft(p.String(), "\n")
}

// Checklist is a plan as Markdown, a step a line, with a mark for what is done:
// of at most limit UTF-16 code units.
func Checklist(p transcript.Plan, limit int) string {
	return List("", rowsOf(p.Steps, planStep), "step", limit)
}

// List is rows of whole lines below a head, as many as fit in limit UTF-16 code
// units. What is left out is counted below them, under the name of one.
func List(head string, rows []string, name string, limit int) string {
	p := &page{left: limit}
	p.section(section{head: head, rows: rows, more: name})
	return p.String()
}
