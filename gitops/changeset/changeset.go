// Package changeset describes changed files, like git does.
package changeset

import "slices"

// Status is the kind of a change, as a letter of git.
type Status string

// Statuses of a file. A rename is a deletion and an addition.
const (
	Added       Status = "A"
	Modified    Status = "M"
	Deleted     Status = "D"
	TypeChanged Status = "T" // changed between file, link and submodule
)

// File is a changed path. Modes are octal like git's, ids are hex. Both are "" for a side without
// the file.
type File struct {
	Path       string `json:"path"`
	Status     Status `json:"status"`
	OldMode    string `json:"old_mode,omitempty"`
	NewMode    string `json:"new_mode,omitempty"`
	OldID      string `json:"old_id,omitempty"`
	NewID      string `json:"new_id,omitempty"`
	Binary     bool   `json:"binary,omitempty"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
}

// Paths returns the paths of files, in their order.
func Paths(files []File) []string {
	paths := make([]string, len(files))
	for i := range files {
		paths[i] = files[i].Path
	}
	return paths
}

// Same reports whether two changes have the same files with the same content. It ignores line
// counts.
func Same(a, b []File) bool {
	return slices.EqualFunc(a, b, func(x, y File) bool {
		return x.Path == y.Path && x.NewID == y.NewID && x.NewMode == y.NewMode && x.OldID == y.OldID
	})
}
