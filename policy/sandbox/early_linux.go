package sandbox

import (
	"slices"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// EarlyProcess is a process that waits for its confinement. Its start takes as long as planning the
// confinement, so both run in parallel.
type EarlyProcess struct {
	ownNetwork bool
	processes  int

	inside  *supervisorConn
	err     error
	starter proc.Starter
	group   *proc.Group

	taken bool // used or killed
}

// StartEarly starts a process for a sandbox with the given network. Pass it as Options.EarlyProcess or call
// End.
func StartEarly(network Network) *EarlyProcess {
	return beginNamespaces(network, defaultProcesses, nil)
}

func beginNamespaces(network Network, processes int, as *User) *EarlyProcess {
	b := &EarlyProcess{ownNetwork: network != NetworkFull, processes: processes}
	defer proc.Show()()
	b.begin(namespaceAttributes(b.ownNetwork, as))
	return b
}

// beginHere starts an EarlyProcess in the namespaces of this process.
func beginHere(processes int) *EarlyProcess {
	b := &EarlyProcess{processes: processes}
	b.begin(&syscall.SysProcAttr{Setsid: true})
	return b
}

// begin starts the process, in its own cgroup if possible.
func (b *EarlyProcess) begin(attributes *syscall.SysProcAttr) {
	proc.HideDescriptors()
	b.starter.Open()
	if b.group = proc.NewGroup(b.processes); b.group != nil {
		b.group.Attach(attributes)
		if b.inside, b.err = startInside(&b.starter, attributes); b.err == nil {
			return
		}
		b.group.Remove()
		b.group, attributes.UseCgroupFD = nil, false
	}
	if b.inside, b.err = startInside(&b.starter, attributes); b.err != nil {
		b.starter.Stop()
	}
}

// begin returns an EarlyProcess in new namespaces. It is o.EarlyProcess if that fits, or else a new one.
// begin returns nil if namespaces are disabled.
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

// take returns the process to the caller, who must end it.
func (b *EarlyProcess) take() (*supervisorConn, error) {
	b.taken = true
	return b.inside, b.err
}

// End kills the process if nobody has taken it.
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
	b.starter.Stop()
	b.group.Remove()
}
