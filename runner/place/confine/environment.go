package confine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
)

// env is the environment that commands see: an allow list, and what the job adds.
func (s *Sandboxes) env() []string {
	return policy.Environment(s.Environ, s.Job.Policy.Env.Pass, s.Job.Policy.Env.Set)
}

// AgentEnv is the environment of an agent's commands, which find the programs of
// ProgramsFolder where nothing else has their names.
func (s *Sandboxes) AgentEnv(p Place) []string {
	env, folder := s.envAt(s.Seen(p)), s.Record.Join(ProgramsFolder)
	i := slices.IndexFunc(env, func(variable string) bool { return strings.HasPrefix(variable, "PATH=") && variable != "PATH=" })
	if i >= 0 && !strings.ContainsRune(folder, os.PathListSeparator) {
		env[i] += string(os.PathListSeparator) + folder
	}
	return env
}

// LinkProgram puts this program, which knows its other names, where the agent's
// commands find it. They have other ways if that fails.
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

// envAt is the environment of commands that work on a tree. Where that is not the
// checkout, what names the checkout names the tree: the agent may have put
// anything there, and a check that looks for its programs in it would judge
// itself.
func (s *Sandboxes) envAt(tree string) []string {
	env := s.env()
	if tree == s.Root {
		return env
	}
	for i, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		for _, spelled := range s.spellings() {
			value = renamed(value, spelled, tree)
		}
		if name == "PATH" {
			value = withoutDetours(value, s.Root)
		}
		env[i] = name + "=" + value
	}
	return env
}

// spellings are the names of the checkout by which agent-ci was started.
func (s *Sandboxes) spellings() []string {
	names := []string{s.Root}
	for _, name := range []string{s.Dir, s.Environ.Get("GITHUB_WORKSPACE"), s.Environ.Get("PWD")} {
		real, err := filepath.EvalSymlinks(name)
		if err == nil && real == s.Root && filepath.IsAbs(name) {
			names = append(names, filepath.Clean(name))
		}
	}
	return names
}

// renamed has the path from, and those below it, at to instead, wherever they
// stand in a text.
func renamed(text, from, to string) string {
	var b strings.Builder
	for done := 0; ; {
		at := strings.Index(text[done:], from)
		if at < 0 {
			return b.String() + text[done:]
		}
		at += done
		end := at + len(from)
		b.WriteString(text[done:at])
		if at > 0 && (text[at-1] == '/' || inName(text[at-1])) || end < len(text) && inName(text[end]) {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		done = end
	}
}

func inName(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutDetours is PATH without the folders that lead to the checkout by links.
func withoutDetours(path, checkout string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		return filepath.IsAbs(dir) && gitops.PathOutside(dir, checkout) == ""
	}), string(filepath.ListSeparator))
}
