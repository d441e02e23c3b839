package sandbox

import (
	"slices"
	"sync"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// EarlyProcess is a process that waits for its confinement. Its start takes as long as planning the
// confinement, so both run in parallel.
type EarlyProcess struct {
	ownNetwork   bool
	maxProcesses int

	starting sync.WaitGroup // wait for it before using the fields below
	conn     *supervisorConn
	startErr error
	starter  proc.Starter
	group    *proc.Group

	taken bool // used or killed
}

// StartEarly starts a process for a sandbox with the given network. Pass it as Options.EarlyProcess or call
// End.
func StartEarly(network Network) *EarlyProcess {
	return startInNamespaces(network, defaultProcesses, nil)
}

// startInNamespaces returns a process that another goroutine starts, since the fork takes a millisecond.
func startInNamespaces(network Network, processes int, as *User) *EarlyProcess {
	early := &EarlyProcess{ownNetwork: network != NetworkFull, maxProcesses: processes}
	early.starting.Go(func() {
		defer proc.Show()()
		early.start(namespaceAttributes(early.ownNetwork, as))
	})
	return early
}

// startWithoutNamespaces starts an EarlyProcess in the namespaces of this process.
func startWithoutNamespaces(processes int) *EarlyProcess {
	early := &EarlyProcess{maxProcesses: processes}
	early.start(&syscall.SysProcAttr{Setsid: true})
	return early
}

// start starts the process in its own cgroup. If that fails, it starts the process without one. The last
// error is in early.startErr.
func (early *EarlyProcess) start(attributes *syscall.SysProcAttr) {
	proc.HideDescriptors()
	early.starter.Open()
	if early.group = proc.NewGroup(early.maxProcesses); early.group != nil {
		early.group.Attach(attributes)
		if early.conn, early.startErr = startSupervisorWithSocket(&early.starter, attributes); early.startErr == nil {
			return
		}
		early.group.Remove()
		early.group, attributes.UseCgroupFD = nil, false
	}
	if early.conn, early.startErr = startSupervisorWithSocket(&early.starter, attributes); early.startErr != nil {
		early.starter.Stop()
	}
}

// fittingEarlyProcess returns an EarlyProcess in new namespaces. It is o.EarlyProcess if that fits, or else a new one.
// fittingEarlyProcess returns nil if namespaces are disabled. It ends an o.EarlyProcess that it does not return.
func (o Options) fittingEarlyProcess() *EarlyProcess {
	if slices.Contains(o.disabledLayers, layerNamespaces) {
		o.EarlyProcess.End()
		return nil
	}
	early, ownNetwork := o.EarlyProcess, o.Network != NetworkFull
	if early != nil && !early.taken {
		fits := o.User == nil && early.ownNetwork == ownNetwork && early.maxProcesses == o.processes()
		if fits {
			return early
		}
	}
	o.EarlyProcess.End()
	return startInNamespaces(o.Network, o.processes(), o.User)
}

// take returns the process to the caller, who must end it.
func (early *EarlyProcess) take() (*supervisorConn, error) {
	early.starting.Wait()
	early.taken = true
	return early.conn, early.startErr
}

// End kills the process if nobody has taken it.
func (early *EarlyProcess) End() {
	if early == nil || early.taken {
		return
	}
	if conn, err := early.take(); err == nil {
		early.abandon(conn)
	}
}

func (early *EarlyProcess) abandon(conn *supervisorConn) {
	conn.abandon()
	early.starter.Stop()
	early.group.Remove()
}
