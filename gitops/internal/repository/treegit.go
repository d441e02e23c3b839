package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// TreeFolder describes a git folder for commands. Commands may write to it, so nothing outside
// their sandbox reads it after they start.
type TreeFolder struct {
	Dir      string
	SeenAt   string   // its path for commands
	Excluded []string // paths for info/exclude
}

// FillGitDir makes a git folder for commands. Its configuration has the settings that affect
// content, the repository's own filters, and remotes without credentials. It has no hooks.
func (r *Repository) FillGitDir(f TreeFolder) error {
	config := r.configText(f.SeenAt, r.Settings.hooksOverride(f.SeenAt)) + r.filterConfig() + remoteConfig(r.Settings.commandVariables)
	if err := makeFolders(f.Dir, foldersForCommands...); err != nil {
		return err
	}
	if err := r.writeGitDir(f.Dir, config); err != nil {
		return err
	}
	return appendExcludes(filepath.Join(f.Dir, "info", "exclude"), f.Excluded)
}

// hooksOverride returns the core.hooksPath that restores git's default for a git folder at dir, or "" if the
// configuration does not change the default.
func (s *Settings) hooksOverride(dir string) string {
	if !s.hasHooksPath {
		return ""
	}
	return filepath.Join(dir, "hooks")
}

// keepForCommands stores a setting of a remote, branch or submodule for commands, without
// credentials. It ignores other settings.
func (s *Settings) keepForCommands(name string, v variable) {
	switch name {
	case "url", "pushurl":
		v.value = withoutCredentials(v.value)
	case "active":
		v.value = v.text()
	case "fetch", "tagopt", "remote", "merge": // kept as they are
	default:
		return
	}
	s.commandVariables = append(s.commandVariables, v)
}

// remoteConfig returns settings of remotes, branches and submodules as configuration text. It
// omits settings without a subsection.
func remoteConfig(vars []variable) string {
	var b strings.Builder
	last := ""
	for _, v := range vars {
		section, subsection, name := v.splitKey()
		if subsection == "" {
			continue
		}
		if header := fmt.Sprintf("[%s %s]\n", section, quote(subsection)); header != last {
			last = header
			b.WriteString(header)
		}
		fmt.Fprintf(&b, "\t%s = %s\n", name, quote(v.value))
	}
	return b.String()
}

// appendExcludes appends an ignore rule for each path to a file. A rule matches the path literally,
// except for line breaks and final blanks: rules cannot express those, so "?" replaces them.
func appendExcludes(file string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	special := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "\n", "?", "\r", "?")
	var b strings.Builder
	b.WriteString("\n# not tracked before the run\n")
	for _, path := range paths {
		rule := special.Replace(path)
		if end := strings.TrimRight(rule, " \t"); end != rule {
			rule = end + strings.Repeat("?", len(rule)-len(end))
		}
		b.WriteString("/" + rule + "\n")
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

// Module is a submodule's repository in the checkout's git folder.
type Module struct {
	Name          string   // its folder in the git folder, with slashes
	Path          string   // its folder in the work tree, with slashes
	ObjectFolders []string // git folders with its objects; the first is its own

	vars []variable
}

// deepestModules is the limit for path parts of submodule names and for nested submodules.
const deepestModules = 20

// Modules returns the repositories of submodules that were checked out at Open, including nested
// ones. It omits unsupported ones.
func (r *Repository) Modules() []Module { return r.modules }

// modulesIn returns the usable submodule repositories below a folder of the git folder. depth is the number of
// folders above that were searched before, to end endless nesting.
func (r *Repository) modulesIn(ctx context.Context, folder string, depth int) (all []Module) {
	entries, err := os.ReadDir(filepath.Join(r.GitDir, filepath.FromSlash(folder)))
	if err != nil || depth > deepestModules {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		name := path.Join(folder, e.Name())
		if !isGitDir(filepath.Join(r.GitDir, filepath.FromSlash(name))) {
			all = append(all, r.modulesIn(ctx, name, depth+1)...)
			continue
		}
		if m, ok := r.readModule(ctx, name); ok {
			all = append(all, m)
		}
		all = append(all, r.modulesIn(ctx, path.Join(name, "modules"), depth+1)...)
	}
	return all
}

// readModule reads the submodule repository in a folder of the git folder. It returns false if the
// submodule is not checked out, or if its configuration is unsupported.
func (r *Repository) readModule(ctx context.Context, name string) (m Module, ok bool) {
	dir := filepath.Join(r.GitDir, filepath.FromSlash(name))
	m = Module{Name: name}
	if (Layout{GitDir: dir, CommonDir: dir}).requireRegularFiles() != nil {
		return m, false
	}
	for _, file := range []string{"config", "config.worktree"} {
		if !isFile(filepath.Join(dir, file)) {
			continue
		}
		vars, err := r.readVariables(ctx, r.userGit, "", "--file", filepath.Join(dir, file), "--list")
		if err != nil {
			return m, false
		}
		m.vars = append(m.vars, vars...)
	}
	s := newSettings(m.vars, "")
	within, is := pathname.Below(r.Root, absolute(dir, s.worktree))
	if !is || s.worktree == "" || s.checkExtensions() != nil {
		return m, false
	}
	m.Path = filepath.ToSlash(within)
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return m, false
	}
	defer root.Close()
	if checkedOut := r.NamedBy(root, path.Join(m.Path, ".git")) == dir; !checkedOut {
		return m, false
	}
	m.ObjectFolders, _, err = ObjectFolders(dir)
	return m, err == nil
}

// contentVariables lists the core settings that affect file content.
var contentVariables = []string{
	"autocrlf", "checkstat", "eol", "filemode", "ignorecase", "precomposeunicode", "sparsecheckout", "sparsecheckoutcone", "symlinks", "trustctime",
}

// FillModule makes the git folder of a submodule inside the git folder f, which FillGitDir made, with the same
// kind of configuration.
func (r *Repository) FillModule(f TreeFolder, m Module) error {
	name := filepath.FromSlash(m.Name)
	to, seenAt, from := filepath.Join(f.Dir, name), filepath.Join(f.SeenAt, name), m.ObjectFolders[0]
	files, err := filepath.Rel(seenAt, filepath.Join(filepath.Dir(f.SeenAt), filepath.FromSlash(m.Path)))
	if err != nil {
		return err
	}
	if err := makeFolders(to, foldersForCommands...); err != nil {
		return err
	}
	for _, file := range [...]string{"info/exclude", "info/attributes", "info/sparse-checkout", "shallow", "index"} {
		if err := regularfile.CopyIfThere(filepath.Join(from, file), filepath.Join(to, file), index.MaxSize); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(to, "config"), []byte(r.moduleConfig(m, seenAt, files)), 0o600); err != nil {
		return err
	}
	head, err := readHead(from)
	if err != nil {
		return err
	}
	return Layout{Root: r.Root, GitDir: from, CommonDir: from}.CopyRefs(to, head, nil)
}

// moduleConfig returns the configuration of the git folder that commands see at seenAt for a submodule. worktree is the
// submodule's folder.
func (r *Repository) moduleConfig(m Module, seenAt, worktree string) string {
	s := newSettings(m.vars, "")
	var b strings.Builder
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\tworktree = %s\n", quote(worktree))
	for _, v := range m.vars {
		if name, isCore := strings.CutPrefix(v.key, "core."); isCore && v.hasValue && slices.Contains(contentVariables, name) {
			fmt.Fprintf(&b, "\t%s = %s\n", name, quote(v.value))
		}
	}
	if r.Settings.hasHooksPath || s.hasHooksPath {
		fmt.Fprintf(&b, "\thooksPath = %s\n", quote(filepath.Join(seenAt, "hooks")))
	}
	b.WriteString("[gc]\n\tauto = 0\n" + remoteConfig(s.commandVariables))
	return b.String()
}
