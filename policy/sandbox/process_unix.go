//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Start starts c. Its standard input is empty. The caller ends it with Kill or
// Close and sees its end through Done.
func (s *Sandbox) Start(c Command) (*Process, error) {
	path, err := lookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	cmd := &exec.Cmd{
		Path:        path,
		Args:        c.Argv,
		Dir:         c.Dir,
		Env:         c.Env,
		Stdout:      c.Output,
		Stderr:      c.Output,
		WaitDelay:   drainWait,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	p := &Process{sandbox: s, cmd: cmd, done: make(chan struct{})}
	s.add(p)
	go p.wait()
	return p, nil
}

func (s *Sandbox) add(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = make(map[*Process]struct{})
	}
	s.live[p] = struct{}{}
}

func (p *Process) wait() {
	err := p.cmd.Wait()
	p.status = statusOf(p.cmd.ProcessState)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.err = fmt.Errorf("wait for command: %w", err)
	}
	p.sandbox.mu.Lock()
	delete(p.sandbox.live, p)
	p.sandbox.mu.Unlock()
	close(p.done)
}

func statusOf(state *os.ProcessState) Status {
	wait, ok := state.Sys().(syscall.WaitStatus)
	if ok && wait.Signaled() {
		return Status{ExitCode: 128 + int(wait.Signal()), Signal: wait.Signal().String()}
	}
	return Status{ExitCode: state.ExitCode()}
}

// Kill ends every process of the command's group, also after the command
// itself has exited. It does not wait.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Interrupt sends SIGINT to the command's process group.
func (p *Process) Interrupt() { p.signal(syscall.SIGINT) }

func (p *Process) signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, sig) // ESRCH: nobody is left
}

// lookPath finds name as a shell with env would, so that agent-ci's own PATH
// does not decide what runs.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(dir, name), nil
	}
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
