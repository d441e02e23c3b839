package confine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
)

// AgentEnv returns the environment of the agent's commands. ProgramsFolder is at the end of its
// PATH.
func (s *Sandboxes) AgentEnv(p Place) []string {
	env, folder := s.envForTree(s.SandboxPath(p)), s.Record.Join(ProgramsFolder)
	i := slices.IndexFunc(env, func(variable string) bool { return strings.HasPrefix(variable, "PATH=") && variable != "PATH=" })
	if i >= 0 && !strings.ContainsRune(folder, os.PathListSeparator) {
		env[i] += string(os.PathListSeparator) + folder
	}
	return env
}

// LinkProgram makes agent-ci available to the agent's commands as name. A failure is only a
// warning, because commands can also find agent-ci in other ways.
func (s *Sandboxes) LinkProgram(name string) {
	program, err := os.Executable()
	if err == nil {
		_, err = s.Record.MakeFolder(ProgramsFolder)
	}
	if err == nil {
		err = s.Record.Root().Symlink(program, filepath.Join(ProgramsFolder, name))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		s.Record.Warn("no_"+name, "Commands of the agent do not find %s: %v.", name, err)
	}
}

// envForTree returns the environment for commands in a tree. Paths of the checkout become paths of
// the tree. Otherwise a check could run programs of the checkout, which the agent controls.
func (s *Sandboxes) envForTree(tree string) []string {
	env := s.CommandEnv()
	if tree == s.Root {
		return env
	}
	paths := s.checkoutPaths()
	for i, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		for _, spelled := range paths {
			value = replacePath(value, spelled, tree)
		}
		if name == "PATH" {
			value = withoutLinkedFolders(value, s.Root)
		}
		env[i] = name + "=" + value
	}
	return env
}

// checkoutPaths returns the paths of the checkout that the user's environment has, links included.
func (s *Sandboxes) checkoutPaths() []string {
	names := []string{s.Root}
	for _, name := range []string{s.Dir, s.Environ.Get("GITHUB_WORKSPACE"), s.Environ.Get("PWD")} {
		real, err := filepath.EvalSymlinks(name)
		if err == nil && real == s.Root && filepath.IsAbs(name) {
			names = append(names, filepath.Clean(name))
		}
	}
	return names
}

// replacePath replaces a path and the paths below it in a text. Longer names that only contain the
// path stay.
func replacePath(text, from, to string) string {
	var b strings.Builder
	for done := 0; ; {
		length := strings.Index(text[done:], from)
		if length < 0 {
			return b.String() + text[done:]
		}
		start := done + length
		end := start + len(from)
		b.WriteString(text[done:start])
		continuesName := start > 0 && (text[start-1] == '/' || isNameByte(text[start-1]))
		isContinued := end < len(text) && isNameByte(text[end])
		if continuesName || isContinued {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		done = end
	}
}

// isNameByte reports whether a byte may be part of a file name. It also accepts all bytes beyond
// ASCII.
func isNameByte(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutLinkedFolders returns a PATH without the absolute folders that are or lead into the checkout. Links are
// followed. Relative folders stay.
func withoutLinkedFolders(path, checkout string) string {
	outside := filepath.SplitList(gitops.SearchPathOutside(path, checkout))
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		return filepath.IsAbs(dir) && !slices.Contains(outside, dir)
	}), string(filepath.ListSeparator))
}
