package scan

import (
	"io/fs"
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Suspect is a file that may differ from the index, so git's form of its content must be computed.
type Suspect struct {
	Path     string
	Mode     uint32 // the mode that git would record
	Info     fs.FileInfo
	ID       plumbing.Hash // the blob id of the content in git's form, zero until it is computed
	Why      string        // why ID cannot be computed; "" if it can
	TooLarge bool          // the reason is the size limit of a change

	Entry int           // position in the index; -1 for none
	Old   plumbing.Hash // the blob id in the index; zero for none
}

// Suspect adds an untracked file to the suspects. A later Clean computes its id.
func (s *Scan) Suspect(f Found) {
	s.Suspects = append(s.Suspects, Suspect{Path: f.Path, Info: f.info, Mode: ModeOf(s.settings, f.info.Mode(), 0), Entry: -1})
}

// SuspectAt adds the file or link at name to the suspects, even if git ignores it. It adds nothing
// if there is no such file, or if a parent folder is in fact a link or file.
func (s *Scan) SuspectAt(name string) {
	if regularfile.Obstacle(s.tree.Dir, path.Dir(name)) != "" {
		return
	}
	info, err := s.tree.Dir.Lstat(name)
	if err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0) {
		s.Suspect(Found{Path: name, info: info})
	}
}

// Differing lists the cleaned suspects that differ from the index.
func (s *Scan) Differing() (paths []string) {
	for i := range s.Suspects {
		if !s.AsIndexed(&s.Suspects[i]) {
			paths = append(paths, s.Suspects[i].Path)
		}
	}
	return paths
}

// AsIndexed reports whether a cleaned suspect has the mode and content of its index entry.
func (s *Scan) AsIndexed(one *Suspect) bool {
	if one.Entry < 0 || one.Why != "" {
		return false
	}
	e := s.index.Entry(one.Entry)
	return e.Stage == 0 && !e.IntentToAdd && e.Mode == one.Mode && e.ID == one.ID
}
