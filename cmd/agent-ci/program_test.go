package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// helpers builds the other programs of this module that tests start, all at once, and returns their folder.
var helpers = sync.OnceValues(func() (folder string, err error) {
	sources := []string{"./testdata/keeper", "./testdata/client", "./testdata/toolserver"}
	if runtime.GOOS == "linux" {
		sources = append(sources, "./testdata/stepper", "../../policy/sandbox/sandboxtest/intruder")
	}
	return build("helpers", sources...)
})

func helper(name string) (path string, err error) {
	folder, err := helpers()
	return filepath.Join(folder, name), err
}

// placeHelper copies a program into the home folder of a script, where commands see it.
func placeHelper(name string) func(*testscript.TestScript, []string) {
	return func(ts *testscript.TestScript, _ []string) {
		path, err := helper(name)
		ts.Check(err)
		raw, err := os.ReadFile(path)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(ts.Getenv("HOME"), name), raw, 0o755))
	}
}

// build runs go build without cgo and returns a folder with copies of the programs. The programs
// themselves stay in a folder of the build cache, where go build finds them unchanged the next
// time and neither compiles nor links.
func build(name string, arguments ...string) (folder string, err error) {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	cache, module, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	kept := filepath.Join(cache, "agent-ci-test", fmt.Sprintf("%x", sha256.Sum256([]byte(module)))[:12], "for-"+name)
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Open(kept)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", kept}, arguments...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	if folder, err = os.MkdirTemp("", name+"-"); err != nil {
		return "", err
	}
	// A process that another test starts meanwhile would have the copy open, which then is "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return folder, os.CopyFS(folder, os.DirFS(kept))
}
