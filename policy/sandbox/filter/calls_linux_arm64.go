package filter

import "golang.org/x/sys/unix"

// architecture is this processor's number in seccomp(2).
const architecture = unix.AUDIT_ARCH_AARCH64

// Calls that this processor lacks.
const callOpen, callCreat, callMknod, callChmod = missingCall, missingCall, missingCall, missingCall

// olderCalls is empty, since this processor lacks them.
var olderCalls []uint32
