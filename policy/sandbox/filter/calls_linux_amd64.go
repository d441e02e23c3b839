package filter

import "golang.org/x/sys/unix"

// architecture is this processor's number in seccomp(2).
const architecture = unix.AUDIT_ARCH_X86_64

// Calls that newer processors lack.
const (
	callOpen  = unix.SYS_OPEN
	callCreat = unix.SYS_CREAT
	callMknod = unix.SYS_MKNOD
	callChmod = unix.SYS_CHMOD
)

// olderCalls lists calls like refusedCalls that newer processors lack.
var olderCalls = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS__SYSCTL, unix.SYS_SYSFS, unix.SYS_USELIB, unix.SYS_USTAT,
}
