package report

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (a *assembler) memory(n *entry, d transcript.Memory) {
	n.Topic = field(transcript.Count(len(d.Lessons), "lesson") + " of " + d.File)
	n.End = transcript.Thousands(int64(len(d.Chosen))) + " chosen"
	a.part(n, "Lessons", lessonLines(d.Lessons))
	a.part(n, "Chosen for the task", strings.Join(d.Chosen, "\n"))
	a.part(n, "SHA-256 of the file", d.SHA256)
}

func (a *assembler) lesson(n *entry, d transcript.Lesson) {
	n.Topic = field(d.ID)
	a.part(n, "Claim", d.Claim)
	a.part(n, "Evidence", strings.Join(d.Evidence, "\n"))
	a.part(n, "By", strings.TrimSpace(d.Run+" "+d.Date))
}

func (a *assembler) lessons(n *entry, d transcript.Lessons) {
	n.Topic = field(transcript.Count(len(d.Lessons), "lesson") + ", in " + strings.ReplaceAll(d.In, "_", " "))
	a.part(n, "Written to "+d.File, lessonLines(d.Lessons))
}

// lessonLines are lessons as text.
func lessonLines(all []transcript.Lesson) string {
	var s strings.Builder
	for _, l := range all {
		s.WriteString(l.ID + ": " + l.Claim + "\n  " + strings.Join(l.Evidence, ", ") + "\n")
	}
	return strings.TrimSuffix(s.String(), "\n")
}
