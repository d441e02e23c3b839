package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Skills lists the skills offered to the model during the run.
type Skills struct {
	File   string  `json:"file"`   // with their texts, below the run directory
	SHA256 string  `json:"sha256"` // of it
	Skills []Skill `json:"skills"`
}

// Skill is a skill of the base commit.
type Skill struct {
	Name   string `json:"name"`
	Path   string `json:"path"`   // of its SKILL.md, from the root of the repository
	SHA256 string `json:"sha256"` // of that file
	Bytes  int    `json:"bytes"`  // of that file
}

// LoadedSkill returns the skill that a call loaded, or "".
func (d ToolFinished) LoadedSkill() string {
	if d.Tool != dialect.LoadSkill || d.Failed {
		return ""
	}
	name, _ := d.Detail[SkillDetail].(string)
	return name
}

// SkillDetail is the key of the loaded skill in a call's detail.
const SkillDetail = "skill"

func (f *fold) skills(_ Event, d Skills) { f.view.Skills = d }

// skillLoaded records a loaded skill once.
func (f *fold) skillLoaded(d ToolFinished) {
	name := d.LoadedSkill()
	known := func(s Skill) bool { return s.Name == name }
	if name == "" || slices.ContainsFunc(f.view.LoadedSkills, known) {
		return
	}
	if i := slices.IndexFunc(f.view.Skills.Skills, known); i >= 0 {
		f.view.LoadedSkills = append(f.view.LoadedSkills, f.view.Skills.Skills[i])
	}
}
