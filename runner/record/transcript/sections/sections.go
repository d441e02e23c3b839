// Package sections owns the sections about a run, and which pages show them. It makes them from the
// run's view, as raw text. Other packages render them and escape hostile text. It does not know
// Markdown, HTML or terminals.
package sections

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Source is what sections are made from.
type Source struct {
	View  *transcript.View
	Links Links
	// EndKnown means that the reader knows already how the run ended, if it did.
	EndKnown bool
	Remarks
	// Timeline has facts from all events; may be nil.
	Timeline *Timeline
}

// Remarks are what a pull request shows besides the run's view.
type Remarks struct {
	DraftReasons []string  // a sentence for each reason why the pull request is a draft, except failed checks and unconfined commands
	Notes        []string  // important sentences that do not make the pull request a draft
	Facts        []string  // sentences without a full stop, for the facts about the run
	Earlier      []Request // the earlier requests for the change, newest first
}

// Timeline has facts that need a pass over all events.
type Timeline struct {
	Patches                                 map[string][]int64 // by path: the events of calls that patched it
	Diffs                                   map[string]string  // by path: the id of its diff on the page
	FileDiffs                               document.Block     // the diffs, as the page's renderer draws them
	Refusals                                []Refusal          // the first refusals
	RefusedCalls, RefusedHosts              int
	ModelSeconds, CallSeconds, CheckSeconds float64 // seconds of the model, of calls and of checks
}

// Refusal is a call or host that the policy refused.
type Refusal struct {
	Event             int64
	Tool, Topic, Rule string
}

// Pages is a set of places that show sections: pages and parts of a page.
type Pages int

// The pages, and parts of pages, that have sections.
const (
	PullRequest Pages = 1 << iota // the body of a pull request
	Lessons                       // the body of a pull request that has only lessons
	Failures                      // the comment on an issue when a run ended
	Summary                       // the summary of a workflow step
	Document                      // a run as one document
	Head                          // the top of a page
	Report                        // the part of a page before the timeline
	Details                       // the part of a page after the timeline
	Proofs                        // an event about checks, on a page
	Findings                      // an event about an inspection, on a page

	outline    = Summary | Document
	everywhere = PullRequest | outline | Report
)

// sectionTable maps sections to the places that have them. Empty sections are left out.
var sectionTable = []struct {
	of func(*Source) document.Section
	on Pages
}{
	{outcomeSection, outline},
	{separateLessonsSection, Lessons},
	{workflowRiskSection, everywhere | Findings},
	{silencedSection, everywhere | Findings},
	{alertsSection, PullRequest | outline | Head},
	{requestSection, PullRequest},
	{untitledSummarySection, PullRequest | Summary},
	{summarySection, Document | Report},
	{claimsSection, everywhere | Findings},
	{failedSetupSection, everywhere | Failures},
	{taskSection, Document | Report},
	{planSection, everywhere},
	{checksSection, everywhere},
	{failingTestsSection, everywhere | Failures},
	{redProofSection, everywhere | Proofs},
	{existingTestsSection, everywhere | Proofs},
	{filesSection, outline | Report},
	{lessonsSection, everywhere},
	{publishedSection, outline | Report},
	{secretsSection, everywhere},
	{serversSection, everywhere},
	{jobToolsSection, everywhere},
	{skillsSection, everywhere},
	{hooksSection, everywhere},
	{warningsSection, everywhere},
	{refusalsSection, Details},
	{lessonsOriginSection, Lessons},
	{runFactsSection, PullRequest | outline | Details},
	{runDetailsSection, Document | Details},
	{setupSection, Document | Details},
	{settingsSection, Details},
	{earlierRequestsSection, PullRequest},
}

// ForPages returns the sections that a place shows, without empty ones.
func (s *Source) ForPages(place Pages) (all []document.Section) {
	for _, row := range sectionTable {
		if row.on&place == 0 {
			continue
		}
		if section := row.of(s); !section.Empty() {
			all = append(all, section)
		}
	}
	return all
}

// verify returns the last verification table, or an empty one.
func (s *Source) verify() (table transcript.Verify) {
	if s.View.Verify != nil {
		table = *s.View.Verify
	}
	return table
}

// section returns a section with the blocks that are not empty.
func section(id, title string, blocks ...document.Block) document.Section {
	return document.Section{ID: id, Title: title, Blocks: slices.DeleteFunc(blocks, isEmpty)}
}

// isEmpty reports whether a block is nil or has no elements.
func isEmpty(b document.Block) bool {
	switch b := b.(type) {
	case nil:
		return true
	case document.List:
		return len(b.Items) == 0
	case document.Table:
		return len(b.Rows) == 0
	case document.Facts:
		return len(b) == 0
	case document.Folds:
		return len(b.Folds) == 0
	case document.Alert:
		return len(b.Items) == 0
	}
	return false
}

// sectionWithIntro returns a section with a sentence and a block. If the block is empty, it returns an
// empty section.
func sectionWithIntro(id, title, sentence string, b document.Block) document.Section {
	if isEmpty(b) {
		return document.Section{}
	}
	return section(id, title, paragraph(sentence), b)
}

// paragraph returns a block with plain text.
func paragraph(text string) document.Block { return document.Paragraph{Text: document.Sentence(text)} }

// tableOf returns a table with a row for each element. noun and maxUnits are as in document.Limit.
func tableOf[T any](noun string, maxUnits int, columns []document.Column, all []T, row func(T) document.Row) document.Table {
	t := document.Table{Limit: document.Limit{Noun: noun, MaxUnits: maxUnits}, Columns: columns}
	for _, element := range all {
		t.Rows = append(t.Rows, row(element))
	}
	return t
}

// listOf returns a list with an item for each element. noun is as in document.Limit.
func listOf[T any](noun string, all []T, item func(T) document.Text) document.List {
	l := document.List{Limit: document.Limit{Noun: noun}}
	for _, element := range all {
		l.Items = append(l.Items, document.Item{Text: item(element)})
	}
	return l
}

// columns returns columns with these names. A "#" at the end of a name means that its cells are
// numbers, and is removed.
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

// AgentBegan reports whether the agent began to work or may still do so. If it did not, sections do not
// mention that there is no plan or change.
func AgentBegan(v *transcript.View) bool {
	return v.Finished == nil || v.Turns > 0 || v.Calls > 0 || !v.Change.Empty()
}
