package confine

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// volatileVariables lists prefixes of NAME=VALUE for variables that differ between runs but do not
// affect commands.
var volatileVariables = []string{"GITHUB_", "RUNNER_", "PWD=", "OLDPWD=", "SHLVL=", "_=", "TERM", "COLUMNS=", "LINES=", "TMPDIR=", "XDG_RUNTIME_DIR="}

// StableEnv returns the commands' environment without the variables that differ between runs.
// Variables that the job names stay.
func (s *Sandboxes) StableEnv() []string {
	env := s.Job.Policy.Env
	return slices.DeleteFunc(s.CommandEnv(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, isSet := env.Set[name]
		isNamed := isSet || slices.Contains(env.Pass, name) // by the job
		isVolatile := slices.ContainsFunc(volatileVariables, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
		return isVolatile && !isNamed
	})
}

// UnwritableByCommands reports whether no command of the run can write to a folder. That needs
// namespaces, and a folder outside writable and temporary folders.
func (s *Sandboxes) UnwritableByCommands(folder string) bool {
	real, err := realPath(folder)
	if err != nil || !s.AllowsConcurrent() || s.isUnconfined() {
		return false
	}
	writable := append(s.Environ.Absolute(s.Root, s.Job.Policy.Writable), s.Root, s.Record.Path(), os.TempDir())
	return !slices.ContainsFunc(writable, func(root string) bool {
		root, err := realPath(root)
		return err != nil || pathname.IsInAny(real, root)
	})
}

// realPath returns a path without links. The end of the path may be missing.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if os.IsNotExist(err) && path != filepath.Dir(path) {
		parent, err := realPath(filepath.Dir(path))
		return filepath.Join(parent, filepath.Base(path)), err
	}
	return real, err
}

// MachineID identifies the machine's software: by the runner's image, or else by the system's
// release.
func (s *Sandboxes) MachineID() []string {
	image, version := s.Environ.Get("ImageOS"), s.Environ.Get("ImageVersion")
	if image != "" || version != "" {
		return []string{runtime.GOOS, runtime.GOARCH, image, version}
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		release = nil // then only system and architecture identify it
	}
	return []string{runtime.GOOS, runtime.GOARCH, string(release)}
}
