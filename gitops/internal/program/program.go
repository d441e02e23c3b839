// Package program runs the git program for tasks that only git can do. git gets few environment
// variables and no programs from folders of commands. Its child processes are killed too. The package
// chooses the git program and knows no repository.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// Program is the git program with an environment.
type Program struct {
	Path string
	use  *outside.Use
	env  []string
}

// With returns the program with more environment variables. They override earlier ones.
func (p Program) With(vars ...string) Program {
	return Program{p.Path, p.use, append(append([]string(nil), p.env...), vars...)}
}

// Run runs git in a folder and returns its standard output.
func (p Program) Run(ctx context.Context, dir string, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := p.Stream(ctx, dir, stdin, &out, args...)
	return out.Bytes(), err
}

// configTime is how long git may take to read its configuration. It waits forever for a named pipe.
const configTime = 5 * time.Second

// BlockedConfigRemedy is what the user can do about ErrBlockedConfig.
const BlockedConfigRemedy = "replace the named pipe among ~/.gitconfig and the files that include.path names"

// ErrBlockedConfig reports a git that does not finish reading its configuration.
var ErrBlockedConfig = fmt.Errorf("git did not finish reading its configuration in %s; %s", clip.Duration(configTime), BlockedConfigRemedy)

// Config runs `git config` in a folder. It returns ErrBlockedConfig if git does not finish in time.
func (p Program) Config(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, configTime, ErrBlockedConfig)
	defer cancel()
	return p.Run(ctx, dir, nil, append([]string{"config"}, args...)...)
}

// Stream runs git like Run, and writes its standard output to stdout.
func (p Program) Stream(ctx context.Context, dir string, stdin io.Reader, stdout io.Writer, args ...string) error {
	stderr := clip.Tail{Limit: 2 << 10}
	out := &sink{to: stdout}
	cmd := p.Command(ctx, dir, syscall.SIGKILL, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, &stderr
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	if out.err != nil {
		return &gitError{args: args, err: out.err}
	}
	return &gitError{args: args, status: cmd.ProcessState.ExitCode(), text: stderr.String() + describeFullDisk(stderr.String(), dir), err: err}
}

// describeFullDisk returns a text for git's error if the disk of dir is full, or "". git reports that it could not write
// a file, but not why.
func describeFullDisk(message, dir string) string {
	const room = 1 << 20 // git writes until nothing more fits
	var disk syscall.Statfs_t
	if strings.Contains(message, "unable to write file") && syscall.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < room {
		return fmt.Sprintf(" (%s: %v)", dir, syscall.ENOSPC)
	}
	return ""
}

// Command returns a git to run in a folder. When ctx ends, git and its children get the signal
// stop. They have a second to exit then, or 5 seconds if stop is not SIGKILL.
func (p Program) Command(ctx context.Context, dir string, stop syscall.Signal, args ...string) *exec.Cmd {
	cmd := p.use.Command(ctx, p.Path, dir, p.env, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, stop) }
	if cmd.WaitDelay = time.Second; stop != syscall.SIGKILL {
		cmd.WaitDelay *= 5
	}
	return cmd
}

// sink is a writer that remembers a failed write. git itself would only report a broken pipe.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = errors.Join(s.err, err)
	return n, err
}

// gitError reports a failed git with its error message.
type gitError struct {
	args   []string
	status int
	text   string
	err    error
}

func (e *gitError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("git %s: %v", e.command(), e.err)
	}
	return fmt.Sprintf("git %s: %s", e.command(), e.text)
}

// command returns git's subcommand, without the options before it, or "".
func (e *gitError) command() string {
	for i := 0; i < len(e.args); i++ {
		if e.args[i] != "-c" {
			return e.args[i]
		}
		i++
	}
	return ""
}

func (e *gitError) Unwrap() error { return e.err }

// Is reports whether git's message contains target, an error about a missing resource of the
// machine, such as disk space.
func (e *gitError) Is(target error) bool {
	lacks := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	return slices.Contains(lacks, target) && strings.Contains(strings.ToLower(e.text), target.Error())
}

// ExitStatus returns git's exit status, or -1 if err is no failure of git.
func ExitStatus(err error) int {
	if failed, ok := errors.AsType[*gitError](err); ok {
		return failed.status
	}
	return -1
}
