package skills

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
)

// fileName is the name of a skill's file. Its case matters.
const fileName = "SKILL.md"

// Limits of the search.
const (
	maxFolders = 2_000
	maxDepth   = 4 // levels below a searched folder
	maxSkills  = 200
	maxSize    = 256 << 10 // bytes of a SKILL.md
	// maxFiles is the maximum number of listed files of a skill, maxFilesText the maximum total length of their
	// names, in bytes.
	maxFiles     = 100
	maxFilesText = 4 << 10
	maxProblems  = 100
)

// Find searches folders of the base commit for skills. The folders are relative to the repository's root. If two
// skills have the same name, the first one found wins. Find never follows links.
func Find(base *gitops.Checkout, folders []string) (Found, error) {
	s := search{base: base}
	for _, folder := range folders {
		entry, err := base.BaseEntry(folder)
		if err != nil {
			return s.found, err
		}
		target := path.Join(path.Dir(folder), entry.Target) // of a link
		switch {
		case entry.Kind == gitops.BaseFolder:
			if err := s.addFolder(folder, 0); err != nil {
				return s.found, err
			}
		case entry.Kind == gitops.BaseLink && !slices.Contains(folders, target):
			s.reportSkipped(folder, "is a link, which is not followed; name the folder that it leads to in skills.folders")
		}
	}
	return s.found, nil
}

// search collects the skills in folders of the base commit.
type search struct {
	base          *gitops.Checkout
	visited       int // number of folders
	found         Found
	limitReported bool
}

// addProblem adds a problem, up to maxProblems.
func (s *search) addProblem(p Problem) {
	if len(s.found.Problems) < maxProblems {
		p.Path = clip.Visible(p.Path, 1_000)
		s.found.Problems = append(s.found.Problems, p)
	}
}

// reportSkipped adds the problem that the file or folder at path gives no skill. The message continues "it …".
func (s *search) reportSkipped(path, format string, args ...any) {
	s.addProblem(Problem{Path: path, Message: fmt.Sprintf(format, args...), Skipped: true})
}

// atLimit reports whether the search has reached a limit. The first time it adds a problem about path.
func (s *search) atLimit(path string) bool {
	limit := ""
	switch {
	case s.visited >= maxFolders:
		limit = fmt.Sprintf("%d folders", maxFolders)
	case len(s.found.Skills) >= maxSkills:
		limit = fmt.Sprintf("%d skills", maxSkills)
	}
	if limit != "" && !s.limitReported {
		s.limitReported = true
		message := "and what comes after it is not looked at: there are more than " + limit
		s.found.Problems = append(s.found.Problems, Problem{Path: clip.Visible(path, 1_000), Message: message, Skipped: true}) // even beyond maxProblems
	}
	return limit != ""
}

// addFolder adds the skill in a folder. If the folder has none, it searches the folders below.
func (s *search) addFolder(dir string, depth int) error {
	if s.atLimit(dir) {
		return nil
	}
	s.visited++
	entries, err := s.base.BaseEntries(dir)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(entries, func(e gitops.BaseEntry) bool { return e.Name == fileName }); i >= 0 {
		return s.addSkill(dir, entries[i].Kind)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case e.Kind == gitops.BaseFile && strings.EqualFold(e.Name, fileName):
			s.reportSkipped(name, "is not named exactly %s", fileName)
		case e.Kind == gitops.BaseLink:
			s.reportSkipped(name, "is a link, which is not followed")
		case e.Kind == gitops.BaseFolder && depth == maxDepth:
			s.reportSkipped(name, "lies deeper than %d folders", maxDepth)
		case e.Kind == gitops.BaseFolder:
			if err := s.addFolder(name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSkill adds the skill in the folder dir, or a problem if it cannot be used. kind is the kind of its SKILL.md.
func (s *search) addSkill(dir string, kind gitops.BaseKind) error {
	name := path.Join(dir, fileName)
	if kind != gitops.BaseFile {
		s.reportSkipped(name, "is no file, and no link is followed")
		return nil
	}
	raw, err := s.base.ReadBase(name, maxSize)
	if large, isTooLarge := errors.AsType[*gitops.TooLargeError](err); isTooLarge {
		s.reportSkipped(name, "has %d bytes, more than %d", large.Size, maxSize)
		return nil
	}
	if err != nil {
		return err
	}
	skill, remarks, parseErr := parse(raw, path.Base(dir))
	if parseErr != nil {
		s.reportSkipped(name, "%s", parseErr.Error())
		return nil
	}
	if i := slices.IndexFunc(s.found.Skills, func(other Skill) bool { return other.Name == skill.Name }); i >= 0 {
		s.reportSkipped(name, "has the name %q, which %q has already", skill.Name, s.found.Skills[i].Path)
		return nil
	}
	for _, remark := range remarks {
		s.addProblem(Problem{Path: name, Message: remark})
	}
	skill.Path, skill.SHA256, skill.Bytes = name, record.DigestOf(raw), len(raw)
	if err := s.listFiles(&skill, dir, "", 0); err != nil {
		return err
	}
	s.found.Skills = append(s.found.Skills, skill)
	return nil
}

// listFiles adds the names of the files in a skill's folder to skill.Files, except SKILL.md. Files over a limit, and
// names that cannot be shown on one line, are only counted in skill.UnlistedFiles. below is the folder to list,
// relative to the skill's folder dir. depth is its number of levels below dir.
func (s *search) listFiles(skill *Skill, dir, below string, depth int) error {
	if s.visited >= maxFolders || depth > maxDepth {
		return nil
	}
	if below != "" {
		s.visited++
	}
	entries, err := s.base.BaseEntries(path.Join(dir, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(below, e.Name)
		hasRoom := len(skill.Files) < maxFiles && len(name) <= maxFilesText-totalLength(skill.Files)
		isVisible := oneLine(name, len(name)) == name
		switch {
		case e.Kind == gitops.BaseFolder:
			if err := s.listFiles(skill, dir, name, depth+1); err != nil {
				return err
			}
		case e.Kind != gitops.BaseFile || name == fileName: // neither listed nor counted
		case hasRoom && isVisible:
			skill.Files = append(skill.Files, name)
		default:
			skill.UnlistedFiles++
		}
	}
	return nil
}

func totalLength(names []string) (bytes int) {
	for _, name := range names {
		bytes += len(name)
	}
	return bytes
}
