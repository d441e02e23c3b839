// Package program runs the git program for what only it can do: with few
// variables of ours, none of its programs from where commands are at work, and
// what it started ended with it. It decides which git that is, and knows no
// repository.
package program

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
	"time"
)

// Program is git with an environment of its own.
type Program struct {
	Path string // empty: there is none
	env  []string
}

// With returns the program with more variables; later ones count.
func (p Program) With(vars ...string) Program {
	return Program{p.Path, append(append([]string(nil), p.env...), vars...)}
}

func (p Program) There() bool { return p.Path != "" }

// Run runs git in a folder and returns what it wrote to its standard output.
func (p Program) Run(ctx context.Context, dir string, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := p.Stream(ctx, dir, stdin, &out, args...)
	return out.Bytes(), err
}

// Stream is run for a long output.
func (p Program) Stream(ctx context.Context, dir string, stdin io.Reader, stdout io.Writer, args ...string) error {
	var stderr tail
	out := &sink{to: stdout}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Dir, cmd.Env = dir, p.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a filter is a child of git, and ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
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

// ExitStatus is how git ended by itself; -1 where it did not.
func ExitStatus(err error) int {
	if failed, ok := errors.AsType[*gitError](err); ok {
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

// passed are the variables that git, and a filter that it starts, get to see.
// Tokens and keys are not among them, nor what names another
// repository.
var passed = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SYSTEMROOT",
}

// AsUser is git with the configuration of who started this process.
func AsUser(path string, environ []string, gitDir, workTree string) Program {
	env := append(quietEnvironment(environ, workTree), "GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)
	for _, v := range environ {
		if strings.HasPrefix(v, "GIT_CONFIG") {
			env = append(env, v)
		}
	}
	return Program{path, env}
}

// Isolated is git with no configuration but that of gitDir. No program of root,
// where commands are at work, is in its PATH. Objects of other folders are for it
// only as verified copies in gitDir: git does not hash what it reads.
func Isolated(path string, environ []string, root, gitDir, workTree string) Program {
	return Program{path, append(quietEnvironment(environ, root),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree)}
}

// quietEnvironment is for the work tree at root, whose programs are none of ours.
func quietEnvironment(environ []string, root string) []string {
	env := []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1", "LC_ALL=C", "GIT_PAGER=cat",
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if name == "PATH" {
			if value = PathOutside(value, root); value == "" {
				continue // an empty list names the current folder
			}
			v = name + "=" + value
		}
		if slices.Contains(passed[:], name) {
			env = append(env, v)
		}
	}
	return env
}

func Find(pathEnv, root string) string {
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
	places, all := Trail(path)
	return !all || slices.ContainsFunc(places, func(at string) bool {
		within, err := filepath.Rel(root, at)
		return err != nil || filepath.IsLocal(within)
	})
}

// Trail lists the places, links resolved, that the way of a path leads through,
// each link's own among them; not all where there are too many links.
func Trail(path string) (places []string, all bool) {
	at, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		at, rest = filepath.Join(at, rest[0]), rest[1:] // which is real so far, so that ".." is right
		places = append(places, at)
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > mostLinks {
			return places, false
		}
		rest = append(strings.Split(to, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = "/"
		}
	}
	return places, true
}
