package transcript_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestListsLoadedSkillsOnce(t *testing.T) {
	release, house := transcript.Skill{Name: "release", Path: "a/SKILL.md", SHA256: "00"}, transcript.Skill{Name: "house", Path: "b/SKILL.md", SHA256: "01"}
	ended := func(tool, skill string, failed bool) transcripttest.Happening {
		return transcripttest.Happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{Tool: tool, Failed: failed, Detail: map[string]any{transcript.SkillDetail: skill}}}
	}
	view := transcripttest.Folded(t, []transcripttest.Happening{
		{Kind: transcript.TypeSkills, Data: transcript.Skills{File: "skills.json", Skills: []transcript.Skill{release, house}}},
		ended("mcp__x__load", "release", false), ended("load_skill", "release", true), ended("load_skill", "house", false), ended("load_skill", "house", false), ended("load_skill", "none", false),
	})
	must.Same(t, []transcript.Skill{house}, view.LoadedSkills)
}
