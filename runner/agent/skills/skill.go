package skills

import "fmt"

// Skill is a loadable skill. Its texts come from the base commit, without invisible characters.
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

// Problem is a problem with a skill's file.
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

// Found holds the skills and problems of a search.
type Found struct {
	Skills   []Skill
	Problems []Problem
}
