package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// loginShells are the shells whose login files may set PATH anew, as
// /etc/profile of most systems does.
var loginShells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}

// withPrograms lets the script of a login shell find the programs of folder at
// the end of its PATH, as other commands do: what the shell's own files set
// comes first. Other commands stay as they are.
func withPrograms(argv []string, folder string) []string {
	i := loginScript(argv)
	if folder == "" || i < 0 {
		return argv
	}
	argv = slices.Clone(argv)
	argv[i] = "PATH=\"$PATH\":'" + strings.ReplaceAll(folder, "'", `'\''`) + "'; " + argv[i]
	return argv
}

// loginScript is the index of the script that a login shell is to run, or -1.
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
			if strings.Contains(arg, "c") && login && i+2 < len(argv) {
				return i + 2
			}
		}
	}
	return -1
}
