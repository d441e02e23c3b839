package skills

import "fmt"

// Skill is a skill that a model can load. Its texts come from the base commit, without invisible characters.
type Skill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  string            `json:"allowed_tools,omitempty"` // shown to the model; allows nothing
	Metadata      map[string]string `json:"metadata,omitempty"`
	Path          string            `json:"path"`   // of SKILL.md, relative to the repository's root
	SHA256        string            `json:"sha256"` // digest of SKILL.md
	Bytes         int               `json:"bytes"`  // size of SKILL.md
	Files         []string          `json:"files,omitempty"`
	UnlistedFiles int               `json:"files_more,omitempty"` // number of files not listed in Files
	Text          string            `json:"text,omitempty"`       // the text below the front matter
	CutBytes      int               `json:"left,omitempty"`       // number of bytes cut off after Text
}

// Problem is a problem with a skill's file.
type Problem struct {
	Path    string `json:"path"`
	Message string `json:"message"` // the end of a sentence that begins with Path
	Skipped bool   `json:"skipped"` // the file gives no skill
}

func (p Problem) String() string {
	if p.Skipped {
		return fmt.Sprintf("%q is not used: it %s", p.Path, p.Message)
	}
	return fmt.Sprintf("%q: %s", p.Path, p.Message)
}

// Found holds the skills and problems of a search.
type Found struct {
	Skills   []Skill
	Problems []Problem
}
