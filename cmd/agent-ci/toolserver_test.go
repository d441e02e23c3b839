package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var toolServerCommands = map[string]func(*testscript.TestScript, bool, []string){
	"toolserver": placeToolServer,
	"serving":    startToolServer,
}

var buildToolServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "toolserver")
	build := exec.Command("go", "build", "-o", path, "./testdata/toolserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build toolserver: %w\n%s", err, out)
	}
	return path, nil
})

// placeToolServer puts the server of testdata/toolserver on the PATH: toolserver.
func placeToolServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: toolserver")
	}
	built, err := buildToolServer()
	ts.Check(err)
	raw, err := os.ReadFile(built)
	ts.Check(err)
	folder := filepath.Join(ts.Getenv("HOME"), "bin")
	ts.Check(os.MkdirAll(folder, 0o755))
	ts.Check(os.WriteFile(filepath.Join(folder, "toolserver"), raw, 0o755))
	ts.Setenv("PATH", folder+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// startToolServer starts the server at an address, which the variable names: serving VARIABLE
// FLAG...
func startToolServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serving VARIABLE FLAG...")
	}
	built, err := buildToolServer()
	ts.Check(err)
	said := filepath.Join(ts.MkAbs("."), "address-"+args[0])
	server := exec.Command(built, append([]string{"-http", "127.0.0.1:0", "-say", said}, args[1:]...)...)
	ts.Check(server.Start())
	ts.Defer(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for range 500 {
		if raw, err := os.ReadFile(said); err == nil && len(raw) > 0 {
			ts.Setenv(args[0], string(raw))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("the server does not say its address")
}
