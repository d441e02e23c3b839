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

// setids decides about calls that set set-user-ID or set-group-ID bits of existing files. It permits
// them for folders only. A seccomp filter cannot decide, since it does not see files, so it reports the
// calls (seccomp_unotify(2)). This process makes a permitted call itself, on the file that it has
// checked: the caller could exchange the file at a path meanwhile.
type setids struct {
	listener int       // receives the reports; -1 if all such calls are refused
	pass     [2]uint32 // see Filters.Pass
}

// watchSetids installs the filter that reports such calls. The kernel permits one receiver of reports. If
// a container manager already is one, watchSetids installs a filter that refuses the calls.
func watchSetids(filters Filters) (setids, error) {
	const onAll = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	listener, err := load(filters.AskSetid, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|onAll)
	if err == nil {
		unix.CloseOnExec(listener)
		return setids{listener, filters.Pass}, nil
	}
	return setids{listener: -1}, install(filters.RefuseSetid)
}

// notice is a reported call and answer its result (struct seccomp_notif and seccomp_notif_resp).
type (
	notice struct {
		id           uint64
		thread       uint32
		_            uint32
		call         int32
		architecture uint32
		_            uint64
		args         [6]uint64
	}
	answer struct {
		id    uint64
		value int64
		errno int32 // negative
		_     uint32
	}
)

// answer handles the next reported call. It ignores kernel errors: they mean that the caller has exited.
func (s setids) answer() {
	var n notice
	if !s.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) {
		return
	}
	a := answer{id: n.id}
	if err := s.make(n); err != nil {
		a.errno = -int32(unix.EPERM)
		if errno := unix.Errno(0); errors.As(err, &errno) {
			a.errno = -int32(errno)
		}
	}
	s.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
}

func (s setids) control(request uintptr, argument unsafe.Pointer) (done bool) {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), request, uintptr(argument))
	return errno == 0
}

// make makes the reported call with the caller's rights, if its target is a folder. This thread may
// inspect the caller, because it is in the same Landlock domain as commands.
func (s setids) make(n notice) error {
	target, mode, err := n.open()
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
	return s.chmod(target, mode)
}

// chmod changes the mode of a folder. It passes a secret in otherwise unused arguments, so that the
// filter permits the call. A thread without the filter is no alternative: it would be in another Landlock
// domain, and starting one fails when commands use up all processes.
func (s setids) chmod(folder int, mode uint32) error {
	path, err := unix.BytePtrFromString(fmt.Sprintf("/proc/self/fd/%d", folder))
	if err != nil {
		return err
	}
	const absolute = 0 // the kernel ignores the folder, since the path is absolute
	_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT, absolute, uintptr(unsafe.Pointer(path)), uintptr(mode), 0, uintptr(s.pass[0]), uintptr(s.pass[1]))
	if errno != 0 {
		return errno
	}
	return nil
}

// open opens the reported call's target, and returns the requested mode.
func (n notice) open() (target int, mode uint32, err error) {
	const handle = unix.O_PATH | unix.O_CLOEXEC
	switch n.call {
	case unix.SYS_FCHMOD:
		target, err = unix.Open(n.own(n.args[0]), handle, 0)
		return target, uint32(n.args[1]), err
	case unix.SYS_FCHMODAT:
		target, err = n.openAt(n.args[0], n.args[1], handle)
		return target, uint32(n.args[2]), err
	case unix.SYS_FCHMODAT2:
		flags := handle
		if n.args[3]&unix.AT_SYMLINK_NOFOLLOW != 0 {
			flags |= unix.O_NOFOLLOW
		}
		target, err = n.openAt(n.args[0], n.args[1], flags)
		return target, uint32(n.args[2]), err
	}
	workDir := int32(unix.AT_FDCWD) // the call is chmod, which not every processor has
	target, err = n.openAt(uint64(workDir), n.args[0], handle)
	return target, uint32(n.args[1]), err
}

// own returns a path of the file behind the caller's descriptor, or of its working folder.
func (n notice) own(descriptor uint64) string {
	if int32(descriptor) == unix.AT_FDCWD {
		return fmt.Sprintf("/proc/%d/cwd", n.thread)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", n.thread, int32(descriptor))
}

// openAt opens the path at an address of the caller's memory, as the caller would.
func (n notice) openAt(dir, address uint64, flags int) (target int, err error) {
	path, err := n.text(address)
	if err != nil {
		return -1, err
	}
	for _, self := range []string{"/proc/self/", "/proc/thread-self/", "/dev/"} { // the caller's own files, not this process's
		if rest, ok := strings.CutPrefix(path, self); ok && (self != "/dev/" || strings.HasPrefix(rest, "fd/")) {
			path = fmt.Sprintf("/proc/%d/%s", n.thread, rest)
		}
	}
	if strings.HasPrefix(path, "/") {
		return unix.Open(path, flags, 0)
	}
	at, err := unix.Open(n.own(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if path == "" { // with AT_EMPTY_PATH
		return at, nil
	}
	defer unix.Close(at)
	return unix.Openat(at, path, flags, 0)
}

// text reads a string of the caller's memory.
func (n notice) text(address uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.thread))
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
