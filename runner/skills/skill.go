package skills

import (
	"fmt"
	"slices"
)

// Skill is one that a run can load. Its texts are of the base commit, with nothing in them
// that a person would not see.
type Skill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  string            `json:"allowed_tools,omitempty"` // shown, and followed by nobody
	Metadata      map[string]string `json:"metadata,omitempty"`
	Path          string            `json:"path"`   // of its SKILL.md, from the root of the repository
	SHA256        string            `json:"sha256"` // of that file
	Bytes         int               `json:"bytes"`  // of that file
	Files         []string          `json:"files,omitempty"`
	FilesMore     int               `json:"files_more,omitempty"` // that are not among Files
	Text          string            `json:"text,omitempty"`       // what stands below the front matter
	Left          int               `json:"left,omitempty"`       // bytes of it that are not in Text
}

// Problem is something about a file that is, or was meant to be, a skill.
type Problem struct {
	Path    string `json:"path"`
	Message string `json:"message"` // the end of a sentence that begins with Path
	Skipped bool   `json:"skipped"` // there is no skill of it
}

func (p Problem) String() string {
	if p.Skipped {
		return fmt.Sprintf("%q is not used: it %s", p.Path, p.Message)
	}
	return fmt.Sprintf("%q: %s", p.Path, p.Message)
}

// Found is what folders of a base commit have.
type Found struct {
	Skills   []Skill
	Problems []Problem
}

// Only are the skills that have these names, in their order; all where there are none. The
// error says which there are not.
func (f Found) Only(names []string) (Found, error) {
	if len(names) == 0 {
		return f, nil
	}
	chosen := Found{Problems: f.Problems}
	for _, name := range names {
		i := slices.IndexFunc(f.Skills, func(s Skill) bool { return s.Name == name })
		if i < 0 {
			return Found{}, fmt.Errorf("there is no skill %q in the base commit, which skills.allow names; agent-ci skills lists those that there are, and why others are not used", name)
		}
		if !slices.ContainsFunc(chosen.Skills, func(s Skill) bool { return s.Name == name }) {
			chosen.Skills = append(chosen.Skills, f.Skills[i])
		}
	}
	return chosen, nil
}
