// Package sections owns the sections about a run and their pages. It folds them from the run's view
// as raw text. Other packages draw them and escape hostile text. It does not know Markdown, HTML or
// terminals.
package sections

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Source is the input of sections.
type Source struct {
	View  *transcript.View
	Links Links
	// EndKnown reports that the reader already knows the run's end.
	EndKnown bool
	// Draft lists the reasons for a draft. Notes lists further remarks for readers. Facts lists
	// sentences without a full stop for the run's facts.
	Draft, Notes, Facts []string
	// Earlier are the requests before this one, the newest first.
	Earlier []Request
	// Timeline needs a pass over all events; may be nil.
	Timeline *Timeline
}

// Timeline holds the facts from all events.
type Timeline struct {
	Patches                     map[string][]int64 // the events of calls that name a path in a patch
	Diffs                       map[string]string  // the places of diffs, by their paths
	Refusals                    []Refusal          // the first ones
	RefusedCalls, RefusedHosts  int
	Thinking, Working, Checking float64 // seconds of the model, of calls and of checks
}

// Refusal is a call or host refused by the policy.
type Refusal struct {
	Event             int64
	Tool, Topic, Rule string
}

// place is a set of pages.
type place int

// The places.
const (
	PullRequest place = 1 << iota // the body of a pull request
	Lessons                       // the body of a pull request that has lessons alone
	Failures                      // the comment on an issue, at the end of a run
	Summary                       // of a step
	Document                      // a run as one document
	Report                        // a page, before all events
	Details                       // a page, behind all events
	Proofs                        // an event of checks, on such a page
	Findings                      // an event of an inspection, on such a page

	outline    = Summary | Document
	everywhere = PullRequest | outline | Report
)

// table maps sections to places. Empty sections are omitted.
var table = []struct {
	of func(*Source) document.Section
	on place
}{
	{outcomeSection, outline},
	{lessonsAlone, Lessons},
	{workflowRisk, everywhere | Findings},
	{silenced, everywhere | Findings},
	{alerts, everywhere},
	{request, PullRequest},
	{opening, PullRequest | Summary},
	{summary, Document | Report},
	{claims, everywhere | Findings},
	{failedSetup, everywhere | Failures},
	{task, Document | Report},
	{plan, everywhere},
	{checks, everywhere},
	{failingTests, everywhere | Failures},
	{redProof, everywhere | Proofs},
	{existingTests, everywhere | Proofs},
	{files, outline | Report},
	{lessons, everywhere},
	{published, outline | Report},
	{secrets, everywhere},
	{servers, everywhere},
	{jobTools, everywhere},
	{skills, everywhere},
	{hooks, everywhere},
	{warnings, everywhere},
	{refusals, Details},
	{origin, Lessons},
	{runFacts, PullRequest | outline | Details},
	{runDetails, Document | Details},
	{setup, Document | Details},
	{settings, Details},
	{earlierRequests, PullRequest},
}

// On returns the non-empty sections of a place.
func (s *Source) On(place place) (all []document.Section) {
	for _, row := range table {
		if row.on&place == 0 {
			continue
		}
		if section := row.of(s); !section.Empty() {
			all = append(all, section)
		}
	}
	return all
}

// section returns a section of the non-nil blocks.
func section(id, title string, blocks ...document.Block) document.Section {
	s := document.Section{ID: id, Title: title}
	for _, b := range blocks {
		if b != nil {
			s.Blocks = append(s.Blocks, b)
		}
	}
	return s
}

// introduced returns a section of a sentence and a block, or an empty one if the block is nil.
func introduced(id, title, sentence string, b document.Block) document.Section {
	if b == nil {
		return document.Section{}
	}
	return section(id, title, paragraph(sentence), b)
}

// paragraph is a block of one plain sentence.
func paragraph(text string) document.Block { return document.Paragraph{Text: document.Sentence(text)} }

// tableOf returns a table with a line for each element, or nil without any.
func tableOf[T any](limit document.Limit, columns []document.Column, all []T, line func(T) document.Line) document.Block {
	t := document.Table{Limit: limit, Columns: columns}
	for _, one := range all {
		t.Lines = append(t.Lines, line(one))
	}
	if len(t.Lines) == 0 {
		return nil
	}
	return t
}

// listOf returns a list with an item for each element, or nil without any.
func listOf[T any](limit document.Limit, all []T, item func(T) document.Text) document.Block {
	l := document.List{Limit: limit}
	for _, one := range all {
		l.Items = append(l.Items, document.Item{Text: item(one)})
	}
	if len(l.Items) == 0 {
		return nil
	}
	return l
}

// columns returns column heads. A final # marks numbers.
func columns(names ...string) (all []document.Column) {
	for _, name := range names {
		number := name != "" && name[len(name)-1] == '#'
		if number {
			name = name[:len(name)-1]
		}
		all = append(all, document.Column{Name: name, Number: number})
	}
	return all
}

// Begun reports whether the agent started to work. For other runs, omitted steps are not reported.
func Begun(v *transcript.View) bool {
	return v.Finished == nil || v.Turns > 0 || v.Calls > 0 || hasChange(v)
}

func hasChange(v *transcript.View) bool { return v.Change != nil && len(v.Change.Files) > 0 }
