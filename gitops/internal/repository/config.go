package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Settings is the part of git's configuration that agent-ci follows, as read when the checkout was
// opened.
type Settings struct {
	formatVersion    int
	extensions       map[string]string
	bare             bool
	worktree         string
	sparse           bool
	promisor         string          // the remote that a partial clone fetches objects from on demand
	ownFilterKeys    map[string]bool // keys of filter settings in the repository's own configuration
	hasHooksPath     bool            // core.hooksPath is set
	noReflog         bool
	commandVariables []variable // settings of remotes, branches and submodules that commands see, too
	FileRules
	Remotes
}

// FileRules decides which bytes and modes of files git stores, and which files count as changed.
type FileRules struct {
	autoCRLF       string // "true", "input" or "false"
	eol            string // "crlf", "lf", or any other value for native
	FileMode       bool
	Symlinks       bool
	IgnoreCase     bool
	Precompose     bool
	TrustCtime     bool
	MinimalStat    bool
	excludesFile   string
	attributesFile string
	Filters        map[string]FilterDriver
}

// Remotes is the configuration of other repositories.
type Remotes struct {
	urls         map[string][]string // by remote, as configured
	pushURLs     map[string][]string // by remote; git pushes to these if there are some
	pushRemotes  map[string]string   // by branch; the key "" is remote.pushDefault
	rewritesURLs bool                // url.*.insteadOf may rewrite addresses
	rewritesPush bool                // url.*.pushInsteadOf may rewrite addresses of pushes
	Origin       string
	Fetch        []string // refspecs of all remotes
}

// LFS reports whether the driver is git-lfs: all its commands are exactly those of `git lfs
// install`.
func (d FilterDriver) LFS() bool {
	for option, published := range lfsCommands {
		if d[option] != "" && !slices.Contains(published, d[option]) {
			return false
		}
	}
	return d.Active()
}

// FetchesLFS reports whether the driver is git-lfs and downloads contents at checkout. The
// variable GIT_LFS_SKIP_SMUDGE prevents that.
func (d FilterDriver) FetchesLFS() bool {
	command := cmp.Or(d["process"], d["smudge"]) // git prefers process
	return d.LFS() && command != "" && !strings.Contains(command, " --skip") && !isTrue(os.Getenv("GIT_LFS_SKIP_SMUDGE"))
}

// lfsCommands lists the commands that git-lfs installs, including those of --skip-smudge.
var lfsCommands = map[string][]string{
	"clean":   {"git-lfs clean -- %f"},
	"smudge":  {"git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"},
	"process": {"git-lfs filter-process", "git-lfs filter-process --skip"},
}

// commands lists a driver's options that name programs.
var commands = [...]string{"clean", "smudge", "process"}

// FilterDriver is a [filter "name"] section of the configuration: values by option.
type FilterDriver map[string]string

// Active reports whether the driver runs a program.
func (d FilterDriver) Active() bool {
	return d["clean"] != "" || d["smudge"] != "" || d["process"] != ""
}

// OwnFilter returns the key of a filter's command in the repository's own configuration, which is
// copied with a checkout. It returns "" if the filter comes from the user's or the system's
// configuration.
func (s *Settings) OwnFilter(name string) (key string) {
	for _, option := range commands {
		key := "filter." + name + "." + option
		if s.ownFilterKeys[key] && s.Filters[name][option] != "" {
			return key
		}
	}
	return ""
}

// variable is one setting. key is in git's canonical form: section and name in lower case, the
// subsection as written.
type variable struct {
	key, value   string
	hasValue     bool // false for a name without a value, which means true
	ofRepository bool // from the repository's own configuration, or a file that it includes
}

// wantedVariables matches the settings that agent-ci reads.
const wantedVariables = `^(core|extensions|index|filter|remote|branch|url|submodule|include|includeif)\.`

// readConfig reads the checkout's configuration, with all files and includes. It returns an
// *UnsupportedError for a file that is in the work tree: the agent's commands could change it, and
// so make git start programs.
func readConfig(ctx context.Context, l Layout, git program.Program, home string) ([]variable, error) {
	vars, err := l.readVariables(ctx, git, home, "--get-regexp", wantedVariables)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(vars, func(v variable) bool { return v.ofRepository }) {
		return vars, nil
	}
	// git silently ignores the repository's own file if it does not know its format.
	own, err := l.readVariables(ctx, git, home, "--file", filepath.Join(l.CommonDir, "config"), "--get-regexp", `^(core\.repositoryformatversion|extensions\..*)$`)
	if err != nil {
		return nil, err
	}
	s := newSettings(own, "")
	return vars, s.checkExtensions()
}

// readVariables reads settings with `git config`. No match is no error. It returns a *program.UnusableError without
// a usable git.
func (l Layout) readVariables(ctx context.Context, git program.Program, home string, args ...string) ([]variable, error) {
	if err := l.requireRegularFiles(); err != nil {
		return nil, err
	}
	out, err := git.CheckedConfig(ctx, l.Root, append([]string{"-z", "--show-scope", "--show-origin"}, args...)...)
	if errors.Is(err, program.ErrBlockedConfig) {
		return nil, &UnsupportedError{Feature: "a configuration that git does not finish reading", Remedy: program.BlockedConfigRemedy}
	}
	if program.ExitStatus(err) == 128 { // such as a mistake in a file
		return nil, &UnsupportedError{Feature: fmt.Sprintf("a configuration that git cannot read (%v)", err), Remedy: "correct the file that git names"}
	}
	if errors.As(err, new(*program.UnusableError)) {
		return nil, err
	}
	if err != nil && program.ExitStatus(err) != 1 { // 1: no setting matches
		return nil, fmt.Errorf("read git's configuration: %w", err)
	}
	return l.parseConfig(out, home)
}

// parseConfig parses the output of git config -z --show-scope --show-origin. It repeats scope, file and
// setting, such as "local\x00file:.git/config\x00core.bare\nfalse\x00". parseConfig returns an *UnsupportedError for files and includes that commands in the
// checkout could change.
func (l Layout) parseConfig(out []byte, home string) ([]variable, error) {
	items := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	vars, from := make([]variable, 0, len(items)/3), ""
	var err error
	for ; len(items) >= 3; items = items[3:] {
		key, value, valued := strings.Cut(string(items[2]), "\n")
		if file, ok := strings.CutPrefix(string(items[1]), "file:"); ok && from != absolute(l.Root, file) {
			from = absolute(l.Root, file)
			err = l.requireConfigOutside(from)
		}
		if err == nil && isInclude(key) {
			err = l.requireConfigOutside(absolute(filepath.Dir(from), expandHome(value, home)))
		}
		if err != nil {
			return nil, err
		}
		scope := string(items[0])
		vars = append(vars, variable{key: key, value: value, hasValue: valued, ofRepository: scope == "local" || scope == "worktree"})
	}
	return vars, nil
}

// isInclude reports whether a variable includes a file, possibly on a condition.
func isInclude(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// requireConfigOutside returns an *UnsupportedError for a configuration file that commands in the checkout
// could change or create.
func (l Layout) requireConfigOutside(path string) error {
	path = filepath.Clean(path)
	if pathname.IsInAny(path, l.GitDir, l.CommonDir) || !program.LeadsThrough(path, l.Root) {
		return nil
	}
	return &UnsupportedError{
		Feature: fmt.Sprintf("git's configuration in the checkout (%s), where the agent could change it", path),
		Remedy:  "keep it outside, and take it out of include.path, HOME or GIT_CONFIG_GLOBAL",
	}
}

// Required reports whether git fails if the driver fails.
func (d FilterDriver) Required() bool { return isTrue(d["required"]) }

// newSettings returns the settings after applying vars in order. home replaces "~" in paths.
func newSettings(vars []variable, home string) Settings {
	s := Settings{
		extensions: map[string]string{}, ownFilterKeys: map[string]bool{},
		FileRules: FileRules{FileMode: true, Symlinks: true, TrustCtime: true, Filters: map[string]FilterDriver{}},
		Remotes:   Remotes{urls: map[string][]string{}, pushURLs: map[string][]string{}, pushRemotes: map[string]string{}},
	}
	for _, v := range vars {
		s.set(v)
	}
	s.excludesFile = expandHome(s.excludesFile, home)
	s.attributesFile = expandHome(s.attributesFile, home)
	return s
}

// useDefaultRules sets the default paths of the user's ignore and attribute rules, if none are
// configured.
func (s *Settings) useDefaultRules() {
	dir := filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(os.Getenv("HOME"), ".config")), "git")
	s.excludesFile = cmp.Or(s.excludesFile, filepath.Join(dir, "ignore"))
	s.attributesFile = cmp.Or(s.attributesFile, filepath.Join(dir, "attributes"))
}

// splitKey splits SECTION.SUBSECTION.NAME. The subsection is "" if missing, and may contain dots.
func (v variable) splitKey() (section, subsection, name string) {
	section, rest, _ := strings.Cut(v.key, ".")
	dot := strings.LastIndexByte(rest, '.')
	return section, rest[:max(dot, 0)], rest[dot+1:]
}

// set applies a setting. A later one overrides an earlier one, except for the address of origin,
// where the first counts.
func (s *Settings) set(v variable) {
	section, subsection, name := v.splitKey()
	switch section {
	case "core":
		s.setCore(name, v)
	case "extensions":
		s.extensions[name] = strings.ToLower(v.value)
	case "index":
		s.sparse = s.sparse || name == "sparse" && v.bool()
	case "filter":
		s.setFilter(subsection, name, v)
	case "remote":
		s.setRemote(subsection, name, v)
		s.keepForCommands(name, v)
	case "branch":
		if name == "pushremote" {
			s.pushRemotes[subsection] = v.value
		}
		s.keepForCommands(name, v)
	case "url":
		s.rewritesURLs, s.rewritesPush = s.rewritesURLs || name == "insteadof", s.rewritesPush || name == "pushinsteadof"
	case "submodule":
		s.keepForCommands(name, v)
	}
}

// setCore applies a variable of the section core.
func (s *Settings) setCore(name string, v variable) {
	flag := map[string]*bool{
		"bare": &s.bare, "sparsecheckout": &s.sparse, "filemode": &s.FileMode, "symlinks": &s.Symlinks,
		"ignorecase": &s.IgnoreCase, "precomposeunicode": &s.Precompose, "trustctime": &s.TrustCtime,
	}[name]
	text := map[string]*string{"worktree": &s.worktree, "excludesfile": &s.excludesFile, "attributesfile": &s.attributesFile}[name]
	switch {
	case flag != nil:
		*flag = v.bool()
	case text != nil:
		*text = v.value
	case name == "hookspath":
		s.hasHooksPath = v.value != ""
	case name == "repositoryformatversion":
		s.formatVersion, _ = strconv.Atoi(v.value) // a value that is no number becomes 0
	case name == "autocrlf":
		s.autoCRLF = v.boolOr("input")
	case name == "eol":
		s.eol = strings.ToLower(v.value)
	case name == "checkstat":
		s.MinimalStat = strings.EqualFold(v.value, "minimal")
	case name == "logallrefupdates":
		s.noReflog = !strings.EqualFold(v.value, "always") && !v.bool()
	}
}

// setFilter applies an option of a filter driver, and notes whether it is from the repository's own
// configuration.
func (s *Settings) setFilter(driver, name string, v variable) {
	if s.Filters[driver] == nil {
		s.Filters[driver] = FilterDriver{}
	}
	s.Filters[driver][name] = v.text()
	s.ownFilterKeys[v.key] = s.ownFilterKeys[v.key] || v.ofRepository
}

// setRemote applies an option of a remote.
func (s *Settings) setRemote(remote, name string, v variable) {
	switch name {
	case "url":
		s.urls[remote] = append(s.urls[remote], v.value)
		if remote == "origin" && s.Origin == "" {
			s.Origin = withoutCredentials(v.value)
		}
	case "pushurl":
		s.pushURLs[remote] = append(s.pushURLs[remote], v.value)
	case "pushdefault":
		s.pushRemotes[""] = v.value
	case "fetch":
		s.Fetch = append(s.Fetch, v.value)
	case "promisor":
		if v.bool() {
			s.promisor = remote
		}
	case "partialclonefilter":
		s.promisor = remote
	}
}

// Covers reports whether a path or a folder above it is in set.
func (s *Settings) Covers(set map[string]bool, name string) bool {
	if len(set) == 0 {
		return false
	}
	for name = s.SameName(name); name != "."; name = path.Dir(name) {
		if set[name] {
			return true
		}
	}
	return false
}

// FilterNames returns the sorted names of filters with programs.
func (s *Settings) FilterNames() (names []string) {
	for name, driver := range s.Filters {
		if driver.Active() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Attributes maps the attributes of a path to "set", "unset" or a value, like `git check-attr`.
// Unspecified attributes are missing.
type Attributes map[string]string

// Text returns an attribute's value, or "" if it is only set or unset.
func (a Attributes) Text(name string) string {
	if value := a[name]; value != "set" && value != "unset" {
		return value
	}
	return ""
}

// FilterOf returns the name of the filter in attrs, if the filter runs a program or is required.
// Otherwise it returns "".
func (s *Settings) FilterOf(attrs Attributes) string {
	name := attrs.Text("filter")
	if driver := s.Filters[name]; driver.Active() || driver.Required() {
		return name
	}
	return ""
}

// NeedsGit reports whether only git can convert a file with these attributes. Filters do not count,
// because agent-ci runs them itself.
func (s *Settings) NeedsGit(attrs Attributes) bool {
	encoding := attrs.Text("working-tree-encoding")
	return encoding != "" && !strings.EqualFold(encoding, "utf-8") || attrs["ident"] == "set"
}

// ConvertsLines reports whether git may change the line endings of a file with these attributes, on
// checkout or on commit.
func (s *Settings) ConvertsLines(attrs Attributes) bool {
	if attrs["text"] == "unset" {
		return false
	}
	return s.autoCRLF == "true" || s.autoCRLF == "input" || attrs["text"]+attrs["crlf"]+attrs["eol"] != ""
}

// AddsCR reports whether git may check out a file with these attributes with CRLF.
func (s *Settings) AddsCR(attrs Attributes) bool {
	return s.ConvertsLines(attrs) && (s.autoCRLF == "true" || s.eol == "crlf" || attrs["eol"] == "crlf")
}

// SameName returns the same spelling for all names that the file system treats as equal.
func (s *Settings) SameName(name string) string {
	if s.Precompose {
		name = norm.NFC.String(name)
	}
	if s.IgnoreCase {
		name = strings.ToLower(name)
	}
	return name
}

// text returns the value, or "true" for a name without a value.
func (v variable) text() string {
	if !v.hasValue {
		return "true"
	}
	return v.value
}

// bool returns the value as a boolean. A name without a value is true.
func (v variable) bool() bool { return !v.hasValue || isTrue(v.value) }

// isTrue parses a boolean like git. It returns false for any other text.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && n != 0
}

// boolOr returns word if the value is word, and otherwise "true" or "false".
func (v variable) boolOr(word string) string {
	if strings.EqualFold(v.value, word) {
		return word
	}
	return strconv.FormatBool(v.bool())
}

// expandHome replaces a leading "~/" by the home folder.
func expandHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// withoutCredentials removes user, password, query and fragment from a URL. The user of an ssh URL
// stays. An address that is no URL, such as user@host:path, has no secret and stays.
func withoutCredentials(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	u, err := url.Parse(address)
	if err == nil { // otherwise the user is removed from the text, below
		if scheme == "ssh" && u.User != nil {
			u.User = url.User(u.User.Username())
		} else {
			u.User = nil
		}
		u.RawQuery, u.Fragment = "", ""
		return u.String()
	}
	host, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
}

// checkSupported returns an error for settings with which a run would have a wrong result. It is called
// before any change.
func (s *Settings) checkSupported(l Layout) error {
	workTree := l.Root
	if s.worktree != "" {
		workTree = absolute(l.GitDir, s.worktree)
	}
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
	case workTree != l.Root && realPath(workTree) != l.Root:
		return &UnsupportedError{
			Feature: "core.worktree naming another folder", Remedy: "run in the folder that core.worktree names, or unset it",
		}
	}
	return errors.Join(requireRegular(s.excludesFile, s.attributesFile), s.checkExtensions())
}

func sparseCheckout() error {
	return &UnsupportedError{
		Feature: "a sparse checkout", Remedy: "run `git sparse-checkout disable` (in actions/checkout: no `sparse-checkout`)",
	}
}

// checkExtensions returns an *UnsupportedError for a repository format or extension that
// agent-ci does not know. gitrepository-layout(5) forbids work on such a repository.
func (s *Settings) checkExtensions() error {
	if s.formatVersion > 1 {
		return &UnsupportedError{
			Feature: fmt.Sprintf("repository format version %d", s.formatVersion), Remedy: "clone the repository with the default format",
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.extensions)) {
		value := s.extensions[name]
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
			continue // git ignores it
		}
		return &UnsupportedError{
			Feature: "the repository extension " + name, Remedy: "clone the repository with the default format",
		}
	}
	return nil
}

// realPath resolves the symbolic links of a path. It returns a missing path unchanged.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
