// Package outside starts every program outside a sandbox. Each place that starts one declares a
// Use, listed in docs/internals/security.md. Restrictions protects the files of such programs from
// commands. The package knows neither repositories nor runs nor sandboxes.
package outside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Command returns a program for the caller to start. path and dir are absolute. The program gets
// only the variables of env that the use lists. If path, dir or args do not fit the use, starting the
// program returns an error.
func (u *Use) Command(ctx context.Context, path, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, u.passedVariables(env)
	cmd.Err = errors.Join(cmd.Err, u.CheckStart(path, dir, env, args...))
	return cmd
}

// CheckStart returns an error if a start does not fit the use. Otherwise it logs the start. Call it for a
// program that Command does not start.
func (u *Use) CheckStart(path, dir string, env []string, args ...string) error {
	switch {
	case !slices.Contains(Uses(), u):
		return fmt.Errorf("start %s: it is no use of the list", path)
	case !filepath.IsAbs(path) || !filepath.IsAbs(dir):
		return fmt.Errorf("start %s in %q: both have to be absolute", path, dir)
	case u.commands != nil && !slices.Contains(u.commands, gitSubcommand(args)):
		return fmt.Errorf("start %s %s: %s has no such command", path, gitSubcommand(args), u.Name)
	case u.folder == Root && dir != Root:
		return fmt.Errorf("start %s in %s: %s is started in %s", path, dir, u.Name, Root)
	}
	return u.logStart(path, dir, env, args)
}

// gitSubcommand returns git's subcommand after any -c options, or "".
func gitSubcommand(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// passedVariables returns the variables of env listed in the use. It is never nil, because a nil environment
// would mean this process's own.
func (u *Use) passedVariables(env []string) []string {
	variables := make([]string, 0, len(env))
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if u.isListed(name) {
			variables = append(variables, variable)
		}
	}
	return variables
}

// isListed reports whether the use lists a variable.
func (u *Use) isListed(name string) bool {
	return u.Takes(name) || slices.ContainsFunc(u.set, func(listed string) bool { return matchesListed(name, listed) })
}

// matchesListed reports whether a listed name matches a variable. A final asterisk matches any ending.
func matchesListed(name, listed string) bool {
	prefix, isPrefix := strings.CutSuffix(listed, "*")
	return name == listed || isPrefix && strings.HasPrefix(name, prefix)
}

// Find returns the path of a program in the folders of a PATH, or "" if there is none. It skips relative
// folders, because files in the current folder would then choose the program.
func Find(name, searchPath string) string {
	for _, folder := range filepath.SplitList(searchPath) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
