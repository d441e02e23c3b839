package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

const concealedSecret = "CONCEALED_SECRET=sk-hunter22hunter22"

// Neither root nor another process of the user reads a secret from /proc/PID/environ, and nobody but
// root reads the memory.
func TestConceal(t *testing.T) { concealed(t) }

// TestConcealAsNobody is TestConceal of an ordinary user.
func TestConcealAsNobody(t *testing.T) {
	if sandboxtest.AsNobody(t) {
		concealed(t)
	}
}

func concealed(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestConcealedProcess$", "-test.v")
	cmd.Env = append(os.Environ(), concealedSecret)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "concealed" {
		t.Log(lines.Text())
	}
	proc := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	if strings.Contains(string(environ), "hunter22") {
		t.Errorf("the environment shows %q", environ)
	}
	if os.Getuid() == 0 {
		return
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its environment: %v", err)
	}
	if _, err := os.Open(filepath.Join(proc, "mem")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its memory: %v", err)
	}
}

// TestConcealedProcess is the process that is looked at. It opens sandboxes at once, for which it
// has to be visible a moment.
func TestConcealedProcess(t *testing.T) {
	name, value, _ := strings.Cut(concealedSecret, "=")
	if os.Getenv(name) == "" {
		t.Skip("started by TestConceal")
	}
	proc.Conceal()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { sandbox.StartEarly(sandbox.NetworkNone).End() })
	}
	all.Wait()
	if os.Getenv(name) != value {
		t.Errorf("the process itself reads %q", os.Getenv(name))
	}
	fmt.Println("concealed")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
