//go:build unix

package stage

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// LookPath finds a program like a command with env in dir would, independent of agent-ci's own
// PATH. It skips relative folders, because the checkout would then choose the program. The error is
// an exec.ErrNotFound, but not by name: os/exec and path/filepath would delay the supervisor.
func LookPath(name, dir string, env []string) (string, error) {
	if path.IsAbs(name) {
		return name, nil
	}
	if strings.Contains(name, "/") {
		return path.Join(dir, name), nil
	}
	for _, folder := range strings.Split(Variable(env, "PATH"), ":") {
		if !path.IsAbs(folder) {
			continue
		}
		program := path.Join(folder, name)
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return program, nil
		}
	}
	return "", fmt.Errorf("%q: %w", name, notFound{})
}

// notFound is equal to exec.ErrNotFound for errors.Is.
type notFound struct{}

func (notFound) Error() string        { return "executable file not found in $PATH" }
func (notFound) Is(target error) bool { return target.Error() == notFound{}.Error() }

// Variable returns the last value of a variable in an environment, like programs do, or "".
func Variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value
		}
	}
	return ""
}
