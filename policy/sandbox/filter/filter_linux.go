package filter

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Answers of a filter (seccomp(2)).
const (
	allow          = uint32(unix.SECCOMP_RET_ALLOW)
	kill           = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	refuseEPERM    = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	refuseENOSYS   = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	report         = uint32(unix.SECCOMP_RET_USER_NOTIF)
	archOffset     = 4
	argsOffset     = 16
	x32Bit         = 0x40000000
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	anyBit         = ^uint32(0)
	missingCall    = ^uint32(0) // of a rule for a call that this processor lacks
	deviceTypes    = unix.S_IFMT
	setidBits      = unix.S_ISUID | unix.S_ISGID
	createFlags    = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// refusedCalls lists calls that commands do not need for permitted work, besides olderCalls. architectureFilter
// refuses those newer than newestCall.
var refusedCalls = []uint32{
	// other processes' memory
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_UNSHARE, unix.SYS_SETNS,
	// the kernel's own programs, watches, keys and handles
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_FANOTIFY_INIT, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE,
	// the machine
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}

// newestCall is the newest call that filters know: Linux 6.15.
const newestCall = unix.SYS_OPEN_TREE_ATTR

// unknownCalls lists calls answered with ENOSYS, as on an older kernel, so that programs use others. Filters
// cannot see the arguments of clone3 and openat2.
var unknownCalls = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// sharedIPCCalls lists calls that reach other processes of the user if there is no IPC namespace.
var sharedIPCCalls = []uint32{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}

// condition compares 32 masked bits of an argument. The kernel uses only 32 bits of an int.
type condition struct {
	half   uint32 // index of the 32-bit half: 0 is the lower half of argument 0 (little-endian machines only)
	mask   uint32
	value  uint32
	negate bool // the bits must differ from value
}

// rule answers a call whose arguments meet all conditions. The first match decides.
type rule struct {
	call       uint32
	conditions []condition
	answer     uint32
}

func argumentIs(arg, value uint32) condition {
	return condition{half: 2 * arg, mask: anyBit, value: value}
}

func argumentHas(arg, mask uint32) condition {
	return condition{half: 2 * arg, mask: mask, negate: true}
}

func argumentIsNot(arg, value uint32) condition {
	return condition{half: 2 * arg, mask: anyBit, value: value, negate: true}
}

// argumentRules returns the rules about arguments. Conditions compare 32-bit halves of arguments: callers could
// evade a comparison of 64 bits by setting upper bits that the kernel ignores.
func argumentRules(o Options) []rule {
	var rules []rule
	add := func(answer, call uint32, conditions ...condition) {
		rules = append(rules, rule{call, conditions, answer})
	}
	add(refuseEPERM, unix.SYS_CLONE, argumentHas(0, namespaceFlags))
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS} {
		add(refuseEPERM, unix.SYS_IOCTL, argumentIs(1, request))
	}
	for call, mode := range map[uint32]uint32{callMknod: 1, unix.SYS_MKNODAT: 2} {
		for _, device := range []uint32{unix.S_IFCHR, unix.S_IFBLK} {
			add(refuseEPERM, call, condition{half: 2 * mode, mask: deviceTypes, value: device})
		}
	}
	add(refuseEPERM, callOpen, argumentHas(1, createFlags), argumentHas(2, setidBits)) // this refuses no folder: these calls only create files
	add(refuseEPERM, unix.SYS_OPENAT, argumentHas(2, createFlags), argumentHas(3, setidBits))
	add(refuseEPERM, callCreat, argumentHas(1, setidBits))
	add(refuseEPERM, callMknod, argumentHas(1, setidBits))
	add(refuseEPERM, unix.SYS_MKNODAT, argumentHas(2, setidBits))
	if !o.Connect {
		// A datagram can name its receiver. Bit 1 is set in SOCK_DGRAM and SOCK_RAW, which AF_UNIX
		// treats alike, and in no other type.
		add(refuseEPERM, unix.SYS_SOCKET, argumentIs(0, unix.AF_UNIX), argumentHas(1, unix.SOCK_DGRAM))
		add(refuseEPERM, unix.SYS_SOCKETPAIR, argumentIs(0, unix.AF_UNIX), argumentHas(1, unix.SOCK_DGRAM))
		add(refuseEPERM, unix.SYS_CONNECT)
		add(refuseEPERM, unix.SYS_SENDTO, argumentIsNot(4, 0)) // with an address: one half of its pointer is not 0
		add(refuseEPERM, unix.SYS_SENDTO, condition{half: 9, mask: anyBit, negate: true})
	}
	add(allow, unix.SYS_SOCKET, argumentIs(0, unix.AF_UNIX))
	add(allow, unix.SYS_SOCKET, argumentIs(0, unix.AF_NETLINK), argumentIs(2, unix.NETLINK_ROUTE))
	if o.Inet {
		add(allow, unix.SYS_SOCKET, argumentIs(0, unix.AF_INET))
		add(allow, unix.SYS_SOCKET, argumentIs(0, unix.AF_INET6))
	}
	add(refuseEPERM, unix.SYS_SOCKET)
	add(allow, unix.SYS_SOCKETPAIR, argumentIs(0, unix.AF_UNIX))
	add(refuseEPERM, unix.SYS_SOCKETPAIR)
	if o.Namespaced {
		add(refuseEPERM, unix.SYS_PRLIMIT64, argumentIs(0, 1)) // the supervisor, whose limits later commands inherit
	} else {
		add(refuseEPERM, unix.SYS_PRLIMIT64, argumentIsNot(0, 0))
	}
	return rules
}

// Programs returns the filters for the kernel. The kernel runs all of them for each system call, and
// the strictest answer counts.
func Programs(o Options) (filters stage.Filters, err error) {
	for _, program := range [][]bpf.Instruction{architectureFilter, callsFilter(o), assemble(argumentRules(o))} {
		packed, err := pack(program)
		if err != nil {
			return filters, err
		}
		filters.All = append(filters.All, packed)
	}
	filters.Permit = newPermit()
	if filters.AskSetid, err = pack(setidFilter(report, &filters.Permit)); err != nil {
		return filters, err
	}
	filters.RefuseSetid, err = pack(setidFilter(refuseEPERM, nil))
	return filters, err
}

func newPermit() [2]uint32 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return [2]uint32{binary.NativeEndian.Uint32(random[:4]), binary.NativeEndian.Uint32(random[4:])}
}

// pack returns a program in the kernel's format.
func pack(program []bpf.Instruction) (stage.Filter, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble a seccomp filter: %w", err)
	}
	packed := make(stage.Filter, 0, len(raw)*stage.InstructionSize)
	for _, i := range raw {
		packed = append(binary.NativeEndian.AppendUint16(packed, i.Op), i.Jt, i.Jf)
		packed = binary.NativeEndian.AppendUint32(packed, i.K)
	}
	return packed, nil
}

// architectureFilter kills callers with another architecture's numbers, and rejects calls newer
// than newestCall.
var architectureFilter = []bpf.Instruction{
	bpf.LoadAbsolute{Off: archOffset, Size: 4},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
	bpf.RetConstant{Val: kill},
	bpf.LoadAbsolute{Off: 0, Size: 4},
	bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
	bpf.RetConstant{Val: kill},
	bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newestCall, SkipFalse: 1},
	bpf.RetConstant{Val: refuseENOSYS},
	bpf.RetConstant{Val: allow},
}

// callsFilter refuses calls by their numbers alone: refusedCalls, olderCalls, unknownCalls, and without namespaces
// sharedIPCCalls.
func callsFilter(o Options) []bpf.Instruction {
	refused := slices.Concat(refusedCalls, olderCalls)
	if !o.Namespaced {
		refused = append(refused, sharedIPCCalls...)
	}
	all := slices.Concat(refused, unknownCalls)
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	for i, call := range all {
		toAnswer := len(all) - i // behind the last comparison and an answer
		if i >= len(refused) {
			toAnswer++
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipTrue: uint8(toAnswer)})
	}
	return append(program, bpf.RetConstant{Val: allow}, bpf.RetConstant{Val: refuseEPERM}, bpf.RetConstant{Val: refuseENOSYS})
}

// setidFilter answers calls that set set-user-ID or set-group-ID bits of existing files or folders.
// A permit, if not nil, exempts the calls that carry it.
func setidFilter(answer uint32, permit *[2]uint32) []bpf.Instruction {
	var rules []rule
	if permit != nil {
		rules = append(rules, rule{unix.SYS_FCHMODAT, []condition{argumentIs(4, permit[0]), argumentIs(5, permit[1])}, allow})
	}
	for call, mode := range map[uint32]uint32{callChmod: 1, unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2} {
		rules = append(rules, rule{call, []condition{argumentHas(mode, setidBits)}, answer})
	}
	return assemble(rules)
}

// assemble compiles rules to a program that permits everything else.
func assemble(rules []rule) (program []bpf.Instruction) {
	for _, r := range rules {
		if r.call != missingCall {
			program = append(program, r.assemble()...)
		}
	}
	return append(program, bpf.RetConstant{Val: allow})
}

// assemble returns the instructions of r. They return r's answer, or continue after their end if r does
// not apply.
func (r rule) assemble() []bpf.Instruction {
	instructions := []bpf.Instruction{bpf.RetConstant{Val: r.answer}}
	for _, c := range slices.Backward(r.conditions) {
		compare := bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.value, SkipFalse: uint8(len(instructions))}
		if c.negate {
			compare = bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.value, SkipTrue: uint8(len(instructions))}
		}
		instructions = append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: argsOffset + 4*c.half, Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask}, compare,
		}, instructions...)
	}
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.call, SkipFalse: uint8(len(instructions))},
	}, instructions...)
}
