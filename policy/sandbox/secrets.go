package sandbox

import (
	"path/filepath"
	"slices"
)

// Secrets are what is kept from commands in the folders that they may write to.
// They are found before commands of an agent run, and hold for all sandboxes
// after that: what an agent makes is no secret, and a link that it makes hides
// nothing of what others need.
type Secrets struct {
	Within []string `json:"within"` // the folders, as they are named and without links
	Found  []Secret `json:"found"`
}

// Secret is one path of them.
type Secret struct {
	Path  string `json:"path"`         // absolute; as it is named, or without links
	By    string `json:"by,omitempty"` // what names it: DeniedBy or a variable; empty for one that is known by its place
	Named string `json:"named"`        // as it is named
	There bool   `json:"there"`        // something was there, and no link led to it
}

// DeniedBy says that Options.DenyRead names a secret.
const DeniedBy = "policy.deny_read"

// Paths are the paths of all of them.
func (s *Secrets) Paths() []string {
	if s == nil {
		return nil
	}
	paths := make([]string, len(s.Found))
	for i, secret := range s.Found {
		paths[i] = secret.Path
	}
	return paths
}

// Join adds what was found later.
func (s *Secrets) Join(later *Secrets) {
	for _, secret := range later.Found {
		s.add(secret)
	}
}

func (s *Secrets) add(secret Secret) {
	i := slices.IndexFunc(s.Found, func(known Secret) bool { return known.Path == secret.Path })
	if i < 0 {
		s.Found = append(s.Found, secret)
		return
	}
	s.Found[i].There = s.Found[i].There || secret.There
}

// folders are those that commands may write to and that hold what is not their
// own.
func (o Options) folders() []string {
	folders := append([]string{o.Workspace}, o.Writable...)
	for _, path := range slices.Clone(folders) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			folders = append(folders, real)
		}
	}
	return folders
}
