package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// programs are the programs of this module that tests start, built once each.
var programs = struct {
	keeper, client, toolserver, intruder, stepper func() (string, error)
}{
	keeper:     once("keeper", "./testdata/keeper"),
	client:     once("client", "./testdata/client"),
	toolserver: once("toolserver", "./testdata/toolserver"),
	intruder:   once("intruder", "../../policy/sandbox/sandboxtest/intruder"),
	stepper:    once("stepper", "./testdata/stepper"),
}

func once(name, source string) func() (string, error) {
	return sync.OnceValues(func() (string, error) { return build(name, source) })
}

// build builds a program without cgo and returns the path of a copy beside the other
// programs of this run. The program itself stays in a folder of the build cache, where
// go build finds it unchanged the next time and neither compiles nor links.
func build(name, source string, flags ...string) (string, error) {
	folder, err := buildFolder()
	if err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	kept := filepath.Join(folder, name)
	cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false"}, flags...), "-o", kept, source)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	raw, err := os.ReadFile(kept)
	if err != nil {
		return "", err
	}
	path := filepath.Join(os.TempDir(), name)
	return path, os.WriteFile(path, raw, 0o755)
}

// buildFolder is a folder of the build cache for the programs of this checkout.
func buildFolder() (string, error) {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	cache, module, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	folder := filepath.Join(cache, "agent-ci-test", fmt.Sprintf("%x", sha256.Sum256([]byte(module)))[:12])
	return folder, os.MkdirAll(folder, 0o755)
}
