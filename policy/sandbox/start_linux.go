package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// threadStarter starts commands from one thread that lives as long as the sandbox: the kernel sends the
// parent-death signal when that thread ends, and Go ends threads at will (golang.org/issue/27505).
type threadStarter struct {
	requests chan startRequest
	ended    chan struct{}
}

type startRequest struct {
	start  func() error
	result chan error
}

func (s *threadStarter) open() {
	s.requests = make(chan startRequest)
	s.ended = make(chan struct{})
	go s.serve()
}

func (s *threadStarter) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for request := range s.requests {
		request.result <- request.start()
	}
}

func (s *threadStarter) start(start func() error) error {
	result := make(chan error, 1)
	s.requests <- startRequest{start, result}
	return <-result
}

func (s *threadStarter) stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	<-s.ended
	s.requests = nil
}

// awaitExit waits for the process's exit without reaping it, or returns false.
func awaitExit(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux 3.4; Close finds less without it
}

// reapGroup reaps dead adopted members of a group.
func reapGroup(group int) {
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// endOrphans kills and reaps children of this process in other sessions, and then their children.
// It returns the number left after wait.
func endOrphans(wait time.Duration) int {
	session, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return stage.EndChildren(session, wait)
}

// EarlyProcess is a process that waits for its confinement. Its start takes as long as planning the
// confinement, so both run in parallel.
type EarlyProcess struct {
	ownNetwork bool
	processes  int

	inside  *supervisorConn
	err     error
	starter threadStarter
	group   *processGroup

	taken bool // or ended
}

// StartEarly starts a process for a sandbox with the given network. Pass it as Options.EarlyProcess or call
// End.
func StartEarly(network Network) *EarlyProcess {
	return beginNamespaces(network, defaultProcesses, nil)
}

func beginNamespaces(network Network, processes int, as *User) *EarlyProcess {
	b := &EarlyProcess{ownNetwork: network != NetworkFull, processes: processes}
	defer showSelf()()
	b.begin(namespaceAttributes(b.ownNetwork, as))
	return b
}

// beginHere starts one in the namespaces of this process.
func beginHere(processes int) *EarlyProcess {
	b := &EarlyProcess{processes: processes}
	b.begin(&syscall.SysProcAttr{Setsid: true})
	return b
}

// begin starts the process, in its own cgroup if possible.
func (b *EarlyProcess) begin(attributes *syscall.SysProcAttr) {
	hideDescriptors()
	b.starter.open()
	if b.group = newProcessGroup(b.processes); b.group != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(b.group.dir.Fd())
		if b.inside, b.err = startInside(&b.starter, attributes); b.err == nil {
			return
		}
		b.group.remove()
		b.group, attributes.UseCgroupFD = nil, false
	}
	if b.inside, b.err = startInside(&b.starter, attributes); b.err != nil {
		b.starter.stop()
	}
}

// begin returns a process for namespaces: the one begun, if it fits o. It returns nil if none is
// needed.
func (o Options) begin() *EarlyProcess {
	if slices.Contains(o.disabledLayers, layerNamespaces) {
		o.EarlyProcess.End()
		return nil
	}
	if b := o.EarlyProcess; b != nil && !b.taken && o.User == nil && b.ownNetwork == (o.Network != NetworkFull) && b.processes == o.processes() {
		return b
	}
	o.EarlyProcess.End()
	return beginNamespaces(o.Network, o.processes(), o.User)
}

// take gives the process away.
func (b *EarlyProcess) take() (*supervisorConn, error) {
	b.taken = true
	return b.inside, b.err
}

// End ends an unused process.
func (b *EarlyProcess) End() {
	if b == nil || b.taken {
		return
	}
	if in, err := b.take(); err == nil {
		b.abandon(in)
	}
}

func (b *EarlyProcess) abandon(in *supervisorConn) {
	in.abandon()
	b.starter.stop()
	b.group.remove()
}
