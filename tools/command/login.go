package command

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shellword"
)

// loginShells lists the shells whose login files may reset PATH, as most versions of /etc/profile do.
var loginShells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}

// withPrograms returns the command line of a login shell with a script that first appends folder to PATH, because the
// shell's login files may have reset PATH. It returns other command lines unchanged.
func withPrograms(argv []string, folder string) []string {
	i := loginScript(argv)
	if folder == "" || i < 0 {
		return argv
	}
	argv = slices.Clone(argv)
	argv[i] = "PATH=\"$PATH\":" + shellword.Quote(folder) + "; " + argv[i]
	return argv
}

// loginScript returns the index of the script in the command line of a login shell, such as 2 in "bash -lc SCRIPT" and
// 3 in "bash --login -c SCRIPT". It returns -1 for other command lines.
func loginScript(argv []string) int {
	if len(argv) == 0 || !slices.Contains(loginShells, filepath.Base(argv[0])) {
		return -1
	}
	login := false
	for i, arg := range argv[1:] {
		switch {
		case arg == "--login":
			login = true
		case !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--"):
			return -1
		default:
			login = login || strings.Contains(arg, "l")
			script := i + 2 // the argument after arg, which is argv[i+1]
			if strings.Contains(arg, "c") && login && script < len(argv) {
				return script
			}
		}
	}
	return -1
}
