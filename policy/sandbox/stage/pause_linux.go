package stage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stopWait bounds how long the supervisor tries to stop all processes.
	stopWait = 30 * time.Second
	// stopTry is how long one attempt waits.
	stopTry = 200 * time.Millisecond
)

// pause stops all other processes of the pid namespace with one SIGSTOP, so that no new process escapes.
// A parent in vfork(2) stops only after its child has called exec. So pause resumes all processes and
// tries again until all stop.
func pause() error {
	if os.Getpid() != 1 {
		return errors.New("they have no pid namespace of their own")
	}
	for deadline := time.Now().Add(stopWait); ; {
		_ = unix.Kill(-1, unix.SIGSTOP) // ESRCH: there are none
		running := awaitStopped()
		if running == "" {
			return nil
		}
		resume()
		if time.Now().After(deadline) {
			return fmt.Errorf("process %s is in a call of the kernel that does not end", running)
		}
		time.Sleep(time.Millisecond)
	}
}

// resume resumes the processes that pause stopped. Children come first, so that no parent notices a
// stopped child. A process that was already stopped before pause stays stopped: pause's SIGSTOP is still
// pending for it.
func resume() {
	stopped := processes()
	slices.SortFunc(stopped, func(a, b process) int {
		return cmp.Or(cmp.Compare(b.started, a.started), cmp.Compare(b.pid, a.pid))
	})
	for _, p := range stopped {
		stoppedBefore := p.state == 'T' && p.isPending(unix.SIGSTOP)
		if !stoppedBefore {
			_ = unix.Kill(p.pid, unix.SIGCONT) // ESRCH: it was killed meanwhile
		}
	}
}

// awaitStopped waits up to stopTry until no other process runs. It returns a process that still runs,
// or "".
func awaitStopped() (running string) {
	for deadline := time.Now().Add(stopTry); ; time.Sleep(time.Millisecond) {
		running = findRunning()
		if running == "" || time.Now().After(deadline) {
			return running
		}
	}
}

// findRunning describes a process that can run, or returns "".
func findRunning() string {
	for _, p := range processes() {
		if p.canRun() {
			return fmt.Sprintf("%d (%q)", p.pid, p.name)
		}
	}
	return ""
}

// process is a process of the namespace (proc_pid_stat(5)).
type process struct {
	pid, parent, session int
	name                 string
	state                byte
	started              uint64 // in ticks since the machine's start
}

// processes returns all processes of the namespace except this one.
func processes() []process {
	return slices.DeleteFunc(processesIn("/proc"), func(p process) bool { return p.pid == os.Getpid() })
}

// processesIn returns the processes or threads that a folder lists. It leaves out those that exit meanwhile.
func processesIn(folder string) (all []process) {
	entries, _ := os.ReadDir(folder) // an error means that the process has exited
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(folder, entry.Name(), "stat"))
		if p, err := parseStat(stat); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// canRun reports whether a thread of the process can run: it is neither stopped, nor in a tracing stop,
// nor dead.
func (p process) canRun() bool {
	return slices.ContainsFunc(processesIn(fmt.Sprintf("/proc/%d/task", p.pid)), func(thread process) bool {
		return !strings.ContainsRune("TtZX", rune(thread.state))
	})
}

// isPending reports whether a signal is pending for the process.
func (p process) isPending(sig unix.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	_, after, _ := bytes.Cut(status, []byte("\nShdPnd:\t"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	pending, err := strconv.ParseUint(string(line), 16, 64)
	return err == nil && pending&(1<<(uint(sig)-1)) != 0
}

// parseStat parses the fields 1 to 4, 6 and 22 of a stat file. The name, field 2, may hold anything,
// also a closing parenthesis.
func parseStat(stat []byte) (p process, err error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	const parent, session, started = 1, 3, 19 // from the state on
	if open < 1 || len(fields) <= started {
		return p, fmt.Errorf("stat %q is not understood", stat)
	}
	p.name, p.state = string(stat[open+1:end]), fields[0][0]
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	p.parent, errs[1] = strconv.Atoi(string(fields[parent]))
	p.session, errs[2] = strconv.Atoi(string(fields[session]))
	p.started, errs[3] = strconv.ParseUint(string(fields[started]), 10, 64)
	return p, errors.Join(errs[:]...)
}
