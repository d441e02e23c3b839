package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FindGit returns the path of the git program in pathEnv, a list as in PATH,
// or "" when there is none. What PathOutside leaves out for root is passed over.
func FindGit(pathEnv, root string) string {
	for _, dir := range filepath.SplitList(PathOutside(pathEnv, root)) {
		path := filepath.Join(dir, "git")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// PathOutside is a list as in PATH without the folders in which commands that
// work at root, a work tree, may have put programs: what lies in it or is reached
// through it, whether it is there yet or not, and relative parts. root may be ""
// for none.
func PathOutside(pathEnv, root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil && root != "" {
		root = real
	}
	dirs := slices.DeleteFunc(filepath.SplitList(pathEnv), func(dir string) bool {
		return !filepath.IsAbs(dir) || root != "" && passes(dir, root)
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// LeadsThrough says whether a path lies in a folder or is reached through it,
// whether it is there yet or not.
func LeadsThrough(path, folder string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return passes(path, folder)
}

// mostLinks are followed for one path, as Linux does (path_resolution(7)).
const mostLinks = 40

// passes says whether the way that a path leads goes through root.
func passes(path, root string) bool {
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, part) // which is real so far, so that ".." is right
		if within, err := filepath.Rel(root, at); err != nil || filepath.IsLocal(within) {
			return true
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > mostLinks {
			return true
		}
		rest = append(strings.Split(to, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
	}
	return false
}

// program runs git with an environment of its own.
type program struct {
	path string
	env  []string
}

func (p program) there() bool { return p.path != "" }

// run runs git and returns what it wrote to its standard output.
func (p program) run(ctx context.Context, dir string, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := p.stream(ctx, dir, stdin, &out, args...)
	return out.Bytes(), err
}

func (p program) stream(ctx context.Context, dir string, stdin io.Reader, stdout io.Writer, args ...string) error {
	var stderr tail
	out := &sink{to: stdout}
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env = dir, p.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, &stderr
	endTogether(cmd)
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
	return &gitError{args: args, status: cmd.ProcessState.ExitCode(), text: stderr.String(), err: err}
}

// sink remembers why it could not take what a program wrote: the program itself
// only finds its pipe broken.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = errors.Join(s.err, err)
	return n, err
}

// gitError is git's own words for what went wrong.
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

// command skips the options that come before the command's name.
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

// Is finds in git's words what the machine has too little of.
func (e *gitError) Is(target error) bool {
	lacks := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	return slices.Contains(lacks, target) && strings.Contains(strings.ToLower(e.text), target.Error())
}

func exitStatus(err error) int {
	var failed *gitError
	if errors.As(err, &failed) {
		return failed.status
	}
	return -1
}

// tail keeps the end of what a program complains.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	t.kept = append(t.kept, p...)
	if len(t.kept) > most {
		t.kept = t.kept[len(t.kept)-most:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }
