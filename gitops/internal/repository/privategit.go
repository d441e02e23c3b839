package repository

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// makePrivate makes a git folder of our own in state: configuration as it was read,
// no hooks, objects of its own.
func (r *Repository) makePrivate(state string) (err error) {
	if r.Private, err = os.MkdirTemp(state, "shadow-"); err == nil {
		err = r.fillGitDir(r.Private, r.encode(r.Private, os.DevNull))
	}
	if err == nil {
		err = r.lengthenMarks()
	}
	if err != nil {
		return fmt.Errorf("make a private git folder: %w", err)
	}
	return nil
}

// MarkSize is how many letters begin a mark of a conflict that git writes in the private git folder:
// more than those that files have themselves.
const MarkSize = 199

// lengthenMarks has marks of conflicts be that long, whatever other attributes say.
func (r *Repository) lengthenMarks() error {
	f, err := os.OpenFile(filepath.Join(r.Private, "info", "attributes"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n* conflict-marker-size=%d\n", MarkSize)
	return errors.Join(err, f.Close())
}

// ResetPrivate writes the configuration of the private git folder again: commands without a sandbox could
// have changed it.
func (r *Repository) ResetPrivate() error {
	path := filepath.Join(r.Private, "config")
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(r.encode(r.Private, os.DevNull)), 0o600)); err != nil {
		return fmt.Errorf("configure the private git folder: %w", err)
	}
	return nil
}

// fillGitDir makes dir a git folder with copies of the ignore and attribute rules that git would
// read for this repository: what is changed there later does not count.
func (r *Repository) fillGitDir(dir, config string) error {
	if err := makeFolders(dir); err != nil {
		return err
	}
	for _, file := range [...]struct{ from, to string }{
		{filepath.Join(r.CommonDir, "info", "exclude"), "info/exclude"},
		{filepath.Join(r.CommonDir, "info", "attributes"), "info/attributes"},
		{filepath.Join(r.CommonDir, "shallow"), "shallow"},
		{r.Settings.excludesFile, userExcludes},
		{r.Settings.attributes, userAttributes},
	} {
		if err := regularfile.CopyIfThere(file.from, filepath.Join(dir, file.to), regularfile.Small); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

// makeFolders makes the folders by which git knows a git folder, and those that it gets files in.
func makeFolders(gitDir string) error {
	for _, sub := range [...]string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(gitDir, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// The user's own rules as they are kept in a git folder of ours.
const (
	userExcludes   = "info/user-exclude"
	userAttributes = "info/user-attributes"
)

// encode writes the configuration of a git folder at dir. It names no program. hooks is the folder of
// hooks; empty for git's own choice.
func (r *Repository) encode(dir, hooks string) string {
	s := &r.Settings
	var b strings.Builder
	b.WriteString("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\tsafecrlf = false\n")
	for _, v := range [...]struct{ name, value string }{
		{"fileMode", strconv.FormatBool(s.FileMode)},
		{"symlinks", strconv.FormatBool(s.Symlinks)},
		{"ignoreCase", strconv.FormatBool(s.IgnoreCase)},
		{"precomposeUnicode", strconv.FormatBool(s.Precompose)},
		{"trustctime", strconv.FormatBool(s.TrustCtime)},
		{"autocrlf", cmp.Or(s.EOL.AutoCRLF, "false")},
		{"eol", cmp.Or(s.EOL.EOL, "native")},
		{"excludesFile", filepath.Join(dir, userExcludes)},
		{"attributesFile", filepath.Join(dir, userAttributes)},
	} {
		fmt.Fprintf(&b, "\t%s = %s\n", v.name, Quote(v.value))
	}
	if hooks != "" {
		fmt.Fprintf(&b, "\thooksPath = %s\n", Quote(hooks))
	}
	if s.MinimalStat {
		b.WriteString("\tcheckStat = minimal\n")
	}
	b.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	return b.String()
}

// encodeFilters writes the filters of the repository's own configuration, as they were when the
// checkout was opened. Only git within a sandbox may read them; it knows the user's from elsewhere.
func (r *Repository) encodeFilters() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[lfs]\n\tstorage = %s\n", Quote(filepath.Join(r.CommonDir, "lfs")))
	for name, driver := range r.Settings.Filters {
		if r.Settings.OwnFilter(name) == "" {
			continue
		}
		fmt.Fprintf(&b, "[filter %s]\n", Quote(name))
		for option, value := range driver {
			fmt.Fprintf(&b, "\t%s = %s\n", option, Quote(value))
		}
	}
	return b.String()
}

// Quote writes a text so that git reads the same, in its configuration and in
// lists of paths.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

func (r *Repository) Exclude() rules.Ignore { return r.ignoreRules("info/exclude") }

// OuterIgnores are the ignore rules from outside of the work tree, the weakest
// first.
func (r *Repository) OuterIgnores() []rules.Ignore {
	return []rules.Ignore{r.ignoreRules(userExcludes), r.Exclude()}
}

// ignoreRules reads rules as they were when the repository was opened.
func (r *Repository) ignoreRules(name string) rules.Ignore {
	text, err := os.ReadFile(filepath.Join(r.Private, name))
	if err != nil {
		return rules.Ignore{} // there are none
	}
	return rules.ParseIgnore(text, "")
}

// OuterAttributes are the attributes from outside of the work tree: those of the
// system and the user, weaker than any in it, and those of info/attributes, which
// are the strongest.
func (r *Repository) OuterAttributes() (weaker []rules.Attributes, strongest rules.Attributes) {
	read := func(path string) rules.Attributes {
		data, err := regularfile.Read(path, regularfile.Small)
		if err != nil {
			return rules.Attributes{}
		}
		return rules.ParseAttributes(data, "")
	}
	weaker = []rules.Attributes{read("/etc/gitattributes"), read(filepath.Join(r.Private, userAttributes))}
	return weaker, read(filepath.Join(r.Private, "info", "attributes"))
}
