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

// path returns PATH for hooks, without the folders that the run's commands can write.
func (p SandboxProvider) path() string {
	return confine.PathWithoutFolders(p.Environ.Get("PATH"), p.WritableByCommands)
}

// argv returns a hook's program and arguments. A relative program is looked up in tree, the folder with the base
// commit's tree. argv returns an error if the hook names a file that the run's commands can write.
func (h Hook) argv(provider SandboxProvider, tree string) ([]string, error) {
	argv := h.expandedWords(provider)
	for _, word := range argv {
		for _, name := range pathsIn(word) {
			if provider.leadsToWritable(name, tree) {
				return nil, fmt.Errorf("%q names a file that the agent's commands may write; name it by its path in the repository, and the one of the base commit is taken", shorten(word))
			}
		}
	}
	program := filepath.FromSlash(argv[0])
	switch {
	case filepath.IsAbs(program): // keep it
	case isBareName(argv[0]):
		found, err := provider.find(program)
		if err != nil {
			return nil, err
		}
		if confine.PointsInto(found, provider.WritableByCommands) {
			return nil, fmt.Errorf("its program %s leads to a file that the agent's commands may write: %s", program, found)
		}
		argv[0] = found
	case strings.HasPrefix(program, "~/"):
		return nil, fmt.Errorf("HOME is not set, below which its program %s is", program)
	case !filepath.IsLocal(program):
		return nil, fmt.Errorf("its program %s is outside of the repository; name it by an absolute path", argv[0])
	default:
		argv[0] = filepath.Join(tree, program)
	}
	return argv, nil
}

// isBareName reports whether a program is looked up in PATH.
func isBareName(program string) bool { return !strings.Contains(program, "/") }

// expandedWords returns the hook's command line with ~ replaced by the user's folder.
func (h Hook) expandedWords(provider SandboxProvider) []string {
	words := slices.Clone(h.Run)
	for i := range words {
		words[i] = job.ExpandHome(words[i], provider.Environ.Home())
	}
	return words
}

// find looks up a program in the hooks' PATH.
func (p SandboxProvider) find(program string) (string, error) {
	for _, dir := range filepath.SplitList(p.path()) {
		if found := filepath.Join(dir, program); requireExecutable(found) == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH, of which hooks see neither what setup commands installed nor what commands may write", program)
}

// pathsIn returns the possible paths in a word of a command line: the word itself, the value of an option or variable,
// or the members of a list. For a word with blanks, which is a script, it returns none.
func pathsIn(word string) (all []string) {
	if strings.ContainsAny(word, " \t\n") {
		return nil
	}
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return r == '=' || r == ':' || r == ',' }) {
		slash := strings.Index(part, "/")
		if strings.HasPrefix(part, "-") && slash > 0 { // an option such as -I/usr/include
			part = part[slash:]
		}
		all = append(all, part)
	}
	return all
}

// leadsToWritable reports whether a path leads, after resolving links, into a folder that the run's commands can
// write. A relative path is looked up in tree, the folder with the base commit's tree.
func (p SandboxProvider) leadsToWritable(name, tree string) bool {
	if filepath.IsAbs(name) {
		return confine.PointsInto(name, p.WritableByCommands)
	}
	real, err := filepath.EvalSymlinks(tree + string(filepath.Separator) + filepath.FromSlash(name))
	if err != nil { // a missing file is harmless
		return false
	}
	if base, err := filepath.EvalSymlinks(tree); err == nil && pathname.IsInAny(real, base) {
		return false
	}
	return confine.PointsInto(real, p.WritableByCommands)
}

// RequireStartable returns an error if the hook cannot start, as far as its files show. tree is the folder with the
// base commit's tree.
func (h Hook) RequireStartable(provider SandboxProvider, tree string) error {
	argv, err := h.argv(provider, tree)
	if err != nil {
		return err
	}
	if isBareName(h.Run[0]) { // argv found the program in PATH, so only an interpreter's script can be missing
		script := job.ScriptOf(h.expandedWords(provider))
		if script == "" {
			return nil
		}
		if _, err := os.Stat(filepath.Join(tree, filepath.FromSlash(script))); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("its script %s: there is no such file in the base commit", script)
		}
		return nil
	}
	if err := requireExecutable(argv[0]); err != nil {
		return fmt.Errorf("its program %s: %w", h.Run[0], err)
	}
	return nil
}

// requireExecutable returns an error unless name is a file that can be executed.
func requireExecutable(name string) error {
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
