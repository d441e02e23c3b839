package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// path returns the search path for programs.
func (r SandboxProvider) path() string {
	return confine.PathWithoutFolders(r.Environ.Get("PATH"), r.WritableByCommands)
}

// argv returns a hook's program and arguments. Relative programs are in the base tree, tree; ""
// before it exists. Hooks naming files writable by commands are refused.
func (h Hook) argv(rooms SandboxProvider, tree string) ([]string, error) {
	argv := h.expandedWords(rooms)
	for _, word := range argv {
		for _, name := range pathsIn(word) {
			if rooms.leadsToWritable(name, tree) {
				return nil, fmt.Errorf("%q names a file that the agent's commands may write; name it by its path in the repository, and the one of the base commit is taken", shorten(word))
			}
		}
	}
	program := filepath.FromSlash(argv[0])
	switch {
	case filepath.IsAbs(program):
	case !strings.Contains(argv[0], "/"):
		found, err := rooms.find(program)
		if err != nil {
			return nil, err
		}
		if confine.PointsInto(found, rooms.WritableByCommands) {
			return nil, fmt.Errorf("its program %s leads to a file that the agent's commands may write: %s", program, found)
		}
		argv[0] = found
	case strings.HasPrefix(program, "~/"):
		return nil, fmt.Errorf("HOME is not set, below which its program %s is", program)
	case !filepath.IsLocal(program):
		return nil, fmt.Errorf("its program %s is outside of the repository; name it by an absolute path", argv[0])
	case tree != "":
		argv[0] = filepath.Join(tree, program)
	}
	return argv, nil
}

// expandedWords returns the hook's words with the user's folder filled in.
func (h Hook) expandedWords(rooms SandboxProvider) []string {
	words := slices.Clone(h.Run)
	for i := range words {
		words[i] = job.ExpandHome(words[i], rooms.Environ.Get("HOME"))
	}
	return words
}

// find looks for a program.
func (r SandboxProvider) find(program string) (string, error) {
	for _, dir := range filepath.SplitList(r.path()) {
		if found := filepath.Join(dir, program); executable(found) == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH, of which hooks see neither what setup commands installed nor what commands may write", program)
}

// pathsIn returns the possible paths in a word: the word itself, after an option or variable, or in a
// list. A script is no path.
func pathsIn(word string) (all []string) {
	if strings.ContainsAny(word, " \t\n") {
		return nil
	}
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return r == '=' || r == ':' || r == ',' }) {
		if slash := strings.Index(part, "/"); slash >= 0 && strings.HasPrefix(part, "-") {
			part = part[slash:]
		}
		all = append(all, part)
	}
	return all
}

// leadsToWritable reports whether a path leads to a folder writable by commands. A relative path starts at the
// base tree.
func (r SandboxProvider) leadsToWritable(name, tree string) bool {
	if filepath.IsAbs(name) {
		return confine.PointsInto(name, r.WritableByCommands)
	}
	real, err := filepath.EvalSymlinks(tree + string(filepath.Separator) + filepath.FromSlash(name))
	if tree == "" || err != nil { // which starts nothing
		return false
	}
	if base, err := filepath.EvalSymlinks(tree); err == nil && pathname.IsInAny(real, base) {
		return false
	}
	return confine.PointsInto(real, r.WritableByCommands)
}

// RequireStartable returns visible obstacles to starting a hook; nil for none. tree is the base tree.
func (h Hook) RequireStartable(rooms SandboxProvider, tree string) error {
	argv, err := h.argv(rooms, tree)
	if err != nil {
		return err
	}
	if !strings.Contains(h.Run[0], "/") {
		if _, err := rooms.find(h.Run[0]); err != nil {
			return err
		}
		return requireScript(h.expandedWords(rooms), tree)
	}
	if err := executable(argv[0]); err != nil {
		return fmt.Errorf("its program %s: %w", h.Run[0], err)
	}
	return nil
}

// requireScript returns an error if the script of an interpreter is missing in the base tree.
func requireScript(argv []string, tree string) error {
	name := job.ScriptOf(argv)
	if name == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(tree, filepath.FromSlash(name))); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("its script %s: there is no such file in the base commit", name)
	}
	return nil
}

func executable(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable; set its mode by git update-index --chmod=+x")
	}
	return nil
}
