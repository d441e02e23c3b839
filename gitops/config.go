package gitops

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/eol"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
)

// settings is the part of git's configuration that this package follows, as it
// was when the checkout was opened.
type settings struct {
	formatVersion int
	extensions    map[string]string
	bare          bool
	worktree      string
	sparse        bool
	promisor      string // name of a remote that objects are fetched from on demand

	eol          eol.Settings
	fileMode     bool
	symlinks     bool
	ignoreCase   bool
	precompose   bool
	trustCtime   bool
	noReflog     bool
	minimalStat  bool
	excludesFile string
	attributes   string
	origin       string
	filters      map[string]filterDriver
}

// filterDriver is a [filter "name"] section: options by name, as written.
type filterDriver map[string]string

// active says that the driver runs a program.
func (d filterDriver) active() bool {
	return d["clean"] != "" || d["smudge"] != "" || d["process"] != ""
}

// variable is one line of the configuration. Key is in git's canonical form:
// section and name in lower case, the part between as written.
type variable struct {
	key, value string
	valued     bool // false: a bare name, which means true
}

// wantedVariables is what the configuration is searched for.
const wantedVariables = `^(core|extensions|index|filter|remote|include|includeif)\.`

// readConfig reads the configuration that holds for the checkout, through all
// files and includes: with git where it is there, else by itself. A file of the
// work tree among them is an *UnsupportedError: commands of the agent could have
// git start programs by it.
func readConfig(ctx context.Context, l layout, git program.Program, getenv func(string) string) ([]variable, error) {
	if !git.There() {
		return configFiles{layout: l, getenv: getenv}.read()
	}
	out, err := git.Run(ctx, l.root, nil, "config", "-z", "--show-origin", "--get-regexp", wantedVariables)
	if program.ExitStatus(err) == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read git's configuration: %w", err)
	}
	return l.listed(out, getenv("HOME"))
}

// listed reads what git config -z --show-origin writes: by turns where a variable
// stands, and the variable.
func (l layout) listed(out []byte, home string) ([]variable, error) {
	items := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	vars, from := make([]variable, 0, len(items)/2), ""
	var err error
	for ; len(items) >= 2; items = items[2:] {
		key, value, valued := strings.Cut(string(items[1]), "\n")
		if file, ok := strings.CutPrefix(string(items[0]), "file:"); ok && from != absolute(l.root, file) {
			from = absolute(l.root, file)
			err = l.configOutside(from)
		}
		if err == nil && isInclude(key) {
			err = l.configOutside(absolute(filepath.Dir(from), expandHome(value, home)))
		}
		if err != nil {
			return nil, err
		}
		vars = append(vars, variable{key, value, valued})
	}
	return vars, nil
}

// isInclude says whether a variable names a file that git reads too, perhaps on
// a condition.
func isInclude(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// configOutside refuses a file of git's configuration that commands at work in
// the checkout can change, or make.
func (l layout) configOutside(path string) error {
	path = filepath.Clean(path)
	for _, dir := range [...]string{l.gitDir, l.commonDir} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	if !program.LeadsThrough(path, l.root) {
		return nil
	}
	return &UnsupportedError{
		Feature: fmt.Sprintf("git's configuration in the checkout (%s), where the agent could change it", path),
		Remedy:  "keep it outside, and take it out of include.path, HOME or GIT_CONFIG_GLOBAL",
	}
}

func newSettings(vars []variable, home string) settings {
	s := settings{
		extensions: map[string]string{},
		fileMode:   true, symlinks: true, trustCtime: true,
		filters: map[string]filterDriver{},
	}
	for _, v := range vars {
		s.take(v)
	}
	s.excludesFile = expandHome(s.excludesFile, home)
	s.attributes = expandHome(s.attributes, home)
	return s
}

// useDefaultRules puts in where git looks for the user's own ignore and
// attribute rules when the configuration does not say.
func (s *settings) useDefaultRules(getenv func(string) string) {
	dir := filepath.Join(configHome(getenv), "git")
	s.excludesFile = first(s.excludesFile, filepath.Join(dir, "ignore"))
	s.attributes = first(s.attributes, filepath.Join(dir, "attributes"))
}

func (s *settings) take(v variable) {
	section, rest, _ := strings.Cut(v.key, ".")
	dot := strings.LastIndexByte(rest, '.')
	middle, name := rest[:max(dot, 0)], rest[dot+1:]
	switch section {
	case "core":
		s.takeCore(name, v)
	case "extensions":
		s.extensions[name] = strings.ToLower(v.value)
	case "index":
		s.sparse = s.sparse || name == "sparse" && v.bool()
	case "filter":
		s.takeFilter(middle, name, v)
	case "remote":
		s.takeRemote(middle, name, v)
	}
}

func (s *settings) takeCore(name string, v variable) {
	switch name {
	case "repositoryformatversion":
		s.formatVersion, _ = strconv.Atoi(v.value) // what is no number is refused as unknown by go-git
	case "bare":
		s.bare = v.bool()
	case "worktree":
		s.worktree = v.value
	case "sparsecheckout":
		s.sparse = v.bool()
	case "autocrlf":
		s.eol.AutoCRLF = v.boolOr("input")
	case "eol":
		s.eol.EOL = strings.ToLower(v.value)
	case "filemode":
		s.fileMode = v.bool()
	case "symlinks":
		s.symlinks = v.bool()
	case "ignorecase":
		s.ignoreCase = v.bool()
	case "precomposeunicode":
		s.precompose = v.bool()
	case "trustctime":
		s.trustCtime = v.bool()
	case "checkstat":
		s.minimalStat = strings.EqualFold(v.value, "minimal")
	case "logallrefupdates":
		s.noReflog = !strings.EqualFold(v.value, "always") && !v.bool()
	case "excludesfile":
		s.excludesFile = v.value
	case "attributesfile":
		s.attributes = v.value
	}
}

func (s *settings) takeFilter(driver, name string, v variable) {
	if s.filters[driver] == nil {
		s.filters[driver] = filterDriver{}
	}
	value := v.value
	if !v.valued {
		value = "true"
	}
	s.filters[driver][name] = value
}

func (s *settings) takeRemote(remote, name string, v variable) {
	switch name {
	case "url":
		if remote == "origin" && s.origin == "" {
			s.origin = withoutCredentials(v.value)
		}
	case "promisor":
		if v.bool() {
			s.promisor = remote
		}
	case "partialclonefilter":
		s.promisor = remote
	}
}

// bool reads a truth value as git does; what is none counts as false.
func (v variable) bool() bool {
	if !v.valued {
		return true
	}
	switch strings.ToLower(v.value) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(v.value)
	return err == nil && n != 0
}

// boolOr returns "true", "false" or the one other word that is allowed.
func (v variable) boolOr(word string) string {
	if strings.EqualFold(v.value, word) {
		return word
	}
	return strconv.FormatBool(v.bool())
}

func expandHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// withoutCredentials takes user and password out of a URL. An address of the
// form user@host:path holds no secret and stays.
func withoutCredentials(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	u, err := url.Parse(address)
	if err == nil {
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
