package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// lessonsWords are for whoever reviews lessons.
const lessonsWords = "The model proposes these for later runs, which are told of them once they are merged. They are words of a model: review them as you review code."

// lessons are those that the change brings, apart from the rest of it.
func lessons(l *transcript.Lessons) section {
	if l == nil || l.In != transcript.LessonsInChange {
		return section{}
	}
	return lessonTable("\n## Lessons\n\n", l)
}

func lessonTable(head string, l *transcript.Lessons) section {
	return section{
		head: head + lessonsWords + "\n\n| Lesson | Claim | Evidence |\n|---|---|---|\n",
		rows: rowsOf(l.Lessons, lessonRow), most: 50, share: 8_000, more: "lesson",
	}
}

func lessonRow(l transcript.Lesson) string {
	var evidence []string
	for _, e := range l.Evidence {
		evidence = append(evidence, cell(e))
	}
	return fmt.Sprintf("| %s | %s | %s |\n", cell(l.ID), remark(l.Claim), strings.Join(evidence, ", "))
}

// Lessons is the body of a pull request that has nothing but lessons of a run.
func Lessons(v *transcript.View, l transcript.Lessons, o Options) string {
	own := ownOf(v, transcript.Site{})
	own.Site = o.Site
	p := &page{left: DefaultLimit}
	p.put(o.Head)
	p.section(lessonTable("", &l))
	facts := section{head: "\n## Run\n\n"}
	if v.Task.Issue != "" {
		facts.rows = append(facts.rows, "- Task: "+own.issue(v.Task.Issue)+"\n")
	}
	facts.rows = append(facts.rows, "- agent-ci "+text(v.Started.Version)+", run "+own.run(v.Started.RunID, v.Started.Link)+"\n")
	p.section(facts)
	return p.String()
}
