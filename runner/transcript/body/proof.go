package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// redProof tells which tests of the change fail without the rest of it.
func redProof(v *transcript.Verify) section {
	if v == nil {
		return section{}
	}
	rows := rowsOf(v.Proofs(), proofRow)
	if more := v.MoreProofs(); more > 0 {
		rows = append(rows, fmt.Sprintf("| %s | not judged | |\n", transcript.Count(more, "more file")))
	}
	if len(rows) == 0 {
		return section{}
	}
	return section{
		head: "\n## Red proof\n\nagent-ci ran the new and changed tests on the base, without the rest of the change. A `proven` test fails there and passes with the change.\n\n| Tests | Class | |\n|---|---|---|\n",
		rows: rows, most: 50, share: 4_000, more: "file",
	}
}

func proofRow(p transcript.Proof) string {
	var notes []string
	if len(p.Tests) > 0 {
		notes = append(notes, "failing on the base: "+strings.Join(p.Tests, ", "))
	}
	if p.Note != "" {
		notes = append(notes, p.Note)
	}
	if p.Shared {
		notes = append(notes, "shared with other files")
	}
	class := signed(text(p.Class))
	if p.Class != transcript.Proven {
		class = bad + "**" + text(p.Class) + "**"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", cell(markdown.FileName(p.File)), class, text(strings.Join(notes, "; ")))
}

// oldTests tells which tests of the base the change took away or breaks.
func oldTests(v *transcript.Verify) section {
	if v == nil {
		return section{}
	}
	rows := rowsOf(v.OldTests(), func(o transcript.OldTest) string {
		place := markdown.FileName(o.File)
		if o.Line > 0 {
			place += fmt.Sprintf(":%d", o.Line)
		}
		name := "the file "
		switch {
		case o.Name != "":
			name = code(o.Name) + " "
		case o.Script:
			name = ""
		}
		return fmt.Sprintf("- %s: %s%s\n", code(place), name, text(o.State()))
	})
	if why := v.OldTestsUnknown(); why != "" {
		rows = append(rows, fmt.Sprintf("- incomplete: %s\n", text(why)))
	}
	if len(rows) == 0 {
		return section{}
	}
	head := "\n## Existing tests that are gone or fail\n\n"
	if _, scripts := v.CountOldTests(); scripts > 0 {
		head = "\n## Existing tests and files of checks that need a look\n\n"
	}
	return section{head: head, rows: rows, most: 50, share: 4_000, more: "test"}
}
