package stage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setidWatcher decides about calls that set set-user-ID or set-group-ID bits of existing files. It permits
// them for folders only. A seccomp filter cannot decide, since it does not see files, so it reports the
// calls (seccomp_unotify(2)). This process makes a permitted call itself, on the file that it has
// checked: the caller could exchange the file at a path meanwhile.
type setidWatcher struct {
	listener int       // receives the reports; -1 if all such calls are refused
	permit   [2]uint32 // see Filters.Permit
}

// installSetidFilter installs the filter that reports such calls. The kernel permits one receiver of reports. If
// a container manager already is one, installSetidFilter installs a filter that refuses the calls.
func installSetidFilter(filters Filters) (setidWatcher, error) {
	const onAll = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	listener, err := loadFilter(filters.AskSetid, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|onAll)
	if err == nil {
		unix.CloseOnExec(listener)
		return setidWatcher{listener, filters.Permit}, nil
	}
	return setidWatcher{listener: -1}, loadIntoAllThreads(filters.RefuseSetid)
}

// reportedCall is a reported call and callResult its result (struct seccomp_notif and seccomp_notif_resp).
type (
	reportedCall struct {
		id           uint64
		thread       uint32
		_            uint32
		number       int32
		architecture uint32
		_            uint64
		args         [6]uint64
	}
	callResult struct {
		id    uint64
		value int64
		errno int32 // negative
		_     uint32
	}
)

// answer handles the next reported call. It ignores kernel errors: they mean that the caller has exited.
func (watcher setidWatcher) answer() {
	var call reportedCall
	if !watcher.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)) {
		return
	}
	result := callResult{id: call.id}
	if err := watcher.makeCall(call); err != nil {
		result.errno = -int32(unix.EPERM)
		if errno := unix.Errno(0); errors.As(err, &errno) {
			result.errno = -int32(errno)
		}
	}
	watcher.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&result))
}

func (watcher setidWatcher) ioctl(request uintptr, argument unsafe.Pointer) (done bool) {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(watcher.listener), request, uintptr(argument))
	return errno == 0
}

// makeCall makes the reported call with the caller's rights, if its target is a folder. This thread may
// inspect the caller, because it is in the same Landlock domain as commands.
func (watcher setidWatcher) makeCall(call reportedCall) error {
	target, mode, err := call.openTarget()
	if err != nil {
		return err
	}
	defer unix.Close(target)
	var status unix.Stat_t
	if err := unix.Fstat(target, &status); err != nil {
		return err
	}
	if status.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.EPERM
	}
	return watcher.chmod(target, mode)
}

// chmod changes the mode of a folder. It passes a secret in otherwise unused arguments, so that the
// filter permits the call. A thread without the filter is no alternative: it would be in another Landlock
// domain, and starting one fails when commands use up all processes.
func (watcher setidWatcher) chmod(folder int, mode uint32) error {
	path, err := unix.BytePtrFromString(fmt.Sprintf("/proc/self/fd/%d", folder))
	if err != nil {
		return err
	}
	const absolute = 0 // the kernel ignores the folder, since the path is absolute
	_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT, absolute, uintptr(unsafe.Pointer(path)), uintptr(mode), 0, uintptr(watcher.permit[0]), uintptr(watcher.permit[1]))
	if errno != 0 {
		return errno
	}
	return nil
}

// openTarget opens the reported call's target, and returns the requested mode.
func (call reportedCall) openTarget() (target int, mode uint32, err error) {
	const pathOnly = unix.O_PATH | unix.O_CLOEXEC
	switch call.number {
	case unix.SYS_FCHMOD:
		target, err = unix.Open(call.callerPath(call.args[0]), pathOnly, 0)
		return target, uint32(call.args[1]), err
	case unix.SYS_FCHMODAT:
		target, err = call.openAt(call.args[0], call.args[1], pathOnly)
		return target, uint32(call.args[2]), err
	case unix.SYS_FCHMODAT2:
		flags := pathOnly
		if call.args[3]&unix.AT_SYMLINK_NOFOLLOW != 0 {
			flags |= unix.O_NOFOLLOW
		}
		target, err = call.openAt(call.args[0], call.args[1], flags)
		return target, uint32(call.args[2]), err
	}
	workDir := int32(unix.AT_FDCWD) // the call is chmod, which not every processor has
	target, err = call.openAt(uint64(workDir), call.args[0], pathOnly)
	return target, uint32(call.args[1]), err
}

// callerPath returns a path of the file behind the caller's descriptor, or of its working folder.
func (call reportedCall) callerPath(descriptor uint64) string {
	if int32(descriptor) == unix.AT_FDCWD {
		return fmt.Sprintf("/proc/%d/cwd", call.thread)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", call.thread, int32(descriptor))
}

// openAt opens the path at an address of the caller's memory, as the caller would.
func (call reportedCall) openAt(dir, address uint64, flags int) (target int, err error) {
	path, err := call.readString(address)
	if err != nil {
		return -1, err
	}
	for _, own := range []struct{ prefix, folder string }{{"/proc/self/", ""}, {"/proc/thread-self/", ""}, {"/dev/fd/", "fd/"}} {
		if rest, ok := strings.CutPrefix(path, own.prefix); ok { // the caller's own files, not this process's
			path = fmt.Sprintf("/proc/%d/%s%s", call.thread, own.folder, rest)
		}
	}
	if strings.HasPrefix(path, "/") {
		return unix.Open(path, flags, 0)
	}
	folder, err := unix.Open(call.callerPath(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if path == "" { // with AT_EMPTY_PATH
		return folder, nil
	}
	defer unix.Close(folder)
	return unix.Openat(folder, path, flags, 0)
}

// readString reads a string of the caller's memory.
func (call reportedCall) readString(address uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", call.thread))
	if err != nil {
		return "", err
	}
	defer memory.Close()
	path := make([]byte, unix.PathMax)
	size, _ := memory.ReadAt(path, int64(address)) // the readable memory may end earlier
	text, _, ended := bytes.Cut(path[:size], []byte{0})
	if !ended {
		return "", unix.EFAULT
	}
	return string(text), nil
}
