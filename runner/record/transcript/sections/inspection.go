package sections

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// silenced lists the signs that a check may pass without testing.
func silenced(s *Source) document.Section {
	found := s.View.Inspection
	lines := tableOf(document.Limit{Noun: "sign", Share: 6_000}, columns("Where", "Sign", "Why it matters"), found.Silenced, func(one transcript.Silenced) document.Line {
		where := fileName(one.File)
		if one.Line > 0 {
			where = append(where, document.Span{Text: lineWords(one)})
		}
		if one.Check != "" {
			where = document.Join(" ", document.Words("check"), document.Mono(one.Check))
		}
		return document.Line{where, document.Mono(one.Text), document.Sentence(one.Why)}
	})
	if lines == nil {
		return document.Section{}
	}
	all := section("silenced", "Checks that may be silenced", paragraph("A check may pass here without testing. Review these places first."), lines)
	if found.SilencedMore > 0 {
		all.Blocks = append(all.Blocks, paragraph(transcript.Count(found.SilencedMore, "more sign")+" not listed."))
	}
	return all
}

func lineWords(one transcript.Silenced) string {
	if one.Removed {
		return document.Plainf(", line %d of the base", one.Line).String()
	}
	return document.Plainf(", line %d", one.Line).String()
}
