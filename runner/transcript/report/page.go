package report

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// unconfined is the Policy.Level under which nothing confines a command.
const unconfined = "none"

// page is what stands before the timeline.
type page struct {
	Style       any
	Policy      string
	Title       string
	Outcome     string // outcome/reason
	Tone        string // good, bad, open
	Message     string
	Notices     []string
	Facts       []fact
	Summary     []block
	Task        []block
	Source      fact
	Plan        []step
	Why         string
	Checks      []check
	Files       []file
	FilesLine   string
	Warnings    []fact
	Confinement []fact
	Refusals    []reference
	Refused     string // how many
	Usage       []fact
	Run         []fact
	Setup       []transcript.Setup
	Published   []fact
	MoreRows    map[string]string // what is left out of a list
	Entries     string
	Problems    int
	Long        bool // only what can be seen is laid out
}

// fact is a line of two parts, the second perhaps a link or code.
type fact struct {
	Name, Value, Link string
	Code              bool
}

type step struct{ Text, Status, Sign string }

type check struct {
	Name, Run, Before, After, Result, Tone, Time string
}

type file struct {
	Path, Status, Added, Removed string
	Calls                        []int64
}

// overviewBytes is the most of one text of the overview.
const overviewBytes = 12_000

func newPage(o *overview) *page {
	v := o.view
	p := &page{
		Style: style, Policy: policy(),
		Title:    title(v),
		Notices:  notices(v),
		Summary:  prose(cutProse(limit(overviewBytes), v.Summary())),
		Task:     prose(cutProse(limit(overviewBytes), v.Task.Text)),
		Source:   source(v.Task),
		Why:      strings.TrimSpace(markdown.Show(markdown.Cut(v.Plan.Explanation, 1000))),
		MoreRows: map[string]string{},
		Entries:  transcript.Count(o.entries, "entry"),
		Problems: o.problems,
		Long:     o.entries > 500,
	}
	p.Entries = strings.Replace(p.Entries, "entrys", "entries", 1)
	p.Outcome, p.Tone, p.Message = ending(v)
	p.Facts = facts(o)
	p.Plan = shownRows(p, "step", v.Plan.Steps, planStep)
	if v.Verify != nil {
		p.Checks = shownRows(p, "check", v.Verify.Rows, checkRow)
	}
	if v.Change != nil {
		p.Files = shownRows(p, "file", v.Change.Files, o.file)
		p.FilesLine = fmt.Sprintf("%s, +%s −%s", transcript.Count(len(v.Change.Files), "file"),
			transcript.Thousands(int64(v.Change.Insertions)), transcript.Thousands(int64(v.Change.Deletions)))
	}
	p.Warnings = shownRows(p, "warning", v.Warnings, func(w transcript.Warning) fact {
		return fact{Name: field(w.Code), Value: shownText(w.Message)}
	})
	p.Confinement, p.Refusals, p.Refused = confinement(v.Policy), o.refusals, refused(o)
	p.Usage, p.Run = usage(o), run(v)
	p.Setup = shownRows(p, "setup command", v.Setup, setupRow)
	p.Published = shownRows(p, "publishing step", v.Publish, published)
	return p
}

// shownRows makes rows of a list that may be too long to show.
func shownRows[T, Row any](p *page, name string, all []T, row func(T) Row) []Row {
	if more := len(all) - mostRows; more > 0 {
		p.MoreRows[name] = "… and " + transcript.Count(more, "more "+name) + "."
	}
	var rows []Row
	for _, one := range all[:min(len(all), mostRows)] {
		rows = append(rows, row(one))
	}
	return rows
}

// shownText is a text of a sentence or a few.
func shownText(s string) string {
	return strings.TrimSpace(markdown.Show(markdown.Cut(s, 2000)))
}

func title(v *transcript.View) string {
	return cmp.Or(field(v.Task.Title), field(markdown.Headline(v.Task.Text)), field(v.Started.Key), "A run of agent-ci")
}

func source(t transcript.Task) fact {
	switch {
	case t.Issue != "":
		return fact{Name: "Issue", Value: field(t.Issue), Link: link(t.URL)}
	case t.Source == "":
		return fact{}
	}
	return fact{Name: "From", Value: field(t.Source)}
}

// pageOf is the address of a run, an issue or a pull request; links to nothing
// else are made of what stands in a transcript.
var pageOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https://[\w.-]+(:\d+)?/[\w.-]+/[\w.-]+/(actions/runs/\d+(/attempts/\d+)?|issues/\d+|pull/\d+)$`)
})

func link(url string) string {
	if pageOf().MatchString(url) {
		return url
	}
	return ""
}

func ending(v *transcript.View) (name, tone, message string) {
	f := v.Finished
	if f == nil {
		return "not finished", "open", "The run has not ended, or it was killed."
	}
	tone = "good"
	if outcome.Outcome(f.Outcome).ExitCode() != 0 {
		tone = "bad"
	}
	return field(f.Outcome + "/" + f.Reason), tone, shownText(f.Message)
}

// notices are what a reader must not overlook.
func notices(v *transcript.View) []string {
	var all []string
	add := func(when bool, text string) {
		if when {
			all = append(all, text)
		}
	}
	add(v.Started.Scripted != "", "This run was scripted: the answers come from the session file "+field(v.Started.Scripted)+", no model was asked.")
	add(v.Policy.Level == unconfined, "Commands ran unconfined, with all rights of the user who started agent-ci.")
	add(v.Torn, "The transcript's last line is torn: the run was killed, or its disk was full.")
	changed := v.Change != nil && len(v.Change.Files) > 0
	add(changed && (v.Verify == nil || len(v.Verify.Rows) == 0), "No verify command was run: nothing says that the change works.")
	add(changed && v.Verify != nil && len(v.Verify.Rows) > 0 && v.Verify.Attempt == 0, "The change was not verified.")
	add(v.Verify != nil && v.Verify.Attempt > 0 && !v.Verify.Passed, "Verification failed.")
	return all
}

// facts are the figures at the top.
func facts(o *overview) []fact {
	v := o.view
	took := o.lastEvent
	if v.Finished != nil {
		took = transcript.Duration(v.Finished.Seconds)
	}
	all := []fact{
		{Name: "Time", Value: took},
		{Name: "Turns", Value: transcript.Thousands(int64(v.Turns))},
		{Name: "Calls", Value: transcript.Thousands(int64(v.Calls))},
		{Name: "Tokens", Value: transcript.Thousands(v.Usage.Input + v.Usage.Output)},
	}
	if c := v.Change; c != nil {
		all = append(all, fact{Name: "Change", Value: fmt.Sprintf("+%s −%s", transcript.Thousands(int64(c.Insertions)), transcript.Thousands(int64(c.Deletions)))})
	}
	return all
}

var stepStatus = map[string]string{"completed": "done", "in_progress": "in progress"}

func planStep(s transcript.PlanStep) step {
	return step{shownText(markdown.Cut(s.Step, 500)), cmp.Or(stepStatus[s.Status], "not done"), cmp.Or(stepSign[s.Status], "○")}
}

func checkRow(r transcript.VerifyRow) check {
	c := check{Name: field(r.Name), Run: field(r.Run), Before: field(r.Before), After: field(r.After), Time: transcript.Duration(r.Seconds)}
	switch {
	case r.After == "":
		c.Result, c.Tone = "not run", "open"
	case !r.Passed:
		c.Result, c.Tone = "failed", "bad"
	case r.After != "green":
		c.Result, c.Tone = "red before too", "open"
	default:
		c.Result, c.Tone = "passed", "good"
	}
	return c
}

var statusName = map[string]string{"A": "added", "M": "changed", "D": "deleted", "T": "type changed"}

func (o *overview) file(f transcript.ChangeFile) file {
	row := file{
		Path: field(markdown.FileName(f.Path)), Status: cmp.Or(statusName[f.Status], field(f.Status)), Calls: o.patches[f.Path],
		Added: "+" + transcript.Thousands(int64(f.Insertions)), Removed: "−" + transcript.Thousands(int64(f.Deletions)),
	}
	if f.Binary {
		row.Added, row.Removed = "binary", ""
	}
	return row
}
