package repository

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// privateFolder is agent-ci's own git folder for the repository.
type privateFolder struct {
	PrivateDir   string            // its path
	controlFiles map[string][]byte // original content of its files that control git
	privateGit   program.Program   // runs in it, with nothing of the user's configuration
}

// makePrivate makes the private git folder in state. It has the configuration that was read, no
// hooks, and its own objects.
func (r *Repository) makePrivate(state string) (err error) {
	if r.PrivateDir, err = os.MkdirTemp(state, "shadow-"); err == nil {
		err = makeFolders(r.PrivateDir, "objects", "refs/heads", "info")
	}
	if err == nil {
		err = r.writeGitDir(r.PrivateDir, r.configText(r.PrivateDir, os.DevNull))
	}
	if err == nil {
		err = r.readControlFiles()
	}
	if err != nil {
		return fmt.Errorf("make a private git folder: %w", err)
	}
	system, err := regularfile.Read("/etc/gitattributes", regularfile.Small)
	if err != nil {
		system = nil // there is none, or it cannot be read
	}
	r.attributes = [][]byte{system, r.controlFiles[userAttributes], r.controlFiles[attributes]}
	r.controlFiles[attributes] = fmt.Appendf(slices.Clip(r.controlFiles[attributes]), "\n* conflict-marker-size=%d\n", MarkSize)
	return nil
}

// readControlFiles reads the existing control files of the private git folder.
func (r *Repository) readControlFiles() error {
	r.controlFiles = map[string][]byte{}
	for _, name := range [...]string{"config", "info/exclude", attributes, userExcludes, userAttributes} {
		data, err := os.ReadFile(filepath.Join(r.PrivateDir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.controlFiles[name] = data
	}
	return nil
}

// MarkSize is the length of git's conflict markers in the private git folder. It is longer than
// markers that files contain.
const MarkSize = 199

// PrivateGit returns git for the private git folder. It first restores the files that control git,
// because commands without a sandbox may have changed them.
func (r *Repository) PrivateGit() (program.Program, error) {
	err := r.restoreControlFiles()
	if err != nil {
		err = fmt.Errorf("configure the private git folder: %w", err)
	}
	return r.privateGit, err
}

// restoreControlFiles restores the files that control git in the private git folder.
func (r *Repository) restoreControlFiles() error {
	for _, name := range [...]string{"commondir", "config.worktree", "objects/info/alternates"} { // with these files, git would read other folders
		if err := os.RemoveAll(filepath.Join(r.PrivateDir, name)); err != nil {
			return err
		}
	}
	for name, data := range r.controlFiles {
		path := filepath.Join(r.PrivateDir, name)
		found, err := regularfile.Read(path, regularfile.Small)
		isMissing := data == nil && errors.Is(err, fs.ErrNotExist)
		if isMissing || err == nil && bytes.Equal(found, data) {
			continue
		}
		if err := replaceFile(path, data); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile replaces whatever is at a path by a file with data. It renames the file into place,
// because another git may start at the same moment.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if os.Rename(f.Name(), path) == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(path), os.Rename(f.Name(), path)) // Rename fails if path is a folder
}

// writeGitDir writes the files of a git folder: the given configuration and copies of the repository's ignore
// and attribute rules. Later changes of the originals have no effect.
func (r *Repository) writeGitDir(dir, config string) error {
	for _, file := range [...]struct{ from, to string }{
		{filepath.Join(r.CommonDir, "info", "exclude"), "info/exclude"},
		{filepath.Join(r.CommonDir, "info", "attributes"), attributes},
		{filepath.Join(r.CommonDir, "shallow"), "shallow"},
		{r.Settings.excludesFile, userExcludes},
		{r.Settings.attributesFile, userAttributes},
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

// foldersForCommands are those that `git init` makes in a git folder, but for hooks and tags.
var foldersForCommands = []string{"objects/info", "objects/pack", "refs/heads", "info"}

// makeFolders makes folders in a git folder.
func makeFolders(gitDir string, names ...string) error {
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(gitDir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Paths of copied rules in a private git folder.
const (
	attributes     = "info/attributes"
	userExcludes   = "info/user-exclude"
	userAttributes = "info/user-attributes"
)

// configText returns the configuration for a git folder at dir. It names no program. hooks is the
// folder of hooks; "" means git's default.
func (r *Repository) configText(dir, hooks string) string {
	s := &r.Settings
	var b strings.Builder
	b.WriteString("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\tsafecrlf = false\n")
	for _, v := range [...]struct{ name, value string }{
		{"fileMode", strconv.FormatBool(s.FileMode)},
		{"symlinks", strconv.FormatBool(s.Symlinks)},
		{"ignoreCase", strconv.FormatBool(s.IgnoreCase)},
		{"precomposeUnicode", strconv.FormatBool(s.Precompose)},
		{"trustctime", strconv.FormatBool(s.TrustCtime)},
		{"autocrlf", cmp.Or(s.autoCRLF, "false")},
		{"eol", cmp.Or(s.eol, "native")},
		{"excludesFile", filepath.Join(dir, userExcludes)},
		{"attributesFile", filepath.Join(dir, userAttributes)},
	} {
		fmt.Fprintf(&b, "\t%s = %s\n", v.name, quote(v.value))
	}
	if hooks != "" {
		fmt.Fprintf(&b, "\thooksPath = %s\n", quote(hooks))
	}
	if s.MinimalStat {
		b.WriteString("\tcheckStat = minimal\n")
	}
	b.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	return b.String()
}

// filterConfig returns the filters of the repository's own configuration, as read when the
// checkout was opened. Only git inside a sandbox may get them. That git reads the user's filters
// from the user's own configuration.
func (r *Repository) filterConfig() string {
	var b strings.Builder
	for name, driver := range r.Settings.Filters {
		if r.Settings.OwnFilter(name) == "" {
			continue
		}
		fmt.Fprintf(&b, "[filter %s]\n", quote(name))
		for option, value := range driver {
			fmt.Fprintf(&b, "\t%s = %s\n", option, quote(value))
		}
	}
	return b.String()
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// quote quotes a text for git's configuration and path lists.
func quote(text string) string { return `"` + quoteEscaper.Replace(text) + `"` }

// Exclude returns the rules of info/exclude.
func (r *Repository) Exclude() rules.Ignore {
	return rules.ParseIgnore(r.controlFiles["info/exclude"], "")
}

// OuterIgnores returns the ignore rules from outside the work tree: the user's, then those of
// info/exclude, which have priority.
func (r *Repository) OuterIgnores() []rules.Ignore {
	return []rules.Ignore{rules.ParseIgnore(r.controlFiles[userExcludes], ""), r.Exclude()}
}

// OuterAttributes returns the contents of the attribute files outside the work tree, as read when
// the repository was opened.
func (r *Repository) OuterAttributes() [][]byte { return r.attributes }

// HasAttributes reports whether any attribute file outside the work tree has content.
func (r *Repository) HasAttributes() bool {
	return slices.ContainsFunc(r.attributes, func(text []byte) bool { return len(text) > 0 })
}
