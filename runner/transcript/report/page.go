package report

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// fact is a line of two parts, the second perhaps a link or code, or of several values.
type fact struct {
	Name, Value, Link string
	Code              bool
	Parts             []fact // in place of Value
}

// overviewBytes is the most of one text of the overview.
const overviewBytes = 12_000

func overviewProse(s string) []block { return prose(cutProse(limit(overviewBytes), s)) }

func (o *overview) Summary() []block { return overviewProse(o.View.Summary()) }
func (o *overview) Task() []block    { return overviewProse(o.View.Task.Text) }

func (o *overview) Plan() []transcript.PlanStep    { return shownOf(o.View.Plan.Steps) }
func (o *overview) Warnings() []transcript.Warning { return shownOf(o.View.Warnings) }
func (o *overview) Setup() []transcript.Setup      { return shownOf(o.View.Setup) }

func (o *overview) Published() []fact {
	var all []fact
	for _, p := range shownOf(o.View.Publish) {
		all = append(all, o.published(p))
	}
	return all
}

func (o *overview) Proofs() []transcript.Proof {
	if o.View.Verify == nil {
		return nil
	}
	return shownOf(o.View.Verify.Proofs())
}

func (o *overview) OldTests() []transcript.OldTest {
	if o.View.Verify == nil {
		return nil
	}
	return shownOf(o.View.Verify.OldTests())
}

func (o *overview) OldTestsUnknown() string {
	if o.View.Verify == nil {
		return ""
	}
	return o.View.Verify.OldTestsUnknown()
}

// Entries is how many the timeline has, in words.
func (o *overview) Entries() string {
	return strings.Replace(transcript.Count(o.entries, "entry"), "entrys", "entries", 1)
}

// Long says that of the timeline only what can be seen is to be laid out.
func (o *overview) Long() bool { return o.entries > 500 }

// shownOf is what the page shows of a list that may be too long.
func shownOf[T any](all []T) []T { return all[:min(len(all), mostRows)] }

// moreRows tells what shownOf leaves out of a list of so many; "" for nothing.
func moreRows(name string, all int) string {
	if all <= mostRows {
		return ""
	}
	return "… and " + transcript.Count(all-mostRows, "more "+name) + "."
}

// shownText is a text of a sentence or a few, of at most so many UTF-16 units.
func shownText(s string, most int) string {
	return strings.TrimSpace(markdown.Show(markdown.Cut(s, most)))
}

func (o *overview) Title() string {
	v := o.View
	return cmp.Or(field(v.Task.Title), field(markdown.Headline(v.Task.Text)), field(v.Started.Key), "A run of agent-ci")
}

func (o *overview) Source() fact {
	t := o.View.Task
	switch {
	case t.Issue != "":
		return fact{Name: "Issue", Value: field(t.Issue), Link: link(t.URL)}
	case t.Source == "":
		return fact{}
	}
	return fact{Name: "From", Value: field(t.Source)}
}

// link is the page of a run, an issue or a pull request; links to nothing else are made
// of what stands in a transcript.
func link(url string) string { return transcript.Site{}.Page(url) }

// Notices are what a reader must not overlook.
func (o *overview) Notices() []string {
	v := o.View
	var all []string
	add := func(when bool, text string) {
		if when {
			all = append(all, text)
		}
	}
	add(v.Started.Scripted != "", "This run was scripted: the answers come from the session file "+field(v.Started.Scripted)+", no model was asked.")
	add(v.Policy.Unconfined(), "Commands ran unconfined, with all rights of the user who started agent-ci.")
	add(v.Torn, "The transcript's last line is torn: the run was killed, or its disk was full.")
	changed := v.Change != nil && len(v.Change.Files) > 0
	checked := v.Verify != nil && len(v.Verify.Rows) > 0
	add(changed && !checked, "No verify command was run: nothing says that the change works.")
	add(changed && checked && v.Verify.Attempt == 0, "The change was not verified.")
	told := v.Finished != nil && v.Finished.Outcome == string(outcome.VerifyFailed)
	add(v.Verify != nil && v.Verify.Attempt > 0 && !v.Verify.Passed && !told, "Verification failed.")
	return all
}

func (o *overview) Facts() []fact {
	v := o.View
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
	if v.Change != nil {
		all = append(all, fact{Name: "Change", Value: v.Change.Lines()})
	}
	for _, p := range v.Publish {
		if page := link(p.URL); page != "" && p.Number > 0 {
			all = append(all, fact{Name: "Pull request", Value: fmt.Sprintf("#%d", p.Number), Link: page})
			break
		}
	}
	return all
}

var (
	stepState   = map[string]string{"completed": "done", "in_progress": "in progress"}
	resultTone  = map[string]string{"passed": "good", transcript.Proven: "good", transcript.NotRed: "bad", transcript.NoTests: "bad", transcript.FlakyProof: "bad", transcript.CheckFailed: "bad"}
	resultSigns = map[string]string{"passed": "✓ ", "flaky, accepted": "✓ ", transcript.CheckFailed: "✗ "}
	statusName  = map[string]string{"A": "added", "M": "changed", "D": "deleted", "T": "type changed"}
)

// pageWords are what the page makes of the values of a row.
var pageWords = template.FuncMap{
	"stateTone": func(state string) string { return stateTones[state] },
	"duration":  transcript.Duration, "more": moreRows, "field": field, "text": shownText, "sign": signOf, "fileName": markdown.FileName,
	"resultSign": func(result string) string { return resultSigns[result] },
	"state":      func(status string) string { return cmp.Or(stepState[status], "not done") },
	"tone":       func(result string) string { return cmp.Or(resultTone[result], "open") },
	"status":     func(status string) string { return cmp.Or(statusName[status], field(status)) },
	"count":      func(n int) string { return transcript.Thousands(int64(n)) },
}
