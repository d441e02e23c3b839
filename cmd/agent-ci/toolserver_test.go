package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"

	"github.com/rogpeppe/go-internal/testscript"
)

var toolServerCommands = map[string]func(*testscript.TestScript, bool, []string){
	"toolserver": usage("", placeToolServer),
	"serving":    usage("VARIABLE [FLAG...]", startToolServer),
}

// placeToolServer puts the server of testdata/toolserver on the PATH: toolserver.
func placeToolServer(ts *testscript.TestScript, _ []string) {
	folder, err := copyToolServer(ts.Getenv("HOME"))
	ts.Check(err)
	ts.Setenv("PATH", folder+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// copyToolServer puts the server into the folder bin of a user's folder, where sandboxes see it.
func copyToolServer(home string) (folder string, err error) {
	built, err := helper("toolserver")
	if err != nil {
		return "", err
	}
	raw, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	folder = filepath.Join(home, "bin")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "toolserver"), raw, 0o755)
}

// homeWithToolServer is a user's folder with the server in bin.
func homeWithToolServer(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	must.Do(t, must.Err(copyToolServer(home)))
	return home
}

// startToolServer starts the server at an address, which the variable names: serving VARIABLE
// FLAG...
func startToolServer(ts *testscript.TestScript, args []string) {
	built, err := helper("toolserver")
	ts.Check(err)
	server := exec.Command(built, append([]string{"-http", "127.0.0.1:0"}, args[1:]...)...)
	out, err := server.StdoutPipe()
	ts.Check(err)
	ts.Check(server.Start())
	ts.Defer(func() { _ = server.Process.Kill(); _ = server.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	ts.Setenv(args[0], strings.TrimSpace(address))
}
