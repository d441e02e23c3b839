package repository

import (
	"fmt"
	"path/filepath"
)

// supported refuses what would make a result wrong, before anything is touched.
func (s *Settings) supported(l Layout) error {
	switch {
	case s.bare && l.GitDir == l.CommonDir && s.worktree == "":
		return fmt.Errorf("%s: %w", l.Root, ErrBare)
	case s.sparse:
		return sparseCheckout()
	case s.promisor != "":
		return &UnsupportedError{
			Feature: fmt.Sprintf("a partial clone (objects are fetched from %q on demand)", s.promisor),
			Remedy:  "make a full or a shallow clone (in actions/checkout: no `filter`)",
		}
	case s.worktree != "" && absolute(l.GitDir, s.worktree) != l.Root && resolved(absolute(l.GitDir, s.worktree)) != l.Root:
		return &UnsupportedError{
			Feature: "core.worktree naming another folder", Remedy: "run in the folder that core.worktree names, or unset it",
		}
	}
	return s.extensionsSupported()
}

// formatSupported looks at the repository's own configuration file for a format
// that is not known. A git that does not know it either would pass over the
// whole file without a word.
func formatSupported(l Layout) error {
	vars, err := configFiles{Layout: l, getenv: func(string) string { return "" }}.readFile(filepath.Join(l.CommonDir, "config"), 0)
	if err != nil {
		return fmt.Errorf("read git's configuration: %w", err)
	}
	s := newSettings(vars, "")
	return s.extensionsSupported()
}

func sparseCheckout() error {
	return &UnsupportedError{
		Feature: "a sparse checkout", Remedy: "run `git sparse-checkout disable` (in actions/checkout: no `sparse-checkout`)",
	}
}

// extensionsSupported follows gitrepository-layout and git's
// Documentation/technical/repository-version: what is not known must not be
// worked in.
func (s *Settings) extensionsSupported() error {
	if s.formatVersion > 1 {
		return &UnsupportedError{
			Feature: fmt.Sprintf("repository format version %d", s.formatVersion), Remedy: "clone the repository with the default format",
		}
	}
	for name, value := range s.extensions {
		switch name {
		case "objectformat":
			if value == "sha1" {
				continue
			}
			return &UnsupportedError{Feature: "object format " + value, Remedy: "use a repository with SHA-1 objects"}
		case "refstorage":
			if value == "files" {
				continue
			}
			return &UnsupportedError{
				Feature: "reference storage " + value, Remedy: "run `git refs migrate --ref-format=files`",
			}
		case "noop", "noop-v1", "preciousobjects", "worktreeconfig", "relativeworktrees":
			continue
		}
		if s.formatVersion == 0 && name != "compatobjectformat" {
			continue // git does not look at it either
		}
		return &UnsupportedError{
			Feature: "the repository extension " + name, Remedy: "clone the repository with the default format",
		}
	}
	return nil
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
