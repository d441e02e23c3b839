package stage

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// limit sets what the run may use.
func limit(s Spec) error {
	_, _ = unix.KeyctlJoinSessionKeyring("") // the caller's keys are out of reach; keyctl may not be there
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	if s.Processes <= 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return err
	}
	most := min(uint64(s.Processes+s.ProcessBase), now.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most})
}

// securebits keep user 0 from getting capabilities by being user 0, for good
// (capabilities(7)).
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities gives up every capability, also of what is executed later.
func dropCapabilities() error {
	for capability := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break // there are no more; or no right to drop them, when no_new_privs has to do
		}
		if err != nil {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0)
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// install loads a seccomp filter into the thread.
func install(filter []Instruction) error {
	program := make([]unix.SockFilter, len(filter))
	for i, in := range filter {
		program[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}
