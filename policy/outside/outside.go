// Package outside starts the programs that run outside of any sandbox. No other package of agent-ci
// starts one. Each place that starts a program does so as one Use of a list, which docs/internals/security.md
// shows. The package knows nothing of repositories, runs and sandboxes.
package outside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Command returns a program that the caller starts. The program is not looked for: path is absolute,
// and so is dir. Of env it gets what the use lists. What breaks the use's row of the list fails at the
// start.
func (u *Use) Command(ctx context.Context, path, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, u.passed(env)
	cmd.Err = errors.Join(cmd.Err, u.Note(path, dir, env, args...))
	return cmd
}

// Note checks a start that Command does not make, and notes it for tests.
func (u *Use) Note(path, dir string, env []string, args ...string) error {
	switch {
	case !slices.Contains(Uses(), u):
		return fmt.Errorf("start %s: it is no use of the list", path)
	case !filepath.IsAbs(path) || !filepath.IsAbs(dir):
		return fmt.Errorf("start %s in %q: both have to be absolute", path, dir)
	case u.Commands != nil && !slices.Contains(u.Commands, commandOf(args)):
		return fmt.Errorf("start %s %s: %s has no such command", path, commandOf(args), u.Name)
	case u.Folder == Root && dir != Root:
		return fmt.Errorf("start %s in %s: %s is started in %s", path, dir, u.Name, Root)
	}
	return u.audit(path, dir, env, args)
}

// commandOf returns the command among the arguments of git, which options with -c may come before.
func commandOf(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// passed returns the variables of env that the use lists. It is never nil: a nil environment is
// that of this process.
func (u *Use) passed(env []string) []string {
	all := make([]string, 0, len(env))
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if u.gets(name) {
			all = append(all, variable)
		}
	}
	return all
}

// gets reports whether a variable is of those that the use lists.
func (u *Use) gets(name string) bool {
	return u.Takes(name) || slices.ContainsFunc(u.Set, func(listed string) bool { return matches(name, listed) })
}

// matches reports whether a listed name, of which an asterisk at its end stands for any ending, is that
// of a variable.
func matches(name, listed string) bool {
	prefix, open := strings.CutSuffix(listed, "*")
	return name == listed || open && strings.HasPrefix(name, prefix)
}

// Find returns the absolute path of a program, found as a shell in dir does: a name with a slash is a path from
// dir, another one is looked for in the folders of PATH. Relative folders of PATH are left out, because they
// let dir choose the program. The error is an exec.ErrNotFound or an fs.ErrNotExist.
func Find(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var list string
	for _, variable := range env {
		if value, is := strings.CutPrefix(variable, "PATH="); is {
			list = value
		}
	}
	for _, folder := range filepath.SplitList(list) {
		if path := filepath.Join(folder, name); filepath.IsAbs(folder) && executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q: %w", name, exec.ErrNotFound)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
		err = &fs.PathError{Op: "start", Path: path, Err: fs.ErrPermission}
	}
	return err
}
