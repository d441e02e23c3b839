//go:build unix

package gitops

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// endTogether makes cancelling a program end what it started as well: a filter
// is a child of git.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
