package confine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/record"
)

// env is the environment that commands see: an allow list, and what the job adds.
func (s *Sandboxes) env() []string {
	return policy.Environment(s.Environ, s.Job.Policy.Env.Pass, s.Job.Policy.Env.Set)
}

// AgentEnv is the environment of the agent's commands, which find the programs of
// ProgramsFolder where nothing else has their names.
func (s *Sandboxes) AgentEnv() []string {
	env, folder := s.env(), s.Record.Join(ProgramsFolder)
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

// EndLeft ends what the commands of a killed run left running, and waits for the end of
// its sandboxes: a layer is in one mount at a time.
func EndLeft(ctx context.Context, d *record.Directory) error {
	endLeftProcesses(d)
	overlays, _ := fs.Glob(d.Root().FS(), ScratchFolder+"/*/"+overlayFolder)
	for _, name := range overlays {
		if err := layer.Await(ctx, d.Join(name)); err != nil {
			return failure(sandbox.Options{}, err)
		}
	}
	return nil
}

// endLeftProcesses kills what the commands of a killed run left running: they have
// its folder of programs on their PATH. Where there is no /proc they died with the
// run, or stay.
func endLeftProcesses(d *record.Directory) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue // no process, or none of the run's
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && ofRun(strings.Split(string(raw), "\x00"), d.Join(ProgramsFolder)) { // else it is of another user, or gone
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func ofRun(env []string, programs string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		path, is := strings.CutPrefix(variable, "PATH=")
		return is && slices.Contains(filepath.SplitList(path), programs)
	})
}
