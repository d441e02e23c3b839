//go:build unix

package stage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// LookPath finds a program like a command with env in dir would, independent of agent-ci's own
// PATH. It skips relative folders, because the checkout would then choose the program. The error is
// an exec.ErrNotFound.
func LookPath(name, dir string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.Contains(name, "/") {
		return filepath.Join(dir, name), nil
	}
	for _, folder := range filepath.SplitList(Variable(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q: %w", name, exec.ErrNotFound)
}

// Variable returns the last value of a variable in an environment, like programs do, or "".
func Variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value
		}
	}
	return ""
}
