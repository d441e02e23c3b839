package sections

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// silencedSection returns the signs that a check may pass without testing.
func silencedSection(s *Source) document.Section {
	found := s.View.Inspection
	signs := tableOf(document.Limit{Noun: "sign", MaxUnits: 6_000}, columns("Where", "Sign", "Why it matters"), found.SilencedSigns, func(one transcript.SilencedSign) document.Row {
		where := fileName(one.File)
		if one.Line > 0 {
			where = append(where, document.Span{Text: describeLine(one)})
		}
		if one.Check != "" {
			where = document.Join(" ", document.Words("check"), document.Mono(one.Check))
		}
		return document.Row{where, document.Mono(one.Text), document.Sentence(one.Reason)}
	})
	all := sectionWithIntro("silenced", "Checks that may be silenced", "A check may pass here without testing. Review these places first.", signs)
	if found.MoreSilencedSigns > 0 && !all.Empty() {
		all.Blocks = append(all.Blocks, paragraph(transcript.CountNoun(found.MoreSilencedSigns, "more sign")+" not listed."))
	}
	return all
}

func describeLine(one transcript.SilencedSign) string {
	if one.Removed {
		return fmt.Sprintf(", line %d of the base", one.Line)
	}
	return fmt.Sprintf(", line %d", one.Line)
}

// workflowRiskSection returns the jobs with rights that the pushed branch starts, and the changed files
// that they run.
func workflowRiskSection(s *Source) document.Section {
	jobs := tableOf(document.Limit{Noun: "job", MaxUnits: 6_000}, columns("Workflow", "On", "Has", "Runs"), s.View.Inspection.WorkflowStarts, func(one transcript.WorkflowStart) document.Row {
		workflow := fileName(one.Workflow)
		if one.Job != "" {
			workflow = document.Join(", job ", workflow, document.Mono(one.Job))
		}
		if one.Unknown != "" {
			return document.Row{workflow, nil, nil, document.Sentence("not known: " + one.Unknown)}
		}
		var has []document.Text
		for _, name := range one.Secrets {
			has = append(has, document.Join(" ", document.Words("secret"), document.Mono(name)))
		}
		for _, scope := range one.Writes {
			has = append(has, document.Mono(scope))
		}
		if one.DefaultRights {
			has = append(has, document.Words("permissions by the settings of the repository"))
		}
		var runs []document.Text
		for _, f := range one.Files {
			runs = append(runs, document.Join(" by ", fileName(f.Path), document.Sentence(f.Via)))
		}
		return document.Row{workflow, document.Words(strings.Join(one.Events, ", ")), document.Join(", ", has...), document.Join("; ", runs...)}
	})
	return sectionWithIntro("workflow-risk", "What the branch starts", "These workflows run files of this change with secrets or permissions. Look at these files before you let the workflows run.", jobs)
}

// claimsSection returns what the summary claims without evidence.
func claimsSection(s *Source) document.Section {
	names := listOf(document.Limit{Noun: "claim"}, s.View.Inspection.Claims, func(name string) document.Text {
		return document.Join("", fileName(name), document.Words(": not found in the change"))
	})
	return sectionWithIntro("claims", "Claims of the summary", "The summary names these. Neither the change nor the calls nor the checks show them.", names)
}
