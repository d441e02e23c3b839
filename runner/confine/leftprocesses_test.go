package confine

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record"
)

// waiting starts a program that waits for its input to end.
func waiting(t *testing.T, env ...string) (*exec.Cmd, func() error) {
	t.Helper()
	cmd := exec.Command("/bin/cat")
	cmd.Env = env
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, input.Close
}

func TestWhatAKilledRunLeftRunningIsEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir, err := record.NewDirectory(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	programs := dir.Join(ProgramsFolder)
	left, _ := waiting(t, "A=b", "PATH=/bin:"+programs)
	other, end := waiting(t, "PATH="+programs+"-other:/bin", "PROGRAMS="+programs)
	EndLeftProcesses(dir)
	_ = left.Wait()
	if status, is := left.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended as %v", left.ProcessState)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("another program ended as %v", err)
	}
}
