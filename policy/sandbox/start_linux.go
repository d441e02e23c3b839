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

// starter starts commands from one thread that lives as long as the sandbox:
// the kernel sends the parent-death signal when the thread that started a
// command ends, and Go ends threads when it likes (golang.org/issue/27505).
type starter struct {
	requests chan startRequest
	ended    chan struct{}
}

type startRequest struct {
	start  func() error
	result chan error
}

func (s *starter) open() {
	s.requests = make(chan startRequest)
	s.ended = make(chan struct{})
	go s.serve()
}

func (s *starter) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for request := range s.requests {
		request.result <- request.start()
	}
}

func (s *starter) start(start func() error) error {
	result := make(chan error, 1)
	s.requests <- startRequest{start, result}
	return <-result
}

func (s *starter) stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	<-s.ended
	s.requests = nil
}

// awaitExit waits until the process has exited and leaves it unreaped. It is
// false when that can't be done.
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

// reapGroup reaps the adopted members of a group that have died.
func reapGroup(group int) {
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// endOrphans kills and reaps the children of this process that are in another
// session, and then theirs. It returns how many are left after wait.
func endOrphans(wait time.Duration) int {
	session, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return stage.EndChildren(session, wait)
}

// Begun is a process of its own that waits to be told how to confine itself. To
// start it takes as long as to find out what it is to be told, so both are done
// at once.
type Begun struct {
	ownNetwork bool
	processes  int

	inside  *inside
	err     error
	starter starter
	group   *processGroup

	taken bool // or ended
}

// Begin starts one for a sandbox with such a network. Open takes it by
// Options.Begun; End ends one that was not taken.
func Begin(network Network) *Begun { return beginNamespaces(network, defaultProcesses, nil) }

func beginNamespaces(network Network, processes int, as *User) *Begun {
	b := &Begun{ownNetwork: network != NetworkFull, processes: processes}
	defer showSelf()()
	b.begin(namespaceAttributes(b.ownNetwork, as))
	return b
}

// beginHere starts one in the namespaces of this process.
func beginHere(processes int) *Begun {
	b := &Begun{processes: processes}
	b.begin(&syscall.SysProcAttr{Setsid: true})
	return b
}

// begin starts the process, in a cgroup of its own where there can be one.
func (b *Begun) begin(attributes *syscall.SysProcAttr) {
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

// begin gives the process to enter namespaces by: the one that was begun, if it
// is what o asks for. It is nil where none is wanted.
func (o Options) begin() *Begun {
	if slices.Contains(o.without, layerNamespaces) {
		o.Begun.End()
		return nil
	}
	if b := o.Begun; b != nil && !b.taken && o.User == nil && b.ownNetwork == (o.Network != NetworkFull) && b.processes == o.processes() {
		return b
	}
	o.Begun.End()
	return beginNamespaces(o.Network, o.processes(), o.User)
}

// take gives the process away.
func (b *Begun) take() (*inside, error) {
	b.taken = true
	return b.inside, b.err
}

// End ends a process that was not taken.
func (b *Begun) End() {
	if b == nil || b.taken {
		return
	}
	if in, err := b.take(); err == nil {
		b.abandon(in)
	}
}

func (b *Begun) abandon(in *inside) {
	in.abandon()
	b.starter.stop()
	b.group.remove()
}
