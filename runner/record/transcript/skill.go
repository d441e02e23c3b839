package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Skills are the skills that the model is told of, as it can load them for the whole run.
type Skills struct {
	File   string  `json:"file"`   // with their texts, below the run directory
	SHA256 string  `json:"sha256"` // of it
	Skills []Skill `json:"skills"`
}

// Skill is one of them, as the base commit has it.
type Skill struct {
	Name   string `json:"name"`
	Path   string `json:"path"`   // of its SKILL.md, from the root of the repository
	SHA256 string `json:"sha256"` // of that file
	Bytes  int    `json:"bytes"`  // of that file
}

// LoadedSkill is the name of the skill that a call gave to the model; empty for none.
func (d ToolFinished) LoadedSkill() string {
	if d.Tool != dialect.LoadSkill || d.Failed {
		return ""
	}
	name, _ := d.Detail[SkillDetail].(string)
	return name
}

// SkillDetail is under what name the detail of a call has the skill that it gave to the model.
const SkillDetail = "skill"

func (f *fold) skills(_ Event, d Skills) { f.view.Skills = d }

// skillLoaded takes a skill that was given to the model, once.
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
