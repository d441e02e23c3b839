package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Skills is an event with the skills offered to the model.
type Skills struct {
	File   string  `json:"file"`   // the file with their texts, in the run directory
	SHA256 string  `json:"sha256"` // of that file
	Skills []Skill `json:"skills"`
}

// Skill is a skill of the base commit.
type Skill struct {
	Name   string `json:"name"`
	Path   string `json:"path"`   // of its SKILL.md, relative to the repository's root
	SHA256 string `json:"sha256"` // of that file
	Bytes  int    `json:"bytes"`  // of that file
}

// LoadedSkill returns the name of the skill that a call loaded, or "".
func (d ToolFinished) LoadedSkill() string {
	if d.Tool != dialect.LoadSkill || d.Failed {
		return ""
	}
	name, _ := d.Detail[SkillDetail].(string)
	return name
}

// SkillDetail is the key in a call's detail with the loaded skill's name.
const SkillDetail = "skill"

// skillLoaded adds the skill that a call loaded, unless it is known.
func (f *Folder) skillLoaded(d ToolFinished) {
	name := d.LoadedSkill()
	sameName := func(s Skill) bool { return s.Name == name }
	if name == "" || slices.ContainsFunc(f.view.LoadedSkills, sameName) {
		return
	}
	if i := slices.IndexFunc(f.view.Skills.Skills, sameName); i >= 0 {
		f.view.LoadedSkills = append(f.view.LoadedSkills, f.view.Skills.Skills[i])
	}
}
