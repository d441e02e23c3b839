//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// localChild is an unconfined command started by this process.
type localChild struct {
	sandbox *Sandbox
	cmd     *exec.Cmd
}

// newLocalChild prepares a command of an unconfined sandbox.
func newLocalChild(s *Sandbox, c Command) (*localChild, error) {
	path, err := stage.LookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return nil, err
	}
	use := s.Unconfined
	if use == nil {
		use = outside.Unconfined
	}
	cmd := use.Command(context.Background(), path, c.Dir, c.Env, c.Argv[1:]...)
	cmd.Args, cmd.SysProcAttr = c.Argv, proc.Attributes()
	return &localChild{s, cmd}, nil
}

// start starts the command. A single stream is its output and errors. Three streams are input, output and errors.
// With terminal, the first stream is also the input and the controlling terminal.
func (c *localChild) start(streams []*os.File, terminal bool) error {
	if len(streams) == 1 {
		c.cmd.Stdout, c.cmd.Stderr = streams[0], streams[0]
	} else {
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = streams[0], streams[1], streams[2]
	}
	if terminal {
		c.cmd.Stdin, c.cmd.SysProcAttr.Setctty = streams[0], true // the terminal of file descriptor 0
	}
	return c.sandbox.starter.Start(c.cmd.Start)
}

func (c *localChild) awaitExit() {
	if !proc.AwaitExit(c.cmd.Process.Pid) {
		_ = c.cmd.Wait() // this releases the process id early; reap returns the result
	}
}

func (c *localChild) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, sig) // it only fails if the group is empty (ESRCH)
}

// reap kills the rest of the group and returns how the command ended.
func (c *localChild) reap() (Status, error) {
	c.signal(syscall.SIGKILL)
	var err error
	if c.cmd.ProcessState == nil {
		err = c.cmd.Wait()
	}
	if c.sandbox.AdoptOrphans {
		proc.ReapGroup(c.cmd.Process.Pid)
	}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return Status{ExitCode: -1}, fmt.Errorf("wait for the command: %w", err)
	}
	wait, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return Status{ExitCode: -1}, nil
	}
	return statusOf(wait), nil
}
