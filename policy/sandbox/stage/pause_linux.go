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
	// stopTry is how long it waits for them each time.
	stopTry = 200 * time.Millisecond
)

// pause stops all processes of the pid namespace but this one (SIGSTOP). The kernel
// sends that to all at once, so that no process forks one that is missed. The parent
// of a vfork(2) does not stop before its child has executed something, so all are let go
// and stopped anew until it has.
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

// resume lets processes go on that pause has stopped, children before their parents:
// those would else find that a child has stopped. A process that had stopped before was
// sent a SIGSTOP that waits for its end, and stays stopped.
func resume() {
	all := processes()
	slices.SortFunc(all, func(a, b process) int {
		return cmp.Or(cmp.Compare(b.started, a.started), cmp.Compare(b.pid, a.pid))
	})
	for _, p := range all {
		if p.state != 'T' || !p.awaits(unix.SIGSTOP) {
			_ = unix.Kill(p.pid, unix.SIGCONT) // ESRCH: it was killed meanwhile
		}
	}
}

// awaitStopped waits until no process runs, and names one that still does.
func awaitStopped() (running string) {
	for deadline := time.Now().Add(stopTry); ; time.Sleep(time.Millisecond) {
		running = ""
		for _, p := range processes() {
			if p.runs() {
				running = fmt.Sprintf("%d (%q)", p.pid, p.name)
				break
			}
		}
		if running == "" || time.Now().After(deadline) {
			return running
		}
	}
}

// process is one of the namespace, as proc_pid_stat(5) has it.
type process struct {
	pid     int
	name    string
	state   byte
	started uint64 // in ticks since the machine's start
}

// processes are all but this one.
func processes() (all []process) {
	for _, file := range statFiles("/proc/[0-9]*/stat") {
		if p, err := readStat(file); err == nil && p.pid != os.Getpid() {
			all = append(all, p)
		}
	}
	return all
}

func statFiles(pattern string) []string {
	files, _ := filepath.Glob(pattern) // the pattern is well formed
	return files
}

// runs says whether a thread of the process may do anything: it is neither stopped,
// nor traced by what is, nor dead.
func (p process) runs() bool {
	for _, file := range statFiles(fmt.Sprintf("/proc/%d/task/*/stat", p.pid)) {
		if thread, err := readStat(file); err == nil && !strings.ContainsRune("TtZX", rune(thread.state)) {
			return true
		}
	}
	return false
}

// awaits says whether a signal was sent to the process that it has not taken yet.
func (p process) awaits(sig unix.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	_, after, _ := bytes.Cut(status, []byte("\nShdPnd:\t"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	pending, err := strconv.ParseUint(string(line), 16, 64)
	return err == nil && pending&(1<<(uint(sig)-1)) != 0
}

// readStat reads the fields 1, 2, 3 and 22 of a stat file. The name may hold anything,
// a closing parenthesis too.
func readStat(file string) (p process, err error) {
	stat, err := os.ReadFile(file)
	if err != nil {
		return p, err // it has ended meanwhile
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	const started = 19 // from the state on
	if open < 1 || len(fields) <= started {
		return p, fmt.Errorf("%s is not understood", file)
	}
	p.name, p.state = string(stat[open+1:end]), fields[0][0]
	p.pid, err = strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	if err == nil {
		p.started, err = strconv.ParseUint(string(fields[started]), 10, 64)
	}
	return p, err
}
