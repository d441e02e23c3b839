package filter

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
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
	deviceTypes    = unix.S_IFMT
	setidBits      = unix.S_ISUID | unix.S_ISGID
	createFlags    = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// refusedCalls lists calls that commands do not need for permitted work. A call that is missing on a
// processor is skipped; one newer than the library's table is refused by architectureFilter.
var refusedCalls = []string{
	// other processes' memory
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	// mounts and namespaces
	"mount", "umount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig",
	"fsmount", "fspick", "unshare", "setns",
	// the kernel's own programs, watches, keys and handles
	"bpf", "perf_event_open", "fanotify_init", "userfaultfd", "keyctl", "add_key", "request_key", "open_by_handle_at", "syslog", "lookup_dcookie",
	// the machine
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
	"quotactl", "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
	"iopl", "ioperm", "modify_ldt", "vhangup", "nfsservctl", "_sysctl", "sysfs", "uselib", "ustat", "move_pages", "migrate_pages",
}

// unknownCalls lists calls answered with ENOSYS, as on an older kernel, so that programs use others. Filters
// cannot see the arguments of clone3 and openat2.
var unknownCalls = []string{"clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register"}

// sharedIPCCalls lists calls that reach other processes of the user if there is no IPC namespace.
var sharedIPCCalls = []string{"shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"}

// condition compares 32 masked bits of an argument. The kernel uses only 32 bits of an int.
type condition struct {
	half   uint32 // index of the 32-bit half: 0 is the lower half of argument 0 (little-endian machines only)
	mask   uint32
	value  uint32
	negate bool // the bits must differ from value
}

// rule answers a call whose arguments meet all conditions. The first match decides.
type rule struct {
	call       string
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

// argumentRules returns the rules about arguments. The seccomp library would compare 64 bits, and callers
// could evade it by setting upper bits that the kernel ignores.
func argumentRules(o Options) []rule {
	var rules []rule
	add := func(answer uint32, call string, conditions ...condition) {
		rules = append(rules, rule{call, conditions, answer})
	}
	add(refuseEPERM, "clone", argumentHas(0, namespaceFlags))
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS} {
		add(refuseEPERM, "ioctl", argumentIs(1, request))
	}
	for call, mode := range map[string]uint32{"mknod": 1, "mknodat": 2} {
		for _, device := range []uint32{unix.S_IFCHR, unix.S_IFBLK} {
			add(refuseEPERM, call, condition{half: 2 * mode, mask: deviceTypes, value: device})
		}
	}
	add(refuseEPERM, "open", argumentHas(1, createFlags), argumentHas(2, setidBits)) // this refuses no folder: these calls only create files
	add(refuseEPERM, "openat", argumentHas(2, createFlags), argumentHas(3, setidBits))
	add(refuseEPERM, "creat", argumentHas(1, setidBits))
	add(refuseEPERM, "mknod", argumentHas(1, setidBits))
	add(refuseEPERM, "mknodat", argumentHas(2, setidBits))
	if !o.Connect {
		// A datagram can name its receiver. Bit 1 is set in SOCK_DGRAM and SOCK_RAW, which AF_UNIX
		// treats alike, and in no other type.
		add(refuseEPERM, "socket", argumentIs(0, unix.AF_UNIX), argumentHas(1, unix.SOCK_DGRAM))
		add(refuseEPERM, "socketpair", argumentIs(0, unix.AF_UNIX), argumentHas(1, unix.SOCK_DGRAM))
		add(refuseEPERM, "connect")
		add(refuseEPERM, "sendto", argumentIsNot(4, 0)) // with an address: one half of its pointer is not 0
		add(refuseEPERM, "sendto", condition{half: 9, mask: anyBit, negate: true})
	}
	add(allow, "socket", argumentIs(0, unix.AF_UNIX))
	add(allow, "socket", argumentIs(0, unix.AF_NETLINK), argumentIs(2, unix.NETLINK_ROUTE))
	if o.Inet {
		add(allow, "socket", argumentIs(0, unix.AF_INET))
		add(allow, "socket", argumentIs(0, unix.AF_INET6))
	}
	add(refuseEPERM, "socket")
	add(allow, "socketpair", argumentIs(0, unix.AF_UNIX))
	add(refuseEPERM, "socketpair")
	if o.Namespaced {
		add(refuseEPERM, "prlimit64", argumentIs(0, 1)) // the supervisor, whose limits later commands inherit
	} else {
		add(refuseEPERM, "prlimit64", argumentIsNot(0, 0))
	}
	return rules
}

// Programs returns the filters for the kernel. The kernel runs all of them for each system call, and
// the strictest answer counts.
func Programs(o Options) (stage.Filters, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return stage.Filters{}, fmt.Errorf("find the system calls of this processor: %w", err)
	}
	filters, permit := []stage.Filter{}, newPermit()
	for _, newProgram := range []func(*arch.Info, Options) ([]bpf.Instruction, error){
		architectureFilter, namesFilter, argumentsFilter, setidFilter(report, &permit), setidFilter(refuseEPERM, nil),
	} {
		program, err := newProgram(info, o)
		if err != nil {
			return stage.Filters{}, err
		}
		raw, err := bpf.Assemble(program)
		if err != nil {
			return stage.Filters{}, fmt.Errorf("assemble a seccomp filter: %w", err)
		}
		filters = append(filters, pack(raw))
	}
	first := len(filters) - 2
	return stage.Filters{All: filters[:first], AskSetid: filters[first], Permit: permit, RefuseSetid: filters[first+1]}, nil
}

func newPermit() [2]uint32 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return [2]uint32{binary.NativeEndian.Uint32(random[:4]), binary.NativeEndian.Uint32(random[4:])}
}

func pack(program []bpf.RawInstruction) stage.Filter {
	packed := make(stage.Filter, 0, len(program)*stage.InstructionSize)
	for _, i := range program {
		packed = append(binary.NativeEndian.AppendUint16(packed, i.Op), i.Jt, i.Jf)
		packed = binary.NativeEndian.AppendUint32(packed, i.K)
	}
	return packed
}

// architectureFilter kills callers with another architecture's numbers, and rejects calls newer
// than the table.
func architectureFilter(info *arch.Info, _ Options) ([]bpf.Instruction, error) {
	newest := uint32(slices.Max(slices.Collect(maps.Values(info.SyscallNames))))
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
		bpf.RetConstant{Val: kill},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest, SkipFalse: 1},
		bpf.RetConstant{Val: refuseENOSYS},
		bpf.RetConstant{Val: allow},
	}, nil
}

// namesFilter refuses calls by their names alone: refusedCalls, unknownCalls, and without namespaces sharedIPCCalls.
func namesFilter(info *arch.Info, o Options) ([]bpf.Instruction, error) {
	names := refusedCalls
	if !o.Namespaced {
		names = slices.Concat(refusedCalls, sharedIPCCalls)
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Names: knownNames(info, names), Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
		{Names: knownNames(info, unknownCalls), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	return program, nil
}

// setidFilter answers calls that set set-user-ID or set-group-ID bits of existing files or folders.
// A permit, if not nil, exempts the calls that carry it.
func setidFilter(answer uint32, permit *[2]uint32) func(*arch.Info, Options) ([]bpf.Instruction, error) {
	return func(info *arch.Info, _ Options) ([]bpf.Instruction, error) {
		var rules []rule
		if permit != nil {
			rules = append(rules, rule{"fchmodat", []condition{argumentIs(4, permit[0]), argumentIs(5, permit[1])}, allow})
		}
		for call, mode := range map[string]uint32{"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2} {
			rules = append(rules, rule{call, []condition{argumentHas(mode, setidBits)}, answer})
		}
		return assemble(info, rules), nil
	}
}

func knownNames(info *arch.Info, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, known := info.SyscallNames[name]
		return !known
	})
}

func argumentsFilter(info *arch.Info, o Options) ([]bpf.Instruction, error) {
	return assemble(info, argumentRules(o)), nil
}

// assemble compiles rules to a program that permits everything else.
func assemble(info *arch.Info, rules []rule) (program []bpf.Instruction) {
	for _, r := range rules {
		if number, known := info.SyscallNames[r.call]; known {
			program = append(program, r.assemble(uint32(number))...)
		}
	}
	return append(program, bpf.RetConstant{Val: allow})
}

// assemble returns the instructions of r for a system call number. They return r's answer, or continue
// after their end if r does not apply.
func (r rule) assemble(number uint32) []bpf.Instruction {
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
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(instructions))},
	}, instructions...)
}
