package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestBodyTellsOfSkillsThatWereLoaded(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	run := append(transcripttest.Greeting(),
		transcripttest.Happening{Kind: transcript.TypeSkills, Data: transcript.Skills{File: "skills.json", Skills: []transcript.Skill{
			{Name: "re|lease", Path: ".agents/skills/`x`/SKILL.md", SHA256: digest}, {Name: "unused", Path: "u/SKILL.md", SHA256: digest},
		}}},
		transcripttest.Happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{Tool: "load_skill", Detail: map[string]any{transcript.SkillDetail: "re|lease"}}},
	)
	got, err := alone(projected(t, run), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "\n## Skills\n\n| Skill | File | SHA-256 |\n|---|---|---|\n| <code>re&#124;lease</code> | ``.agents/skills/`x`/SKILL.md`` | `0123456789ab` |\n\n"; !strings.Contains(got, want) {
		t.Errorf("the body has no %q:\n%s", want, got)
	}
	if got, err = alone(projected(t, transcripttest.Greeting()), Options{}); err != nil || strings.Contains(got, "Skills") {
		t.Errorf("the body of a run without skills tells of them: %v\n%s", err, got)
	}
}
