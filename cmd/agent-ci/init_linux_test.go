package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Who ends the program while a secret is typed has a terminal that shows keys.
func TestSignalRestoresTerminalEcho(t *testing.T) {
	t.Parallel()
	for _, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		screen, terminal, err := pty.Open()
		must.Do(t, err)
		defer screen.Close()
		defer terminal.Close()
		cmd := exec.Command(binary, "init", "--github")
		cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		must.Do(t, cmd.Start())
		killLate(t, cmd)
		var said bytes.Buffer
		expectOn(t, screen, &said, "(not shown): ")
		if now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS); err != nil || now.Lflag&unix.ECHO != 0 {
			t.Errorf("a secret is shown: %v", err)
		}
		must.Do(t, cmd.Process.Signal(with))
		_ = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != with {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
		if now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS); err != nil || now.Lflag&unix.ECHO == 0 || now.Lflag&unix.ICANON == 0 {
			t.Errorf("after %v keys are not shown: %v", with, err)
		}
	}
}
