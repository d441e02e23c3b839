package body

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// skills are those whose instructions the model was given.
func skills(all []transcript.Skill) section {
	return section{
		head: "\n## Skills\n\n| Skill | File | SHA-256 |\n|---|---|---|\n",
		rows: rowsOf(all, func(s transcript.Skill) string {
			return fmt.Sprintf("| %s | %s | %s |\n", cell(s.Name), cell(s.Path), cell(transcript.ShortSHA(s.SHA256)))
		}),
		most: 50, share: 4_000, more: "skill",
	}
}
