package repository

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/gcfg"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// configFiles reads git's configuration where there is no git: the files of
// the system, the user and the repository, and what they include.
type configFiles struct {
	Layout
	getenv func(string) string
}

const deepestInclude = 10 // as in git

func (c configFiles) read() ([]variable, error) {
	var vars []variable
	for _, path := range c.paths() {
		more, err := c.readFile(path, 0)
		if err != nil {
			return nil, fmt.Errorf("read git's configuration: %w", err)
		}
		for i := range more {
			more[i].own = more[i].ofFilter() && (path == c.common() || path == c.worktree())
		}
		vars = append(vars, more...)
	}
	return append(vars, c.fromEnvironment()...), nil
}

func (c configFiles) paths() []string {
	var paths []string
	if !isTrue(c.getenv("GIT_CONFIG_NOSYSTEM")) {
		paths = append(paths, cmp.Or(c.getenv("GIT_CONFIG_SYSTEM"), "/etc/gitconfig"))
	}
	if global := c.getenv("GIT_CONFIG_GLOBAL"); global != "" {
		paths = append(paths, global)
	} else {
		paths = append(paths, filepath.Join(configHome(c.getenv), "git", "config"))
		paths = append(paths, filepath.Join(c.getenv("HOME"), ".gitconfig"))
	}
	return append(paths, c.common(), c.worktree())
}

// common and worktree are the files of the repository's own configuration.
func (c configFiles) common() string { return filepath.Join(c.CommonDir, "config") }

// worktree is there only with extensions.worktreeConfig.
func (c configFiles) worktree() string { return filepath.Join(c.GitDir, "config.worktree") }

func configHome(getenv func(string) string) string {
	return cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(getenv("HOME"), ".config"))
}

func (c configFiles) fromEnvironment() []variable {
	n, _ := strconv.Atoi(c.getenv("GIT_CONFIG_COUNT")) // unset or broken: none
	var vars []variable
	for i := range min(n, 1000) {
		key := c.getenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i))
		vars = append(vars, variable{key: canonicalKey(key), value: c.getenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)), valued: true})
	}
	return vars
}

// canonicalKey lowers all but the part between the first and the last dot.
func canonicalKey(key string) string {
	start, end := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if start == end {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:start]) + key[start:end] + strings.ToLower(key[end:])
}

func (c configFiles) readFile(path string, depth int) ([]variable, error) {
	if depth > deepestInclude {
		return nil, fmt.Errorf("%s: includes are nested too deep", path)
	}
	f, err := regularfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := c.configOutside(path); err != nil {
		return nil, err
	}
	return c.parse(io.LimitReader(f, regularfile.Small), path, depth)
}

func (c configFiles) parse(r io.Reader, path string, depth int) ([]variable, error) {
	var vars []variable
	err := gcfg.ReadWithCallback(r, func(section, middle, name, value string, blank bool) error {
		if name == "" {
			return nil
		}
		if included, ok := c.include(path, section, middle, name, value); ok {
			if err := c.configOutside(included); err != nil {
				return err
			}
			more, err := c.readFile(included, depth+1)
			vars = append(vars, more...)
			return err
		}
		key := strings.ToLower(section) + "." + strings.ToLower(name)
		if middle != "" {
			key = strings.ToLower(section) + "." + middle + "." + strings.ToLower(name)
		}
		vars = append(vars, variable{key: key, value: value, valued: !blank})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return vars, nil
}

// include returns the file that a line includes, if it includes one and its
// condition holds.
func (c configFiles) include(path, section, condition, name, value string) (string, bool) {
	if !strings.EqualFold(name, "path") {
		return "", false
	}
	included := absolute(filepath.Dir(path), expandHome(value, c.getenv("HOME")))
	switch strings.ToLower(section) {
	case "include":
		return included, condition == ""
	case "includeif":
		return included, c.holds(condition, filepath.Dir(path))
	}
	return "", false
}

func (c configFiles) holds(condition, dir string) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	switch kind {
	case "gitdir":
		return c.gitDirMatches(pattern, dir, false)
	case "gitdir/i":
		return c.gitDirMatches(pattern, dir, true)
	case "onbranch":
		head, err := readHead(c.GitDir)
		branch, ok := strings.CutPrefix(head, "ref: refs/heads/")
		return err == nil && ok && rules.MatchPath(openEnded(pattern), branch, false)
	}
	return false
}

func (c configFiles) gitDirMatches(pattern, dir string, fold bool) bool {
	pattern = expandHome(pattern, c.getenv("HOME"))
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = filepath.Join(dir, rest)
	}
	if !filepath.IsAbs(pattern) {
		pattern = "**/" + pattern
	}
	return rules.MatchPath(openEnded(pattern), c.GitDir, fold)
}

// openEnded lets a pattern that ends with a slash match everything below.
func openEnded(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}
