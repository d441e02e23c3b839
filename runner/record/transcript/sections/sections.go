// Package sections owns what is told of a run, as sections of raw text folded from its view, and on
// which page each section stands. How a section is drawn, and how hostile text is escaped, is for the
// packages that draw it. It refuses to know Markdown, HTML and terminals.
package sections

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Source is what sections are made of.
type Source struct {
	View  *transcript.View
	Links Links
	// Told says that the reader has seen already how the run ended.
	Told bool
	// Draft are the reasons why the pull request is a draft, Notes what a reader must know beside
	// them, Facts sentences without a full stop that stand with those of the run.
	Draft, Notes, Facts []string
	// Earlier are the requests before this one, the newest first.
	Earlier []Request
	// Timeline is what only a reading of all events tells; nil without one.
	Timeline *Timeline
}

// Timeline is what a page with all events knows of them.
type Timeline struct {
	Patches                     map[string][]int64 // the events of calls that name a path in a patch
	Diffs                       map[string]string  // the places of diffs, by their paths
	Refusals                    []Refusal          // the first ones
	RefusedCalls, RefusedHosts  int
	Thinking, Working, Checking float64 // seconds of the model, of calls and of checks
}

// Refusal is a call or a host that the policy refused.
type Refusal struct {
	Event             int64
	Tool, Topic, Rule string
}

// Place is where sections are shown. Several are or-ed.
type Place int

// The places.
const (
	PullRequest Place = 1 << iota // the body of a pull request
	Lessons                       // the body of a pull request that has lessons alone
	Failures                      // the comment on an issue, at the end of a run
	Summary                       // of a step
	Document                      // a run as one document
	Report                        // a page, before all events
	Details                       // a page, behind all events
	Proofs                        // an event of checks, on such a page

	outline    = Summary | Document
	everywhere = PullRequest | outline | Report
)

// table says which section is shown where. A section without content is left out.
var table = []struct {
	of func(*Source) document.Section
	on Place
}{
	{outcomeSection, outline},
	{lessonsAlone, Lessons},
	{alerts, everywhere},
	{request, PullRequest},
	{opening, PullRequest | Summary},
	{summary, Document | Report},
	{failedSetup, everywhere | Failures},
	{task, Document | Report},
	{plan, everywhere},
	{checks, everywhere},
	{failures, everywhere | Failures},
	{redProof, everywhere | Proofs},
	{existingTests, everywhere | Proofs},
	{files, outline | Report},
	{lessons, everywhere},
	{published, outline | Report},
	{secrets, everywhere},
	{servers, everywhere},
	{jobsTools, everywhere},
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

// On returns the sections of a place that have content.
func (s *Source) On(place Place) (all []document.Section) {
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

// section is a section with the content that there is.
func section(id, title string, blocks ...document.Block) document.Section {
	s := document.Section{ID: id, Title: title}
	for _, b := range blocks {
		if b != nil {
			s.Blocks = append(s.Blocks, b)
		}
	}
	return s
}

// paragraph is a block of one plain sentence.
func paragraph(text string) document.Block { return document.Paragraph{Text: document.Sentence(text)} }

// tableOf is a table with a line for each of all; nil for none.
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

// columns are heads of columns; a name that ends in # is of numbers.
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

// Begun reports whether the agent came to work. What a run did not do that ended before that is not told.
func Begun(v *transcript.View) bool {
	return v.Finished == nil || v.Turns > 0 || v.Calls > 0 || changed(v)
}

func changed(v *transcript.View) bool { return v.Change != nil && len(v.Change.Files) > 0 }
