package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
)

// steps is a program that is stopped before each system call that changes a file of a folder, and killed
// before one of them.
type steps struct {
	from   string // steps begin with the first one at a path that ends with this
	folder string
	at     int // the step before which the program is killed; -1 for none

	made   []string
	killed bool
}

// syscallInfo is struct ptrace_syscall_info of ptrace(2), as far as it is read.
type syscallInfo struct {
	Op   uint8
	_    [3]uint8
	_    uint32
	_, _ uint64
	Nr   uint64
	Args [6]uint64
	_    [2]uint64
}

// Of ptrace(2) and wait(2), which the package unix does not have.
const (
	getSyscallInfo = 0x420e
	atFilter       = 3
	ofThisThread   = 0x20000000 // __WNOTHREAD: not the programs of other threads. This thread may have started some for parallel tests, so no test that traces is parallel.
)

// run starts a program by stepper and waits until it and all that it has started are gone. It reports whether
// the program ended by itself.
func (s *steps) run(t *testing.T, cmd *exec.Cmd) (ended bool) {
	t.Helper()
	cmd.Path = must.Get(helper("stepper"))(t)
	cmd.Args = append([]string{"stepper"}, cmd.Args...)
	runtime.LockOSThread() // the only one that may trace
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip("programs may not be traced here")
	} else if err != nil {
		t.Fatal(err)
	}
	program := cmd.Process.Pid
	known := map[int]bool{}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WALL|ofThisThread, nil)
		if errors.Is(err, syscall.ECHILD) {
			return ended
		}
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		must.Do(t, err)
		if !status.Stopped() {
			ended = ended || pid == program && status.Exited()
			continue
		}
		signal := status.StopSignal()
		switch {
		case pid == program && !known[pid]:
			err = syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACESECCOMP|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACEFORK|unix.PTRACE_O_TRACEVFORK|unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_EXITKILL)
			signal = 0
		case status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
			s.syscall(pid, program)
			signal = 0
		case status.TrapCause() > 0, signal == syscall.SIGSTOP && !known[pid]:
			signal = 0
		}
		known[pid] = true
		if err == nil {
			err = syscall.PtraceCont(pid, int(signal))
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) { // it was killed meanwhile
			t.Fatal(err)
		}
	}
}

// syscall notes a system call that is a step, or kills the program before it.
func (s *steps) syscall(pid, program int) {
	var info syscallInfo
	_, _, failed := syscall.Syscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(pid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if failed != 0 || info.Op != atFilter || s.killed {
		return
	}
	name, path := s.changes(pid, info)
	first := strings.HasSuffix(path, "/"+s.from)
	if name == "" || len(s.made) == 0 && !first {
		return
	}
	if below, is := strings.CutPrefix(path, s.folder+"/"); !is && !first || strings.HasPrefix(below, ".git/objects/") {
		return
	}
	if s.killed = len(s.made) == s.at; s.killed {
		_ = syscall.Kill(program, syscall.SIGKILL)
	}
	s.made = append(s.made, name+" "+strings.TrimPrefix(path, s.folder+"/"))
}

// changes is the name of a system call that changes a file, and that file; empty for another call.
func (s *steps) changes(pid int, info syscallInfo) (name, path string) {
	below := func(folder string, name int) string {
		path := textOf(pid, info.Args[name])
		if filepath.IsAbs(path) {
			return path
		}
		folder, _ = os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, folder))
		return filepath.Join(folder, path)
	}
	at := func(dir, name int) string {
		if int32(info.Args[dir]) == unix.AT_FDCWD {
			return below("cwd", name)
		}
		return below(fmt.Sprintf("fd/%d", int32(info.Args[dir])), name)
	}
	open := func(fd uint64) string {
		path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, int32(fd)))
		return path
	}
	const creates = unix.O_CREAT | unix.O_TRUNC
	switch info.Nr {
	case unix.SYS_OPENAT:
		if info.Args[2]&creates != 0 {
			return "open", at(0, 1)
		}
	case unix.SYS_RENAME:
		return "rename to", below("cwd", 1)
	case unix.SYS_UNLINK, unix.SYS_RMDIR:
		return "remove", below("cwd", 0)
	case unix.SYS_MKDIR:
		return "mkdir", below("cwd", 0)
	case unix.SYS_LINKAT:
		return "link", at(2, 3)
	case unix.SYS_SYMLINK:
		return "link", below("cwd", 1)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename to", at(2, 3)
	case unix.SYS_UNLINKAT:
		return "remove", at(0, 1)
	case unix.SYS_MKDIRAT:
		return "mkdir", at(0, 1)
	case unix.SYS_SYMLINKAT:
		return "link", at(1, 2)
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return "write", open(info.Args[0])
	case unix.SYS_COPY_FILE_RANGE:
		return "write", open(info.Args[2])
	}
	return "", ""
}

// textOf is a text in the memory of a stopped process.
func textOf(pid int, at uint64) string {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return ""
	}
	defer mem.Close()
	raw := make([]byte, 4096)
	n, _ := mem.ReadAt(raw, int64(at)) // the memory may end behind it
	text, _, _ := bytes.Cut(raw[:n], []byte{0})
	return string(text)
}

// TestKilledWhileLandingOnMovedBase kills a run at each step in which its change comes into the checkout,
// which is on another branch than the run's base: nothing of the user's is lost, and the run goes on to the
// end that an undisturbed one has. It is some steps, spread over all, without AGENT_CI_KILLS=100.
func TestKilledWhileLandingOnMovedBase(t *testing.T) {
	for mode, branch := range map[string]string{"local": "agent-ci/task", "none": "HEAD"} {
		t.Run(mode, func(t *testing.T) {
			w := newKillWorld(t)
			w.write("change.yml", `version: 1
turns:
  - output: [{call: exec_command, arguments: {cmd: 'echo hello >greet.sh; echo hello >other.txt; echo new >build/new; rm old/a; mkdir -p n/m; echo q >n/m/q'}}]
  - output: [{say: Done.}]
`)
			undisturbed := w.onAnotherBranch("undisturbed")
			whole := steps{from: "landing.new", folder: undisturbed, at: -1}
			if text, ended := w.stepped(&whole, mode, undisturbed, "whole"); !ended || !strings.HasPrefix(text, "changed/") {
				t.Fatalf("the undisturbed run ended in %s", text)
			}
			t.Logf("%d steps:\n%s", len(whole.made), strings.Join(whole.made, "\n"))
			want := w.has(undisturbed)
			each := 1
			if kills() < 100 {
				each = max(1, 2*len(whole.made)/kills())
			}
			for n := each / 2; n < len(whole.made); n += each {
				repo, out := w.onAnotherBranch(fmt.Sprintf("repo%d", n)), fmt.Sprintf("run%d", n)
				theirs := w.git(repo, "rev-parse", "main", "feature")
				s := steps{from: "landing.new", folder: repo, at: n}
				text, ended := w.stepped(&s, mode, repo, out)
				if ended || !s.killed {
					t.Fatalf("it was not killed at step %d:\n%s", n, text)
				}
				at := fmt.Sprintf("killed before step %d, %s", n, s.made[n])
				w.keepsTheirs(at, repo)
				text, _ = w.agent(0, "resume", out, "--quiet", "--replay", "change.yml")
				if !strings.HasPrefix(text, "changed/") && !strings.Contains(text, "it has ended") {
					t.Errorf("%s, the run ended in %s", at, text)
					continue
				}
				must.Same(t, want, w.has(repo), at, "the checkout has")
				must.Same(t, theirs, w.git(repo, "rev-parse", "main", "feature"), at, "the branches are")
				must.Same(t, branch, w.git(repo, "rev-parse", "--abbrev-ref", "HEAD"), at, "it is on")
				w.keepsTheirs(at, repo)
			}
		})
	}
}

// TestKilledWhileOnlyTheBranchMoves kills a run at each step in which it moves its branch in a checkout that
// another run uses. Resuming it and a new run both end as if nothing had happened, and no lock stays. Without
// AGENT_CI_KILLS=100 it is every third step, and one of both in turn.
func TestKilledWhileOnlyTheBranchMoves(t *testing.T) {
	w := newKillWorld(t)
	w.env = append(w.env, openly)
	w.write("change.yml", `version: 1
turns:
  - output: [{call: exec_command, arguments: {cmd: 'echo hello >greet.sh'}}]
  - output: [{say: Done.}]
`)
	runAside := func(n int, repo, out string) (steps, string, bool) {
		gitDir := must.Get(os.Open(filepath.Join(repo, ".git")))(t)
		defer gitDir.Close() // ends the other run
		must.Do(t, syscall.Flock(int(gitDir.Fd()), syscall.LOCK_SH))
		s := steps{from: "refs/heads/agent-ci", folder: repo, at: n}
		text, ended := w.stepped(&s, "local", repo, out)
		return s, text, ended
	}
	whole, text, ended := runAside(-1, w.onAnotherBranch("undisturbed"), "whole")
	if !ended || !strings.Contains(text, "Another run works in") {
		t.Fatalf("the undisturbed run ended in %s", text)
	}
	t.Logf("%d steps:\n%s", len(whole.made), strings.Join(whole.made, "\n"))
	each := every(3)
	for n := 0; n < len(whole.made); n += each {
		for _, again := range []bool{false, true} {
			if each > 1 && again != (n%2 == 1) {
				continue
			}
			repo, out := w.onAnotherBranch(fmt.Sprintf("repo%d-%t", n, again)), fmt.Sprintf("run%d-%t", n, again)
			s, text, ended := runAside(n, repo, out)
			if ended || !s.killed {
				t.Fatalf("it was not killed at step %d:\n%s", n, text)
			}
			at := fmt.Sprintf("killed before step %d, %s (then a new run: %t)", n, s.made[n], again)
			args := []string{"resume", out, "--quiet", "--replay", "change.yml"}
			if again {
				args = []string{"run", "--prompt", "x", "--quiet", "--set", "name=other", "--set", "repository.base=main", "--repo", repo, "--replay", "change.yml", "--publish", "local", "--out", out + "-again"}
			}
			if text, _ = w.agent(0, args...); !strings.HasPrefix(text, "changed/") && !strings.Contains(text, "it has ended") {
				t.Errorf("%s, the run ended in %s", at, text)
			}
			if found, err := exec.Command("find", filepath.Join(repo, ".git"), "-name", "*.lock").Output(); err != nil || len(found) > 0 {
				t.Errorf("%s, there are locks (%v):\n%s", at, err, found)
			}
			w.keepsTheirs(at, repo)
		}
	}
}

// onAnotherBranch makes a checkout on the branch feature, with files that are not tracked.
func (w *killWorld) onAnotherBranch(name string) string {
	w.t.Helper()
	repo := filepath.Join(w.dir, name)
	for file, text := range map[string]string{"greet.sh": "nobody\n", "other.txt": "other\n", "main.txt": "of main\n", "old/a": "a\n"} {
		w.write(filepath.Join(repo, file), text)
	}
	w.repository(repo)
	w.git(repo, "checkout", "--quiet", "-b", "feature")
	w.git(repo, "rm", "--quiet", "main.txt")
	for file, text := range map[string]string{"other.txt": "theirs\n", "feature.txt": "feature\n", ".gitignore": "build/\n"} {
		w.write(filepath.Join(repo, file), text)
	}
	w.git(repo, "add", "--all")
	w.git(repo, "commit", "--quiet", "--message=feature")
	w.write(filepath.Join(repo, "untracked"), "untracked\n")
	w.write(filepath.Join(repo, "build/theirs"), "ignored\n")
	return repo
}

// keepsTheirs makes sure that files are there that git does not track.
func (w *killWorld) keepsTheirs(at, repo string) {
	w.t.Helper()
	for file, text := range map[string]string{"untracked": "untracked\n", "build/theirs": "ignored\n"} {
		if raw, err := os.ReadFile(filepath.Join(repo, file)); string(raw) != text {
			w.t.Errorf("%s, %s has %q (%v)", at, file, raw, err)
		}
	}
}

// has is what a checkout has, to compare it with another one.
func (w *killWorld) has(repo string) string {
	w.t.Helper()
	return strings.Join([]string{
		w.git(repo, "rev-parse", "HEAD^{tree}"), w.git(repo, "status", "--porcelain", "--untracked-files=all"), w.git(repo, "diff", "HEAD"), w.git(repo, "ls-files", "--stage"),
	}, "\n")
}

// stepped runs agent-ci on the base main by steps.
func (w *killWorld) stepped(s *steps, mode, repo, out string) (text string, ended bool) {
	w.t.Helper()
	log := must.Get(os.Create(filepath.Join(w.dir, out+".log")))(w.t)
	defer log.Close()
	cmd, _ := w.command("run", "--prompt", "x", "--quiet", "--set", "name=task", "--set", "repository.base=main", "--repo", repo, "--replay", "change.yml", "--publish", mode, "--out", out)
	cmd.Stdout, cmd.Stderr = log, log
	ended = s.run(w.t, cmd)
	return read(w.t, log.Name()), ended
}
