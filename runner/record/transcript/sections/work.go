package sections

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// outcomeSection returns how the run ended.
func outcomeSection(s *Source) document.Section {
	f := s.View.Finished
	if f == nil {
		return section("outcome", "", paragraph("The run has not ended, or it was killed."))
	}
	return section("outcome", "", document.Paragraph{Text: document.Format("Outcome: `%s`, exit %d. %s", f.Outcome+"/"+f.Reason, f.ExitCode, s.Links.Sentence(f.Message))})
}

// alertsSection returns the problems of the run, then notes.
func alertsSection(s *Source) document.Section {
	notes := document.Alert{Limit: document.Limit{Noun: "note", MaxUnits: 4_000}}
	if scripted := s.View.Started.Scripted; scripted != "" {
		notes.Items = append(notes.Items, document.Format("This run was scripted: the answers come from the session file `%s`, no model was asked.", scripted))
	}
	for _, note := range s.Notes {
		notes.Items = append(notes.Items, document.Sentence(note))
	}
	return section("alerts", "", document.Alert{Limit: document.Limit{Noun: "reason", MaxUnits: 4_000}, Severe: true, Items: s.distrustReasons()}, notes)
}

// distrustReasons returns the reasons not to trust the run or its change.
func (s *Source) distrustReasons() (all []document.Text) {
	v := s.View
	add := func(when bool, text document.Text) {
		if when {
			all = append(all, text)
		}
	}
	if f := v.Finished; f != nil && !s.EndKnown && outcome.Outcome(f.Outcome).ExitCode() != 0 {
		all = append(all, document.Format("The run ended as `%s`: %s", f.Outcome+"/"+f.Reason, s.Links.Sentence(f.Message)))
	}
	for _, reason := range s.DraftReasons {
		all = append(all, document.Sentence("Draft: "+reason))
	}
	add(v.Policy.Unconfined(), document.Sentence("Commands ran unconfined, with all rights of the user who started agent-ci."))
	if v.Damage != nil {
		all = append(all, document.Sentence("The transcript is damaged: "+v.Damage.Error()+"."))
	}
	add(v.Torn, document.Sentence("The transcript's last line is torn: the run was killed, or its disk was full."))
	return all
}

// requestSection returns the request that the run worked on, for a pull request that existed before.
func requestSection(s *Source) document.Section {
	t := s.View.Task
	if t.RequestText == "" {
		return document.Section{}
	}
	by := ""
	if t.Actor != "" {
		by = " by " + t.Actor
	}
	return section("request", "", document.Paragraph{Text: document.Format("**Asked for**%s: %s", by, document.Sentence(t.RequestText))})
}

// summarySection returns the agent's last message.
func summarySection(s *Source) document.Section {
	switch text := s.View.Summary(); {
	case strings.TrimSpace(text) != "":
		return section("summary", "Summary", document.Message{Text: text, MaxUnits: 12_000})
	case AgentBegan(s.View):
		return section("summary", "Summary", paragraph("The agent left no summary."))
	}
	return document.Section{}
}

// untitledSummarySection returns the summary without a heading, for the place below the verdict.
func untitledSummarySection(s *Source) document.Section {
	section := summarySection(s)
	section.Title = ""
	return section
}

// taskSection returns the task with its title and origin.
func taskSection(s *Source) document.Section {
	t := s.View.Task
	var title, from document.Block
	if t.Title != "" {
		title = document.Paragraph{Text: document.Sentence(t.Title)}
	}
	if t.URL != "" || t.Issue != "" {
		from = document.Paragraph{Text: document.Text{{Text: cmp.Or(t.Issue, "its page"), Link: s.Links.Site.Page(t.URL)}}}
	}
	if t.Text == "" {
		return section("task", "Task", title, from, paragraph("No task is recorded."))
	}
	return section("task", "Task", title, from, document.Quote(t.Text))
}

// planSection returns the agent's last plan.
func planSection(s *Source) document.Section {
	switch {
	case !AgentBegan(s.View):
		return document.Section{}
	case len(s.View.Plan.Steps) == 0:
		return section("plan", "Plan", paragraph("The agent made no plan."))
	}
	var why document.Block
	if s.View.Plan.Explanation != "" {
		why = paragraph(s.View.Plan.Explanation)
	}
	return section("plan", "Plan", why, Steps(s.View.Plan))
}

var stepBoxes = map[string]document.Box{"completed": document.Done, "in_progress": document.InProgress}

// Steps returns a plan as a list.
func Steps(p transcript.Plan) document.List {
	list := document.List{Limit: document.Limit{Noun: "step"}}
	for _, step := range p.Steps {
		list.Items = append(list.Items, document.Item{Text: markdown.Inline(step.Step), Box: cmp.Or(stepBoxes[step.Status], document.Open)})
	}
	return list
}

var fileStates = map[changeset.Status]string{
	changeset.Added: "added", changeset.Modified: "changed", changeset.Deleted: "deleted", changeset.TypeChanged: "type changed",
}

// FileState returns what happened to a file, in words.
func FileState(f changeset.File) string { return cmp.Or(fileStates[f.Status], string(f.Status)) }

// filesSection returns the changed files.
func filesSection(s *Source) document.Section {
	switch {
	case !AgentBegan(s.View):
		return document.Section{}
	case s.View.Change.Empty():
		return section("files", "Files", paragraph("No file was changed."))
	}
	heads := columns("File", "What", "+#", "−#")
	var diffs document.Block
	if s.Timeline != nil {
		heads, diffs = append(heads, columns("Patches")...), s.Timeline.FileDiffs
	}
	return section("files", "Files", paragraph(s.View.Change.DescribeSize()), tableOf("file", 8_000, heads, s.View.Change.Files, func(f changeset.File) document.Row {
		added, removed := transcript.GroupThousands(f.Insertions), transcript.GroupThousands(f.Deletions)
		if f.Binary {
			added, removed = "binary", ""
		}
		name := document.Mono(markdown.FileName(f.Path)) // fileName would return nil for an empty path in a damaged record
		line := document.Row{name, document.Words(FileState(f)), document.Words(added), document.Words(removed)}
		if s.Timeline != nil {
			name[0].PageAnchor = s.Timeline.Diffs[f.Path]
			line = append(line, eventLinks(s.Timeline.Patches[f.Path]))
		}
		return line
	}), diffs)
}

// EventID returns the id of an event on a page.
func EventID(seq int64) string { return fmt.Sprintf("e%d", seq) }

// eventLinks returns links to events of the same page.
func eventLinks(all []int64) (text document.Text) {
	for _, seq := range all {
		text = document.Join(" ", text, document.Text{{Text: fmt.Sprintf("#%d", seq), PageAnchor: EventID(seq)}})
	}
	return text
}

const lessonsWords = "The model proposes these lessons for later runs, which read them once they are merged. Review them as you review code."

// lessonsSection returns the lessons in the change.
func lessonsSection(s *Source) document.Section {
	if l := s.View.Lessons; l != nil && l.In == transcript.LessonsInChange && AgentBegan(s.View) {
		return lessonTableSection("Lessons", l)
	}
	return document.Section{}
}

// separateLessonsSection returns the lessons of a separate pull request.
func separateLessonsSection(s *Source) document.Section {
	return lessonTableSection("", s.View.Lessons)
}

// lessonTableSection returns lessons as a table with their evidence.
func lessonTableSection(title string, l *transcript.Lessons) document.Section {
	return section("lessons", title, paragraph(lessonsWords), tableOf("lesson", 8_000, columns("Lesson", "Claim", "Evidence"), l.Lessons, func(l transcript.Lesson) document.Row {
		var evidence []document.Text
		for _, e := range l.Evidence {
			evidence = append(evidence, document.Mono(e))
		}
		return document.Row{document.Mono(l.ID), document.Sentence(l.Claim), document.Join(", ", evidence...)}
	}))
}

// publishedSection returns the publishing steps, with links.
func publishedSection(s *Source) document.Section {
	return section("published", "Published", listOf("step", s.View.PublishSteps, func(p transcript.Publish) document.Text {
		parts := []document.Text{document.Words(strings.ReplaceAll(p.Step, "_", " "))}
		if p.Number > 0 {
			parts = append(parts, s.Links.pullLink(p.Number, p.URL))
		} else {
			parts = append(parts, document.Mono(p.URL))
		}
		parts = append(parts, document.Words(p.Operation), document.Mono(p.Branch), s.Links.commitLink(p.HeadSHA), s.Links.remoteLink(p.Remote))
		return document.Join(" ", parts...)
	}))
}

// warningsSection returns the warnings of the run.
func warningsSection(s *Source) document.Section {
	return section("warnings", "Warnings", listOf("warning", s.View.Warnings, func(w transcript.Warning) document.Text {
		return document.Format("%s (`%s`)", document.Sentence(w.Message), w.Code)
	}))
}

// failedSetupSection returns the output of failed setup commands.
func failedSetupSection(s *Source) document.Section {
	outputs := document.Folds{Limit: document.Limit{Noun: "output", MaxRows: 10, MaxUnits: 16_000}}
	for _, step := range s.View.Setup {
		if step.Tail != "" {
			outputs.Folds = append(outputs.Folds, outputFold("", "setup "+step.Name, fmt.Sprintf("exit %d", step.ExitCode), step.Tail))
		}
	}
	return section("failed-setup", "Failed setup", outputs)
}

// setupSection returns the commands that ran before the agent.
func setupSection(s *Source) document.Section {
	return section("setup", "Setup", tableOf("step", 0, columns("Step", "Command", "Exit#", "Time#"), s.View.Setup, func(step transcript.Setup) document.Row {
		return document.Row{document.Words(step.Name), document.Mono(step.Run), document.Words(fmt.Sprint(step.ExitCode)), document.Words(transcript.FormatSeconds(step.Seconds))}
	}))
}

// Title returns a title of a run: the task's, or else the first line of the summary or task. It may
// be empty.
func Title(v *transcript.View) string {
	return cmp.Or(strings.TrimSpace(v.Task.Title), markdown.Headline(v.Summary()), markdown.Headline(v.Task.Text))
}
