package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/filter"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// The layers for Options.disabledLayers.
const (
	layerNamespaces = "namespaces"
	layerLandlock   = "landlock"
	layerSeccomp    = "seccomp"
)

// minLandlockABI is the minimum ABI version for confinement by Landlock alone. Older ones permit
// truncating files outside (Linux 6.2).
const minLandlockABI = 3

// Open returns a Sandbox with the strongest confinement that works on this machine. It returns an
// UnavailableError if that is less than required. With DangerFullAccess nothing is confined. Close
// ends it; Scratch stays.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	defer o.EarlyProcess.End() // it does nothing if the process was taken
	if o.Mode == grants.DangerFullAccess {
		return openUnconfined(o)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.At == "" {
		return openConfined(ctx, o)
	}
	return openAgain(ctx, o)
}

// openAgain opens a sandbox of exactly the level o.At, which Probe has found. It retries up to three
// times, because a busy machine may refuse temporarily.
func openAgain(ctx context.Context, o Options) (*Sandbox, error) {
	o.Require, o.disabledLayers = o.At, append(slices.Clone(o.disabledLayers), omittedLayers[o.At]...)
	for pause := 50 * time.Millisecond; ; pause *= 4 {
		s, err := openConfined(ctx, o)
		isLastTry := pause > time.Second
		if isLastTry || !errors.As(err, new(*UnavailableError)) {
			return s, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// openConfined tries each confinement once, strongest first. It returns the first that reaches o.Require.
func openConfined(ctx context.Context, o Options) (*Sandbox, error) {
	o.EarlyProcess = o.fittingEarlyProcess()
	defer o.EarlyProcess.End()
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.claimOverlay(ctx), o.copyCaches(ctx)); err != nil {
		return nil, err
	}
	unavailable := &UnavailableError{Reached: LevelNone, Asked: o.Require, Remedy: remedy}
	if o.Network == NetworkProxied {
		unavailable.Remedy = remedyProxied
	}
	for _, open := range []func(*Sandbox, Options, *grants.Plan) error{openNamespaces, openLandlock} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := new(Sandbox)
		err := open(s, o, p)
		if refused, is := errors.AsType[*setupError](err); is {
			unavailable.Missing = append(unavailable.Missing, refused.Error())
			unavailable.Remedy = cmp.Or(refused.remedy, unavailable.Remedy)
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.level.reaches(o.Require) {
			s.hasMachineNetwork = o.Network == NetworkFull
			return s, nil
		}
		unavailable.Reached = s.level
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	return nil, unavailable
}

// openNamespaces confines by namespaces and seccomp, plus Landlock if available.
func openNamespaces(s *Sandbox, o Options, p *grants.Plan) error {
	if slices.Contains(o.disabledLayers, layerNamespaces) {
		return &setupError{step: layerNamespaces, why: "left out"}
	}
	spec, err := o.namespacesSpec(p)
	if err != nil {
		return err
	}
	report, err := s.becomeSupervisor(spec, o.EarlyProcess, o.Borrowed)
	overlayStep := string(stage.Overlay) + " " + p.Workspace()
	if refused, is := errors.AsType[*setupError](err); is && o.Overlay != "" && refused.step == overlayStep {
		return &OverlayError{refused.why, refused.cause} // without the overlay, a weaker confinement is no substitute
	}
	if err != nil {
		return err
	}
	s.tree = s.conn.sharedPath()
	s.level = LevelNamespaces
	kinds := "user, mount, pid, ipc, uts"
	if spec.OwnNetwork {
		kinds += ", net"
	}
	s.layers = append(s.layers, "namespaces ("+kinds+")")
	if spec.Landlock != nil {
		s.level = LevelFull
		s.layers = append(s.layers, fmt.Sprintf("landlock (ABI %d)", spec.Landlock.ABI))
	}
	s.addCommonLayers(spec, report)
	isOverlaid := func(path string) bool {
		skipped := string(stage.Overlay) + " " + path + ": "
		return !slices.ContainsFunc(report.Skipped, func(why string) bool { return strings.HasPrefix(why, skipped) })
	}
	s.env = p.Variables(isOverlaid)
	s.listeners = s.conn.listeners
	loans := s.conn.lentMounts // the mounts to read come first, then those to write
	readable := min(o.LendToRead, len(loans))
	s.readLoans, s.writeLoans = loans[:readable], loans[readable:]
	if o.Network == NetworkProxied {
		s.stopServing, s.listeners = o.Serve(s.listeners[0]), s.listeners[1:] // the first port is ProxyPort
		s.env = append(s.env, proxyVariables()...)
		s.layers = append(s.layers, "a proxy for the hosts of a list")
	}
	s.env = append(s.env, o.Variables...)
	return nil
}

// namespacesSpec describes the confinement by namespaces and seccomp, plus Landlock if available.
func (o Options) namespacesSpec(p *grants.Plan) (spec stage.Spec, err error) {
	programs, err := filter.Programs(filter.Options{Inet: o.Network != NetworkNone, Namespaced: true, Connect: true})
	if err != nil {
		return spec, err
	}
	mounts := p.Mounts()
	spec = stage.Spec{
		Namespaced: true, OwnNetwork: o.Network != NetworkFull, LoopbackUp: o.Network == NetworkLoopback || o.Network == NetworkProxied,
		Mounts: mounts, EmptyFile: o.EmptyFile(), Processes: o.processes(), PIDMax: ownPIDMax(), Filters: programs,
	}
	if abi := o.landlockABI(); abi > 0 {
		spec.Landlock = &stage.Landlock{
			ABI: abi, Read: []string{"/"}, Write: grants.WritableAmong(mounts), DenyNet: o.Network == NetworkNone,
			Use: []string{"/proc", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"},
		}
	}
	if o.Network == NetworkProxied {
		spec.Ports = []int{ProxyPort}
	}
	spec.Ports = append(spec.Ports, o.Ports...)
	if o.Overlay != "" { // other sandboxes, such as those of services, may borrow an overlaid workspace
		spec.SharedFolder, spec.LendToRead, spec.LendToWrite = p.Workspace(), o.LendToRead, o.LendToWrite
	}
	return spec, nil
}

// openLandlock confines by Landlock and seccomp.
func openLandlock(s *Sandbox, o Options, p *grants.Plan) error {
	abi := o.landlockABI()
	if o.Network == NetworkProxied {
		return &setupError{step: layerLandlock, why: "it knows ports, not hosts"}
	}
	if o.Sharing.sharesAnything() {
		return &setupError{step: layerLandlock, why: errSharingNeedsNamespaces.Error()}
	}
	if abi < minLandlockABI {
		return &setupError{step: layerLandlock, why: fmt.Sprintf("the kernel has ABI version %d, and without namespaces %d is the least", abi, minLandlockABI)}
	}
	programs, err := filter.Programs(filter.Options{Inet: o.Network == NetworkFull, Connect: o.Network == NetworkFull})
	if err != nil {
		return err
	}
	granted, err := p.Landlock()
	if inseparable, is := errors.AsType[*grants.InseparableError](err); is {
		remedy := inseparable.Remedy + ", allow user namespaces on this machine (" + namespaceSettings + "), or run without confinement by policy.sandbox: danger-full-access."
		return &setupError{step: layerLandlock, why: inseparable.What, remedy: remedy}
	}
	if err != nil {
		return err
	}
	granted.ABI, granted.DenyNet = abi, o.Network != NetworkFull
	spec := stage.Spec{Landlock: granted, Processes: o.processes(), ProcessBase: machineProcesses(), Filters: programs}
	report, err := s.becomeSupervisor(spec, startWithoutNamespaces(o.processes()), nil)
	if err != nil {
		return err
	}
	s.conn.supervisor.watchStopped(s.conn.giveUp)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // other processes of the user cannot read this one's memory
	s.level, s.AdoptOrphans = LevelLandlock, true
	s.layers = append(s.layers, fmt.Sprintf("landlock (ABI %d)", abi))
	s.addCommonLayers(spec, report)
	s.env = p.LandlockVariables()
	return nil
}

// addCommonLayers adds the layers of every confinement to s.layers.
func (s *Sandbox) addCommonLayers(spec stage.Spec, report stage.Report) {
	s.layers = append(s.layers, layerSeccomp, "no_new_privs", "no capabilities")
	limitedBy := limitByUser
	switch {
	case s.group != nil:
		limitedBy = limitByCgroup
	case report.PIDMax:
		limitedBy = limitByPIDMax
	}
	s.layers = append(s.layers, processLimit(spec.Processes, limitedBy))
}

// becomeSupervisor confines the early process by the spec and makes it the supervisor of s.
func (s *Sandbox) becomeSupervisor(spec stage.Spec, early *EarlyProcess, borrowed *os.File) (stage.Report, error) {
	if s.AdoptOrphans || !spec.Namespaced {
		proc.AdoptOrphans()
	}
	conn, err := early.take()
	if err != nil {
		return stage.Report{}, err
	}
	var files []*os.File
	if borrowed != nil {
		files = []*os.File{borrowed}
	}
	report, err := conn.sendSpec(spec, files...)
	if err != nil {
		early.abandon(conn)
		return report, err
	}
	go conn.listen()
	s.conn, s.starter, s.group = conn, early.starter, early.group
	return report, nil
}

func (o Options) processes() int { return cmp.Or(o.maxProcesses, defaultProcesses) }

func (o Options) landlockABI() int {
	if slices.Contains(o.disabledLayers, layerLandlock) {
		return 0
	}
	return stage.LandlockABI()
}

// buildingCaps lists the capabilities for building as an ordinary user (capabilities(7)):
// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_FSETID, also used by overlayfs for its copies,
// CAP_SETPCAP, CAP_NET_ADMIN and CAP_SYS_ADMIN.
var buildingCaps = []uintptr{0, 1, 3, 4, 8, 12, 21}

// namespaceAttributes returns the attributes of a process in new namespaces. The process has the user
// number of as, or this process's if as is nil. For user 0 without as, it maps all user numbers, so
// files keep their owners. Some machines do not permit that.
func namespaceAttributes(ownNetwork bool, as *User) *syscall.SysProcAttr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if ownNetwork {
		flags |= unix.CLONE_NEWNET
	}
	attributes := &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: flags,
		AmbientCaps: buildingCaps,
	}
	users, groups := ownMap("uid"), ownMap("gid")
	isRoot := as == nil && os.Geteuid() == 0
	if isRoot && mayMapAll() && len(users) > 0 && len(groups) > 0 {
		attributes.UidMappings, attributes.GidMappings, attributes.GidMappingsEnableSetgroups = users, groups, true
		return attributes
	}
	if as == nil {
		as = &User{os.Geteuid(), os.Getegid()}
	}
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: as.UID, HostID: os.Geteuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: as.GID, HostID: os.Getegid(), Size: 1}}
	return attributes
}

// mayMapAll reports whether this process may map the numbers of other users (user_namespaces(7)).
func mayMapAll() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	const setgid, setuid = 1 << 6, 1 << 7
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&setgid != 0 && data[0].Effective&setuid != 0
}

// ownMap returns a map of all numbers of this namespace to themselves, or nil if it is unknown. kind is
// uid or gid.
func ownMap(kind string) []syscall.SysProcIDMap {
	table, err := os.ReadFile("/proc/self/" + kind + "_map")
	if err != nil {
		return nil
	}
	var mappings []syscall.SysProcIDMap
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil
		}
		first, err1 := strconv.Atoi(fields[0])
		size, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil {
			return nil
		}
		mappings = append(mappings, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return mappings
}

// ownPIDMax reports whether a pid namespace has its own pid_max (Linux 6.14). On older kernels it is the
// machine's, so a trial would change the machine.
func ownPIDMax() bool {
	var major, minor int
	if _, err := fmt.Sscanf(Kernel(), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 14
}

// machineProcesses returns the number of the machine's processes. Without namespaces, RLIMIT_NPROC also
// counts the user's other processes.
func machineProcesses() int {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return defaultProcesses
	}
	return int(info.Procs)
}

// Kernel returns the release of this system's kernel, or "" if it is unknown.
func Kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// proxyVariables returns variables that direct HTTP clients to the proxy, except for loopback addresses.
func proxyVariables() []string {
	address, direct := fmt.Sprintf("http://127.0.0.1:%d", ProxyPort), "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "ALL_PROXY=" + address, "NO_PROXY=" + direct,
		"http_proxy=" + address, "https_proxy=" + address, "all_proxy=" + address, "no_proxy=" + direct,
		"NODE_USE_ENV_PROXY=1",
	}
}

// copyCaches copies the caches of an earlier sandbox (CachesFrom) to the scratch folder. It copies only
// MovedCaches: the places of caches if the kernel cannot overlay them.
func (o Options) copyCaches(ctx context.Context) error {
	if o.CachesFrom == "" {
		return nil
	}
	for _, name := range grants.MovedCaches {
		from, to := filepath.Join(o.CachesFrom, filepath.Dir(name)), filepath.Join(o.Scratch, filepath.Dir(name))
		if err := layer.CopyCaches(ctx, from, to, filepath.Base(name)); err != nil {
			return fmt.Errorf("copy the caches that setup filled: %w", err)
		}
	}
	return nil
}

// claimOverlay records the early process as the overlay's owner, once no other sandbox has the overlay
// mounted. With BorrowedFrom it records the process as a borrower.
func (o Options) claimOverlay(ctx context.Context) error {
	usesOverlay := o.Overlay != "" || o.BorrowedFrom != ""
	if o.EarlyProcess == nil || !usesOverlay {
		return nil
	}
	if o.EarlyProcess.starting.Wait(); o.EarlyProcess.startErr != nil {
		return nil // becomeSupervisor returns the error
	}
	if o.BorrowedFrom != "" {
		return layer.AddBorrower(o.BorrowedFrom, o.EarlyProcess.conn.supervisor.pid)
	}
	return layer.ClaimOverlay(ctx, o.Overlay, o.EarlyProcess.conn.supervisor.pid, o.overlayWait)
}

// Names of process limits, as in Layers.
const (
	limitByCgroup = "pids.max of a cgroup"
	limitByPIDMax = "pid_max"
	limitByUser   = "RLIMIT_NPROC"
)

// processLimit describes the process limit for the record.
func processLimit(most int, limitedBy string) string {
	description := fmt.Sprintf("at most %d processes (%s)", most, limitedBy)
	if limitedBy == limitByUser && os.Geteuid() == 0 {
		description = fmt.Sprintf("processes not limited (%s does not bind user 0)", limitedBy)
	}
	return description
}
