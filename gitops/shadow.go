package gitops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// newShadow makes the git folder of our own in state: configuration as it was
// read, no hooks, objects of its own.
func newShadow(state string, l layout, s *settings) (string, error) {
	dir, err := os.MkdirTemp(state, "shadow-")
	if err != nil {
		return "", fmt.Errorf("make a private git folder: %w", err)
	}
	if err := fillGitDir(dir, l, s); err != nil {
		return "", errors.Join(fmt.Errorf("make a private git folder: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

// fillGitDir makes dir a git folder with the configuration that s holds and
// the private ignore and attribute rules of l.
func fillGitDir(dir string, l layout, s *settings) error {
	for _, sub := range [...]string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := copyRules(dir, l, s); err != nil {
		return err
	}
	if err := regularfile.CopyIfThere(filepath.Join(l.commonDir, "shallow"), filepath.Join(dir, "shallow"), regularfile.Small); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(s.encode(dir, l)), 0o600)
}

// copyRules copies what git reads from outside of the work tree, so that what
// is changed there later does not count.
func copyRules(dir string, l layout, s *settings) error {
	for _, name := range [...]string{"exclude", "attributes"} {
		if err := regularfile.CopyIfThere(filepath.Join(l.commonDir, "info", name), filepath.Join(dir, "info", name), regularfile.Small); err != nil {
			return err
		}
	}
	if err := regularfile.CopyIfThere(s.excludesFile, filepath.Join(dir, userExcludes), regularfile.Small); err != nil {
		return err
	}
	return regularfile.CopyIfThere(s.attributes, filepath.Join(dir, userAttributes), regularfile.Small)
}

// The user's own rules as they are kept in the shadow.
const (
	userExcludes   = "info/user-exclude"
	userAttributes = "info/user-attributes"
)

// encode writes the configuration of a git folder at dir. It names no program
// but the filters that were configured when the checkout was opened.
func (s *settings) encode(dir string, l layout) string {
	var b strings.Builder
	b.WriteString("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\tsafecrlf = false\n")
	for _, v := range [...]struct{ name, value string }{
		{"hooksPath", os.DevNull},
		{"fileMode", strconv.FormatBool(s.fileMode)},
		{"symlinks", strconv.FormatBool(s.symlinks)},
		{"ignoreCase", strconv.FormatBool(s.ignoreCase)},
		{"precomposeUnicode", strconv.FormatBool(s.precompose)},
		{"trustctime", strconv.FormatBool(s.trustCtime)},
		{"autocrlf", first(s.eol.AutoCRLF, "false")},
		{"eol", first(s.eol.EOL, "native")},
		{"excludesFile", filepath.Join(dir, userExcludes)},
		{"attributesFile", filepath.Join(dir, userAttributes)},
	} {
		fmt.Fprintf(&b, "\t%s = %s\n", v.name, quoteValue(v.value))
	}
	if s.minimalStat {
		b.WriteString("\tcheckStat = minimal\n")
	}
	b.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	fmt.Fprintf(&b, "[lfs]\n\tstorage = %s\n", quoteValue(filepath.Join(l.commonDir, "lfs")))
	for name, driver := range s.filters {
		fmt.Fprintf(&b, "[filter %s]\n", quoteValue(name))
		for option, value := range driver {
			fmt.Fprintf(&b, "\t%s = %s\n", option, quoteValue(value))
		}
	}
	return b.String()
}

// quoteValue writes a value so that git reads the same (git-config(1), Syntax).
func quoteValue(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value) + `"`
}
