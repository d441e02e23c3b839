package body

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// hooks are the programs that were asked at points of the run.
func hooks(all []transcript.HookUse) section {
	s := section{
		head: "\n## Hooks\n\n| Hook | On | Asked | Refused | Failed | SHA-256 |\n|---|---|--:|--:|--:|---|\n",
		most: 64, share: 4_000, more: "hook",
	}
	for _, use := range all {
		name := cell(use.Name)
		if use.Trusted {
			name += " (outside of the sandbox)"
		}
		s.rows = append(s.rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", name, text(use.On),
			transcript.Thousands(int64(use.Calls)), transcript.Thousands(int64(use.Denials)), transcript.Thousands(int64(use.Errors)), cell(transcript.ShortSHA(use.SHA256))))
	}
	return s
}
