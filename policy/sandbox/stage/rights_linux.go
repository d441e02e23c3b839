package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// setLimits sets the resource limits, and removes access to the caller's keys. s.Processes limits
// simultaneous processes; 0 sets no limit.
func setLimits(s Spec) error {
	_, _ = unix.KeyctlJoinSessionKeyring("") // commands get a new, empty keyring; the kernel may not support keys
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	if s.Processes <= 0 {
		return nil
	}
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &current); err != nil {
		return err
	}
	maximum := min(uint64(s.Processes+s.ProcessBase), current.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: maximum, Max: maximum})
}

// securebits permanently deny user 0 its automatic capabilities (capabilities(7)).
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// onAllThreads makes a system call on every thread of this process. It is slow: it waits until the kernel has run
// each thread. Further arguments are 0. Memory behind pointer arguments must be on the heap: a stack may move during
// the call.
//
//go:uintptrescapes
func onAllThreads(number, arg1, arg2 uintptr) error {
	if _, _, errno := psx.Syscall6(number, arg1, arg2, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// dropCapabilities drops all capabilities, also for executed programs. It drops the bounding set and sets securebits
// on this thread only, because they only matter at execve, and this thread starts the commands. A thread without
// permitted capabilities has no ambient ones either (capabilities(7)).
func dropCapabilities() error {
	for capability := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			break // no further capability (EINVAL), or no right to drop one (EPERM): no_new_privs then suffices
		}
		if err != nil {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])))
}

// loadIntoAllThreads loads a seccomp filter into all threads, and gives them this thread's no_new_privs (seccomp(2)).
func loadIntoAllThreads(filter Filter) error {
	thread, err := loadFilter(filter, unix.SECCOMP_FILTER_FLAG_TSYNC)
	if err != nil {
		return err
	}
	if thread != 0 {
		return fmt.Errorf("thread %d has other filters", thread)
	}
	return nil
}

// loadFilter loads a filter into this thread, or with TSYNC flags into all. The result is the kernel's: with
// NEW_LISTENER the descriptor that receives reports, with TSYNC a thread that failed, or 0.
func loadFilter(filter Filter, flags uintptr) (result int, err error) {
	var program []unix.SockFilter
	for packed := range slices.Chunk(filter, InstructionSize) {
		program = append(program, unix.SockFilter{
			Code: binary.NativeEndian.Uint16(packed), Jt: packed[2], Jf: packed[3], K: binary.NativeEndian.Uint32(packed[4:]),
		})
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	value, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return -1, errno
	}
	return int(value), nil
}

// landlockConfigs lists Landlock's rights by ABI version. A version without new rights repeats its
// predecessor.
var landlockConfigs = []landlock.Config{
	{},
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

// LandlockABI returns the kernel's Landlock version, up to the last of landlockConfigs, or 0 without Landlock.
func LandlockABI() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return min(version, len(landlockConfigs)-1)
}

const (
	readFileRights   = ll.AccessFSExecute | ll.AccessFSReadFile
	readFolderRights = readFileRights | ll.AccessFSReadDir
	useFileRights    = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	allFileRights    = readFileRights | useFileRights
)

// applyLandlock permanently confines the process by Landlock. The kernel then refuses every access that the
// ABI version of l can restrict and that l does not grant.
func applyLandlock(l Landlock) error {
	if l.ABI < 1 || l.ABI >= len(landlockConfigs) {
		return fmt.Errorf("ABI version %d is not known", l.ABI)
	}
	c := landlockConfigs[l.ABI]
	if !l.DenyNet {
		c.HandledAccessNet = 0
	}
	var rules []landlock.Rule
	add := func(paths []string, folder, file landlock.AccessFSSet) {
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				continue
			}
			rights := file
			if info.IsDir() {
				rights = folder
			}
			rules = append(rules, landlock.PathAccess(rights&c.HandledAccessFS, path).IgnoreIfMissing())
		}
	}
	add(l.Read, readFolderRights, readFileRights)
	add(l.Write, c.HandledAccessFS, allFileRights)
	add(l.Use, useFileRights|ll.AccessFSReadDir, useFileRights)
	return c.Restrict(rules...)
}
