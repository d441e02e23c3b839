package sections

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// silencedSection returns the signs that a check may pass without testing.
func silencedSection(s *Source) document.Section {
	inspection := s.View.Inspection
	signs := tableOf("sign", 6_000, columns("Where", "Sign", "Why it matters"), inspection.SilencedSigns, func(sign transcript.SilencedSign) document.Row {
		where := fileName(sign.File)
		if sign.Line > 0 {
			where = append(where, document.Span{Text: describeLine(sign)})
		}
		if sign.Check != "" {
			where = document.Format("check `%s`", sign.Check)
		}
		return document.Row{where, document.Mono(sign.Text), document.Sentence(sign.Reason)}
	})
	all := sectionWithIntro("silenced", "Checks that may be silenced", "A check may pass here without testing, or a file is hidden from review. Review these places first.", signs)
	if inspection.MoreSilencedSigns > 0 && !all.Empty() {
		all.Blocks = append(all.Blocks, paragraph(transcript.CountNoun(inspection.MoreSilencedSigns, "more sign")+" not listed."))
	}
	return all
}

// describeLine returns the line of a sign, as the end of a place.
func describeLine(sign transcript.SilencedSign) string {
	if sign.Removed {
		return fmt.Sprintf(", line %d of the base", sign.Line)
	}
	return fmt.Sprintf(", line %d", sign.Line)
}

// workflowRiskSection returns the jobs with rights that the pushed branch starts, and the changed files
// that they run.
func workflowRiskSection(s *Source) document.Section {
	jobs := tableOf("job", 6_000, columns("Workflow", "On", "Has", "Runs"), s.View.Inspection.WorkflowStarts, func(start transcript.WorkflowStart) document.Row {
		workflow := fileName(start.Workflow)
		if start.Job != "" {
			workflow = document.Join(", job ", workflow, document.Mono(start.Job))
		}
		if start.Unknown != "" {
			return document.Row{workflow, nil, nil, document.Sentence("not known: " + start.Unknown)}
		}
		var rights []document.Text
		for _, name := range start.Secrets {
			rights = append(rights, document.Format("secret `%s`", name))
		}
		for _, scope := range start.Writes {
			rights = append(rights, document.Mono(scope))
		}
		if start.DefaultRights {
			rights = append(rights, document.Words("permissions by the settings of the repository"))
		}
		var runs []document.Text
		for _, f := range start.Files {
			runs = append(runs, document.Join(" by ", fileName(f.Path), document.Sentence(f.Via)))
		}
		return document.Row{workflow, document.Words(strings.Join(start.Events, ", ")), document.Join(", ", rights...), document.Join("; ", runs...)}
	})
	return sectionWithIntro("workflow-risk", "What the branch starts", "These workflows run files of this change with secrets or permissions. Look at these files before you let the workflows run.", jobs)
}

// claimsSection returns what the summary claims without evidence.
func claimsSection(s *Source) document.Section {
	names := listOf("claim", s.View.Inspection.Claims, func(name string) document.Text {
		return document.Format("%s: not found in the change", fileName(name))
	})
	return sectionWithIntro("claims", "Claims of the summary", "The summary names these. Neither the change nor the calls nor the checks show them.", names)
}
