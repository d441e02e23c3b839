package assembly

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// skilled is an agent of a job below services/api, with these skills.
func skilled(t *testing.T, offer skills.Offer) *Agent {
	t.Helper()
	o := site(t, &job.Job{Repository: job.Repository{Path: "services/api"}}, map[string]string{"services/api/main.sh": "x"})
	o.Skills = offer
	return briefed(t, o, "  - output: [{say: unused}]\n")
}

func TestGivesSkillOnceAndKeepsIt(t *testing.T) {
	a := skilled(t, skills.Offer{Skills: []skills.Skill{
		{Name: "release", Path: ".agents/skills/release/SKILL.md", SHA256: "00", Text: "Say " + secret + ".\n", CutBytes: 7, Files: []string{"a b.sh", `q".md`}, UnlistedFiles: 3, Compatibility: "Needs git."},
	}})
	first := a.loadSkill(tools.Call{}, "release")
	must.Contain(t, first.Output,
		"Say [secret TOKEN].\n\n[7 more bytes are left out here; they stand in \"../../.agents/skills/release/SKILL.md\".]\n\n",
		"[The skill lies in the folder \"../../.agents/skills/release\". Its other files, from there:\n- \"a b.sh\"\n- \"q\\\".md\"\nand 3 more\nIt says of what it needs: \"Needs git.\"]\n</skill_content id=\"",
	)
	must.Same(t, map[string]any{transcript.SkillDetail: "release", "path": ".agents/skills/release/SKILL.md", "sha256": "00"}, first.Detail)
	must.Same(t, false, first.Failed)
	must.Same(t, []string{first.Output}, a.keptSkills(), "kept")
	if second := a.loadSkill(tools.Call{}, "release"); second.Failed || second.Detail != nil || !strings.Contains(second.Output, "stands above") {
		t.Errorf("the second time: %+v", second)
	}
	if other := a.loadSkill(tools.Call{}, "none"); !other.Failed {
		t.Errorf("one that is not there: %+v", other)
	}
}

// What a script was given need not stand in the conversation.
func TestGivesSkillToScriptEachTime(t *testing.T) {
	a := skilled(t, skills.Offer{Skills: []skills.Skill{{Name: "release", Path: "s/SKILL.md", Text: "Do it."}}})
	for _, caller := range []int{4, 4, 0} {
		must.Contain(t, toolstest.Output(t, a.loadSkill(tools.Call{Caller: caller}, "release")), "Do it.")
	}
	must.Same(t, 1, len(a.keptSkills()), "skills are kept")
}

// A script goes on loading skills while the conversation is made shorter.
func TestLoadsSkillsDuringCompaction(t *testing.T) {
	var offer skills.Offer
	for i := range 50 {
		offer.Skills = append(offer.Skills, skills.Skill{Name: fmt.Sprintf("s%d", i), Path: "s/SKILL.md", Text: "Do it."})
	}
	a := skilled(t, offer)
	var script sync.WaitGroup
	script.Go(func() {
		for _, s := range offer.Skills {
			a.loadSkill(tools.Call{Caller: 1}, s.Name)
		}
	})
	for range offer.Skills {
		a.keptSkills()
	}
	script.Wait()
	must.Same(t, len(offer.Skills), len(a.keptSkills()), "skills are kept")
}

func TestSkillsLeaveRoomForWork(t *testing.T) {
	a := skilled(t, skills.Offer{Room: 2_000, Skills: []skills.Skill{
		{Name: "one", Path: "a/SKILL.md", Text: strings.Repeat("x", 1_000)}, {Name: "two", Path: "b/SKILL.md", Text: strings.Repeat("y", 1_000)}, {Name: "three", Path: "c/SKILL.md", Text: "z"},
	}})
	for _, c := range []struct {
		name string
		fits bool
	}{{"one", true}, {"two", false}, {"three", true}} {
		given := a.loadSkill(tools.Call{}, c.name)
		if given.Failed == c.fits {
			t.Errorf("%s: %+v", c.name, given)
		}
		if !c.fits && !strings.Contains(given.Output, `Look into "../../b/SKILL.md"`) {
			t.Errorf("the refusal does not say what to do: %s", given.Output)
		}
	}
}
