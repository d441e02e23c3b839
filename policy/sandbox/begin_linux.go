package sandbox

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

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
func Begin(network Network) *Begun { return beginNamespaces(network, defaultProcesses) }

func beginNamespaces(network Network, processes int) *Begun {
	b := &Begun{ownNetwork: network != NetworkFull, processes: processes}
	defer showSelf()()
	b.begin(namespaceAttributes(b.ownNetwork))
	return b
}

// beginHere starts one in the namespaces of this process.
func beginHere(processes int) *Begun {
	b := &Begun{processes: processes}
	b.begin(&syscall.SysProcAttr{Setsid: true})
	return b
}

// showSelf lets this process be looked at until the function that it returns is
// called: the maps of users are written through /proc, where a process that
// shows nothing of itself may write nothing.
func showSelf() (hide func()) {
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || shown == 1 {
		return func() {}
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
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
	if b := o.Begun; b != nil && !b.taken && b.ownNetwork == (o.Network != NetworkFull) && b.processes == o.processes() {
		return b
	}
	o.Begun.End()
	return beginNamespaces(o.Network, o.processes())
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
