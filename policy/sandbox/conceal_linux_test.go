package sandbox_test

import (
	"bufio"
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
		must.Is(t, nil, cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "concealed" {
		t.Log(lines.Text())
	}
	proc := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	must.Same(t, false, strings.Contains(string(environ), "hunter22"), "the environment shows", environ)
	if os.Getuid() == 0 {
		return
	}
	must.Is(t, fs.ErrPermission, err, "its environment")
	must.Is(t, fs.ErrPermission, must.Err(os.Open(filepath.Join(proc, "mem"))), "its memory")
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
	must.Same(t, value, os.Getenv(name), "the process itself reads")
	fmt.Println("concealed")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
