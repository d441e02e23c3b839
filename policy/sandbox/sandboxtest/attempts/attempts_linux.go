package attempts

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attempt is an attack on a sandbox. A nil error means success.
type Attempt struct {
	Name string
	Do   func(World) error
	// Open maps tiers where the attempt succeeds to the countermeasure.
	Open map[string]string
	// Unproven marks attempts that would do harm without a sandbox or need special machines. All
	// others must succeed there as user 0.
	Unproven bool
	// Roots marks attacks only possible for user 0.
	Roots bool
	// Hidden marks attacks on World.Hidden.
	Hidden bool
	// overlaid marks attacks on an overlay of the workspace.
	overlaid bool
	// secrets marks attacks on commands' secrets.
	secrets bool
	// Served marks attacks on a secret's host through a tunnel.
	Served bool
}

// ErrNothing is the error of an attempt that worked, but reached nothing of value.
var ErrNothing = errors.New("nothing of the secret is there")

// Reasons for success under Landlock alone.
const (
	CheckedAfterwards = "Landlock grants the workspace whole; what git keeps is compared afterwards"
	notLandlocks      = "Landlock does not cover the attributes of files; the owner outside is the user who started agent-ci"
	notNames          = "Landlock covers what is in files and folders, not that they are there"
	refusesToStart    = "Landlock grants a folder with all that is in it; a denied file in one refuses the start"
	notSignals        = "Landlock covers signals only; priorities of the user's other processes can be changed"
)

func All() []Attempt {
	return slices.Concat(
		fileAttempts(), secretAttempts(), hiddenAttempts(), gitAttempts(), overlayAttempts(), cacheAttempts(), placeholderAttempts(), tunnelAttempts(),
		processAttempts(), kernelAttempts(), networkAttempts(), rightsAttempts(), attributeAttempts(), setidAttempts(),
	)
}

// Proxied returns the attempts that a proxy outside of the sandbox could make possible: those on
// processes, the network and rights.
func Proxied() []Attempt {
	return slices.Concat(processAttempts(), networkAttempts(), rightsAttempts())
}

// On returns the attempts possible in a world.
func On(w World) []Attempt {
	return slices.DeleteFunc(All(), func(a Attempt) bool {
		return a.overlaid && w.OverlayFolder == "" || a.secrets && w.Bound == "" || a.Served && w.Host == "" || a.Unproven && w.Bare
	})
}

func inLandlock(why string) map[string]string { return map[string]string{"landlock": why} }

// fileAttempts try to read, change and leave files that commands must not touch.
func fileAttempts() []Attempt {
	return []Attempt{
		{Name: "write a file outside", Do: func(w World) error { return write(w.outside("secret.txt")) }},
		{Name: "create a file outside", Do: func(w World) error { return create(w.outside("new")) }},
		{Name: "truncate a file outside", Do: func(w World) error { return os.Truncate(w.outside("truncate"), 0) }},
		{Name: "delete a file outside", Do: func(w World) error { return os.Remove(w.outside("delete")) }},
		{Name: "make a folder outside", Do: func(w World) error { return os.Mkdir(w.outside("folder"), 0o755) }},
		{Name: "make a named pipe outside", Do: func(w World) error { return unix.Mkfifo(w.outside("pipe"), 0o600) }},
		{Name: "make a symbolic link outside", Do: func(w World) error { return os.Symlink("/", w.outside("link")) }},
		{Name: "bind a socket outside", Do: func(w World) error { return BindSocket(w.outside("bound.sock")) }},
		{Name: "move a file out", Do: func(w World) error { return putInPlace(w.workspace("mine"), w.outside("mine")) }},
		{Name: "move a file in", Do: func(w World) error { return os.Rename(w.outside("move"), w.workspace("moved")) }},
		{Name: "hard link a file in and write it", Do: func(w World) error { return w.tryThroughLink(os.Link, w.outside("secret.txt"), "hard", write) }},
		{Name: "write through a symbolic link", Do: func(w World) error { return w.tryThroughLink(os.Symlink, w.outside("secret.txt"), "soft", write) }},
		{Name: "create through a linked folder", Do: func(w World) error {
			return errors.Join(os.Symlink(w.Outside, w.workspace("softdir")), create(w.workspace("softdir/new2")))
		}},
		{Name: "write through /proc/self/root", Do: func(w World) error { return write("/proc/self/root" + w.outside("secret.txt")) }},
		{Name: "write through /proc/self/cwd", Do: func(w World) error {
			return write("/proc/self/cwd/../" + filepath.Base(w.Outside) + "/secret.txt")
		}},
		{Name: "write through the supervisor's root", Do: func(w World) error { return write(of(w.Supervisor, "root"+w.outside("secret.txt"))) }},
		{Name: "change the mode of a file outside", Do: func(w World) error { return os.Chmod(w.outside("secret.txt"), 0o666) }, Open: inLandlock(notLandlocks)},
		{Name: "change the times of a file outside", Do: func(w World) error {
			return unix.Utimes(w.outside("secret.txt"), []unix.Timeval{{Sec: 1}, {Sec: 1}})
		}, Open: inLandlock(notLandlocks)},
		{Name: "give a file outside an attribute", Do: func(w World) error {
			return unix.Setxattr(w.outside("secret.txt"), "user.agent", []byte("x"), 0)
		}, Open: inLandlock(notLandlocks)},
		{Name: "move the workspace away", Do: func(w World) error { return moveAway(w.Workspace) }},
		{Name: "write a shared memory file of others", Do: func(w World) error { return write(w.Shared) }},
		{Name: "write a block device", Do: openBlockDevice, Unproven: true},
		{Name: "make a block device", Do: func(w World) error {
			return unix.Mknod(w.workspace("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
		}},
		{Name: "make a character device", Do: func(w World) error {
			return unix.Mknod(w.workspace("mem"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1)))
		}},
		{Name: "write a kernel setting", Do: func(World) error { return write("/proc/sys/kernel/core_pattern") }},
		{Name: "write sysrq-trigger", Do: func(World) error { return write("/proc/sysrq-trigger") }, Unproven: true},
		{Name: "drop the machine's caches", Do: func(World) error { return write("/proc/sys/vm/drop_caches") }},
		{Name: "write below /sys", Do: func(World) error {
			return writeFirst("/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling")
		}, Unproven: true},
		{Name: "read the kernel's memory", Do: func(World) error { return openFor("/proc/kcore", unix.O_RDONLY) }, Unproven: true},
		{Name: "read /dev/mem", Do: func(World) error { return openFor("/dev/mem", unix.O_RDONLY) }, Unproven: true},
		{Name: "read the kernel's log device", Do: func(World) error { return openFor("/dev/kmsg", unix.O_RDONLY) }, Unproven: true},
		{Name: "write the supervisor's program", Do: func(w World) error { return write(of(w.Supervisor, "exe")) }, Unproven: true},
	}
}

// secretAttempts try to read credentials and other secrets.
func secretAttempts() []Attempt {
	read := func(path func(World) string) func(World) error {
		return func(w World) error { return readSecret(path(w)) }
	}
	home := func(name string) func(World) error {
		return read(func(w World) string { return w.home(name) })
	}
	return []Attempt{
		{Name: "read an SSH key", Do: home(".ssh/id_rsa")},
		{Name: "read AWS credentials", Do: home(".aws/credentials")},
		{Name: "read .netrc", Do: home(".netrc")},
		{Name: "read gh's token", Do: home(".config/gh/hosts.yml")},
		{Name: "read a linked folder of credentials", Do: home(".kube/config")},
		{Name: "read where that link leads", Do: read(func(w World) string { return w.outside("kube/config") })},
		{Name: "read a denied file", Do: read(func(w World) string { return w.Denied })},
		{Name: "read RUNNER_TEMP", Do: read(func(w World) string { return filepath.Join(w.Temp, "cred") })},
		{Name: "list a folder of keys", Do: func(w World) error {
			entries, err := os.ReadDir(w.home(".ssh"))
			if err == nil && len(entries) == 0 {
				return ErrNothing
			}
			return err
		}},
		{Name: "read a denied file by a symbolic link", Do: func(w World) error { return w.tryThroughLink(os.Symlink, w.Denied, "deniedlink", readSecret) }},
		{Name: "read a denied file by a hard link", Do: func(w World) error { return w.tryThroughLink(os.Link, w.Denied, "deniedhard", readSecret) }},
		{Name: "read a denied file through /proc/self/root", Do: read(func(w World) string { return "/proc/self/root" + w.Denied })},
		{Name: "move a folder of denied files in", Do: func(w World) error {
			return errors.Join(os.Rename(filepath.Dir(w.Denied), w.workspace("stolen")), readSecret(w.workspace("stolen/"+filepath.Base(w.Denied))))
		}, Unproven: true},
		{Name: "learn that a key is there", Do: func(w World) error { return errorOf(os.Stat(w.home(".ssh/id_rsa"))) }, Open: inLandlock(notNames)},
		{Name: "watch a folder of keys", Do: func(w World) error { return watchFolder(w.home(".ssh")) }, Open: inLandlock(notNames)},
		{Name: "open a key by a descriptor of its path", Do: func(w World) error {
			fd, err := unix.Open(w.home(".ssh/id_rsa"), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			return readSecret(fmt.Sprintf("/proc/self/fd/%d", fd))
		}},
		{Name: "read a key through the supervisor's folder", Do: func(w World) error { return readSecret(of(w.Supervisor, "cwd"+w.home(".ssh/id_rsa"))) }},
		{Name: "map the supervisor's memory", Do: func(w World) error { return openFor(of(w.Supervisor, "mem"), unix.O_RDONLY) }, Unproven: true},
		{Name: "open the supervisor's control socket", Do: func(w World) error {
			return errorOf(unix.Open(of(w.Supervisor, "fd/3"), unix.O_RDWR, 0))
		}, Unproven: true},
		{Name: "read the password hashes", Do: func(World) error { return readAny("/etc/shadow") }},
	}
}

// hiddenAttempts attack hidden files in writable folders.
func hiddenAttempts() []Attempt {
	hidden := []Attempt{
		{Name: "read a hidden file of the workspace", Do: func(w World) error { return readSecret(w.workspace("conf/deep/cred")) }},
		{Name: "read a hidden file of a writable folder", Do: func(w World) error { return readSecret(w.extra("a/cred")) }},
		{Name: "move a hidden file", Do: func(w World) error { return moveAway(w.workspace("conf/deep/cred")) }},
		{Name: "move the folder of a hidden file", Do: func(w World) error { return moveAway(w.workspace("conf/deep")) }},
		{Name: "move a folder above a hidden file", Do: func(w World) error { return moveAway(w.workspace("conf")) }},
		{Name: "move a folder above a hidden file into another", Do: func(w World) error {
			return moveAndBack(w.workspace("conf/deep"), w.workspace("mnt/deep"))
		}},
		{Name: "move the folder of a hidden file in a writable folder", Do: func(w World) error { return moveAway(w.extra("a")) }},
		{Name: "exchange a folder above a hidden file", Do: func(w World) error {
			return swapAndBack(w.workspace("conf"), w.workspace("mnt"))
		}},
		{Name: "hard link a hidden file", Do: func(w World) error {
			return errors.Join(os.Link(w.workspace("conf/deep/cred"), w.workspace("linked")), os.Remove(w.workspace("linked")))
		}},
		{Name: "write a hidden file", Do: func(w World) error {
			return errors.Join(os.WriteFile(w.workspace("conf/deep/cred"), []byte(Secret), 0o644), readSecret(w.workspace("conf/deep/cred")))
		}},
	}
	for i := range hidden {
		hidden[i].Open, hidden[i].Hidden = inLandlock(refusesToStart), true
	}
	return hidden
}

// errOwnGit reports an attempt that only reached a check's disposable git folder. The checkout's is
// compared from outside.
var errOwnGit = errors.New("the git folder is the tree's own")

// ownGit reports whether the git folder belongs to the disposable tree of a check.
func (w World) ownGit() bool {
	_, err := os.Lstat(w.workspace(".git/lent"))
	return err == nil
}

// onGit is an attempt on the git folder of the checkout.
func onGit(do func(World) error) func(World) error {
	return func(w World) error {
		own := w.ownGit()
		err := do(w)
		if err == nil && own {
			return errOwnGit
		}
		return err
	}
}

// gitAttempts try to change the checkout's git folder.
func gitAttempts() []Attempt {
	git := func(do func(dir string) error) func(World) error {
		return onGit(func(w World) error { return do(w.workspace(".git")) })
	}
	return []Attempt{
		{Name: "read the token in git's configuration", Do: func(w World) error { return readSecret(w.workspace(".git/config")) }},
		{Name: "write a git hook", Do: git(func(dir string) error { return create(dir + "/hooks/pre-commit") }), Open: inLandlock(CheckedAfterwards)},
		{Name: "write git's configuration", Do: git(func(dir string) error { return write(dir + "/config") }), Open: inLandlock(CheckedAfterwards)},
		{Name: "replace git's configuration", Do: onGit(func(w World) error {
			return putInPlace(w.workspace("config"), w.workspace(".git/config"))
		}), Open: inLandlock(CheckedAfterwards)},
		{Name: "replace git's HEAD", Do: onGit(func(w World) error {
			return putInPlace(w.workspace("HEAD"), w.workspace(".git/HEAD"))
		}), Open: inLandlock(CheckedAfterwards)},
		{Name: "delete git's index", Do: git(func(dir string) error { return os.Remove(dir + "/description") }), Open: inLandlock(CheckedAfterwards)},
		{Name: "change the mode of a hook", Do: git(func(dir string) error { return os.Chmod(dir+"/hooks/kept", 0o755) }), Open: inLandlock(CheckedAfterwards)},
		{Name: "move .git away", Do: git(moveAway), Open: inLandlock(CheckedAfterwards)},
		{Name: "exchange .git with a folder", Do: onGit(func(w World) error {
			return swapAndBack(w.workspace(".git"), w.workspace("mnt"))
		}), Open: inLandlock(CheckedAfterwards)},
		{Name: "put a folder into the place of .git", Do: func(w World) error {
			return errors.Join(os.Mkdir(w.workspace("git"), 0o755), os.Rename(w.workspace("git"), w.workspace(".git")))
		}, Unproven: true},
	}
}

// processAttempts attack processes outside of the sandbox, and the supervisor.
func processAttempts() []Attempt {
	return []Attempt{
		{Name: "read the environment of agent-ci", Do: func(w World) error { return readSecret(of(w.Victim, "environ")) }},
		{Name: "open the memory of agent-ci", Do: func(w World) error { return openFor(of(w.Victim, "mem"), unix.O_RDONLY) }},
		{Name: "list the maps of agent-ci", Do: func(w World) error { return readAny(of(w.Victim, "maps")) }},
		{Name: "follow the descriptors of agent-ci", Do: func(w World) error { return errorOf(os.Readlink(of(w.Victim, "fd/1"))) }},
		{Name: "open the memory of the supervisor", Do: func(w World) error { return openFor(of(w.Supervisor, "mem"), unix.O_RDWR) }},
		{Name: "open a descriptor of the supervisor", Do: func(w World) error { return openFor(of(w.Supervisor, "fd/3"), unix.O_RDWR) }, Unproven: true},
		{Name: "trace agent-ci", Do: func(w World) error { return trace(w.Victim) }},
		{Name: "trace the supervisor", Do: func(w World) error { return trace(w.Supervisor) }},
		{Name: "read another process's memory", Do: func(w World) error { return call(unix.SYS_PROCESS_VM_READV, uintptr(w.Victim), 0, 0, 0, 0, 0) }},
		{Name: "write another process's memory", Do: func(w World) error { return call(unix.SYS_PROCESS_VM_WRITEV, uintptr(w.Victim), 0, 0, 0, 0, 0) }},
		{Name: "compare with another process", Do: func(w World) error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.Victim), 1, 0, 0, 0) }, Unproven: true},
		{Name: "signal agent-ci", Do: func(w World) error { return unix.Kill(w.Victim, unix.SIGCONT) }},
		{Name: "signal a thread of agent-ci", Do: func(w World) error { return unix.Tgkill(w.Victim, w.Victim, unix.SIGCONT) }},
		{Name: "signal agent-ci by a descriptor", Do: func(w World) error {
			return byPidfd(w.Victim, func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) })
		}},
		{Name: "take a descriptor of agent-ci", Do: func(w World) error {
			return byPidfd(w.Victim, func(fd int) error { return errorOf(unix.PidfdGetfd(fd, 1, 0)) })
		}},
		{Name: "limit agent-ci", Do: func(w World) error { return unix.Prlimit(w.Victim, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
		{Name: "limit the supervisor", Do: func(w World) error { return unix.Prlimit(w.Supervisor, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
		{Name: "slow agent-ci down", Do: slowDown, Open: inLandlock(notSignals)},
		{Name: "pin agent-ci to a processor", Do: func(w World) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(w.Victim, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(w.Victim, &set)
		}, Open: inLandlock(notSignals)},
		{Name: "attach to shared memory of others", Do: func(w World) error {
			id, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(w.SharedKey), 1, 0)
			if errno != 0 {
				return errno
			}
			return errorOf(unix.SysvShmAttach(int(id), 0, 0))
		}},
	}
}

// kernelAttempts use system calls that commands must not use.
func kernelAttempts() []Attempt {
	zero := func(number uintptr) func(World) error {
		return func(World) error { return call(number, 0, 0, 0, 0, 0, 0) }
	}
	return []Attempt{
		{Name: "mount a file system", Do: func(w World) error {
			if err := unix.Mount("tmpfs", w.workspace("mnt"), "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount(w.workspace("mnt"), 0)
		}},
		{Name: "mount over the workspace's .git", Do: func(w World) error { return unix.Mount(w.workspace("mnt"), w.workspace(".git"), "", unix.MS_BIND, "") }, Unproven: true},
		{Name: "make / writable", Do: func(World) error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }, Unproven: true},
		{Name: "make / writable by attributes", Do: func(World) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}, Unproven: true},
		{Name: "take a mount away", Do: func(World) error { return unix.Unmount("/proc", unix.MNT_DETACH) }, Unproven: true},
		{Name: "open a file system", Do: func(World) error { return errorOf(unix.Fsopen("tmpfs", 0)) }},
		{Name: "clone a mount", Do: func(w World) error { return errorOf(unix.OpenTree(unix.AT_FDCWD, w.Workspace, unix.OPEN_TREE_CLONE)) }},
		{Name: "change the root", Do: func(w World) error { return unix.Chroot(w.Workspace) }},
		{Name: "pivot the root", Do: func(w World) error { return unix.PivotRoot(w.Workspace, w.workspace("mnt")) }, Unproven: true},
		{Name: "make a user namespace", Do: func(World) error { return startByClone(unix.CLONE_NEWUSER) }},
		{Name: "make a mount namespace", Do: func(World) error { return startByClone(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
		{Name: "make a network namespace", Do: func(World) error { return startByClone(unix.CLONE_NEWUSER | unix.CLONE_NEWNET) }},
		{Name: "leave a namespace", Do: func(World) error { return unix.Unshare(unix.CLONE_NEWUTS) }},
		{Name: "make a namespace by clone3", Do: clone3},
		{Name: "enter a namespace of agent-ci", Do: func(w World) error {
			fd, err := unix.Open(of(w.Victim, "ns/net"), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, 0)
		}},
		{Name: "enter a namespace by a process descriptor", Do: func(w World) error {
			return byPidfd(w.Supervisor, func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) })
		}},
		{Name: "load a BPF program", Do: func(World) error {
			attr := [16]uint32{2, 4, 4, 1} // an array
			return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0, 0, 0)
		}},
		{Name: "watch events of the machine", Do: func(World) error {
			return errorOf(unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER5}, 0, -1, -1, 0))
		}},
		{Name: "handle page faults", Do: zero(unix.SYS_USERFAULTFD)},
		{Name: "set up io_uring", Do: func(World) error {
			var params [30]uint32
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0, 0, 0, 0)
		}},
		{Name: "list keys", Do: func(World) error {
			return call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, keyring(unix.KEY_SPEC_USER_KEYRING), 1, 0, 0, 0)
		}},
		{Name: "add a key", Do: func(World) error {
			return errorOf(unix.AddKey("user", "agent-ci-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING))
		}},
		{Name: "open a file by its handle", Do: func(w World) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Workspace, 0)
			if err != nil {
				return err
			}
			at, err := unix.Open(w.Workspace, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return errorOf(unix.OpenByHandleAt(at, handle, unix.O_RDONLY))
		}},
		{Name: "read the kernel's log", Do: func(World) error { return errorOf(unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)) }},
		{Name: "watch all of a file system", Do: func(World) error { return errorOf(unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)) }},
		{Name: "rename the machine", Do: func(World) error {
			var name unix.Utsname
			if err := unix.Uname(&name); err != nil {
				return err
			}
			return unix.Sethostname([]byte(unix.ByteSliceToString(name.Nodename[:])))
		}},
		{Name: "set the clock", Do: func(World) error {
			var now unix.Timeval
			return errors.Join(unix.Gettimeofday(&now), unix.Settimeofday(&now))
		}},
		{Name: "load a kernel module", Do: zero(unix.SYS_INIT_MODULE), Unproven: true},
		{Name: "load another kernel", Do: zero(unix.SYS_KEXEC_LOAD), Unproven: true},
		{Name: "restart the machine", Do: func(World) error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_ON) }, Unproven: true},
		{Name: "swap", Do: zero(unix.SYS_SWAPON), Unproven: true},
		{Name: "account processes", Do: func(World) error { return unix.Acct("") }, Unproven: true},
		{Name: "call by 32-bit numbers", Do: by32Bit},
		{Name: "call by x32 numbers", Do: func(World) error { return call(0x40000000+unix.SYS_GETPID, 0, 0, 0, 0, 0, 0) }, Unproven: true},
		{Name: "type into a terminal", Do: func(World) error { return typeInto(unix.TIOCSTI) }},
		{Name: "load a terminal's discipline", Do: func(World) error { return typeInto(unix.TIOCSETD) }},
		{Name: "take the console's messages", Do: func(World) error { return typeInto(unix.TIOCCONS) }},
		{Name: "type into a terminal by a longer number", Do: func(World) error { return typeInto(unix.TIOCSTI | 1<<32) }},
	}
}

// networkAttempts try to reach servers outside of the sandbox.
func networkAttempts() []Attempt {
	return []Attempt{
		{Name: "connect to the machine's loopback", Do: func(w World) error { return Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", w.TCP)) }},
		{Name: "connect to the machine's loopback by IPv6", Do: func(w World) error { return Dial("tcp6", fmt.Sprintf("[::ffff:127.0.0.1]:%d", w.TCP)) }, Unproven: true},
		{Name: "connect by multipath TCP", Do: func(w World) error { return connectTCP(unix.IPPROTO_MPTCP, w.TCP) }, Unproven: true},
		{Name: "send to the machine's loopback", Do: sendUDP},
		{Name: "connect to a host that is not here", Do: func(World) error { return Dial("udp4", "192.0.2.1:53") }},
		{Name: "connect to a socket outside", Do: func(w World) error { return dialUnix(w.Socket) }},
		{Name: "connect to a socket outside by a link", Do: func(w World) error { return w.tryThroughLink(os.Symlink, w.Socket, "sock", dialUnix) }},
		{Name: "send to a socket outside", Do: func(w World) error { return sendDatagram(w.Datagram) }},
		{Name: "connect to an abstract socket outside", Do: func(w World) error { return dialUnix("@" + w.Abstract) }},
		{Name: "send packets", Do: func(World) error { return errorOf(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) }},
		{Name: "send raw datagrams", Do: func(World) error { return errorOf(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) }},
		{Name: "reach the machine's host", Do: func(World) error { return errorOf(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) }, Unproven: true},
		{Name: "use the kernel's ciphers", Do: func(World) error { return errorOf(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) }, Unproven: true},
		{Name: "hear the kernel's events", Do: func(World) error {
			return errorOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT))
		}},
		{Name: "hear the audit", Do: func(World) error { return errorOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)) }, Unproven: true},
		{Name: "send packets by a longer family", Do: func(World) error { return call(unix.SYS_SOCKET, unix.AF_PACKET|1<<32, unix.SOCK_RAW, 0, 0, 0, 0) }},
		{Name: "hear the kernel's events by a longer protocol", Do: func(World) error {
			return call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT|1<<32, 0, 0)
		}},
	}
}

// rightsAttempts try to get more rights than commands have.
func rightsAttempts() []Attempt {
	return []Attempt{
		{Name: "have a capability", Do: func(World) error {
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(status)) {
				if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(value, "0\t\n ") != "" {
					return nil
				}
			}
			return ErrNothing
		}},
		{Name: "gain rights by executing", Do: func(World) error {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && set == 1 {
				return ErrNothing
			}
			return err
		}},
		{Name: "become another user", Do: func(World) error { return unix.Setresuid(1, 1, 1) }},
		{Name: "join a group", Do: func(World) error { return unix.Setgroups([]int{1}) }},
		{Name: "use an inherited descriptor", Do: inheritedDescriptor, Unproven: true},
		{Name: "lift a limit", Do: func(World) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})
		}, Unproven: true},
	}
}

// write opens a file for writing and changes nothing.
func write(path string) error { return openFor(path, unix.O_WRONLY) }

// writeFirst writes to the first existing path.
func writeFirst(paths ...string) error {
	var err error
	for _, path := range paths {
		if err = write(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

func openFor(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func moveAway(path string) error { return moveAndBack(path, path+"-gone") }

func moveAndBack(path, to string) error { return errors.Join(os.Rename(path, to), os.Rename(to, path)) }

// swapAndBack exchanges two names, and exchanges them again.
func swapAndBack(path, other string) error {
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	return errors.Join(swap(), swap())
}

func putInPlace(path, to string) error { return errors.Join(create(path), os.Rename(path, to)) }

// tryThroughLink makes a link to a file in the workspace and tries something with the link.
func (w World) tryThroughLink(link func(from, to string) error, file, name string, try func(path string) error) error {
	return errors.Join(link(file, w.workspace(name)), try(w.workspace(name)))
}

func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func readSecret(path string) error {
	content, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(content, []byte(Secret)) {
		return ErrNothing
	}
	return err
}

// watchFolder watches a folder for new files. A watch on an empty read-only folder is worth nothing,
// because such a folder covers the real one.
func watchFolder(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE)
	if err == nil {
		entries, _ := os.ReadDir(path) // an empty folder covers the real one
		if stat, failed := os.Stat(path); failed == nil && len(entries) == 0 && stat.Mode().Perm() == 0o555 {
			return ErrNothing
		}
	}
	return err
}

func readAny(path string) error {
	content, err := os.ReadFile(path)
	if err == nil && len(content) == 0 {
		return ErrNothing
	}
	return err
}

func errorOf[T any](_ T, err error) error { return err }

func byPidfd(pid int, do func(fd int) error) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return do(fd)
}

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// slowDown lowers the victim's priority by one, because raising it requires a right.
func slowDown(w World) error {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, w.Victim)
	if err != nil {
		return err
	}
	nice := 20 - now // getpriority(2), "C library/kernel differences"
	return unix.Setpriority(unix.PRIO_PROCESS, w.Victim, nice+1)
}

func keyring(id int) uintptr { return uintptr(id) }

func trace(pid int) error {
	runtime.LockOSThread()
	return unix.PtraceSeize(pid)
}

// startByClone starts a process by clone(2), as the kernel sees it.
func startByClone(flags uintptr) error {
	runtime.LockOSThread()
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

// clone3 requests a namespace in memory that a filter cannot read. A wrong size shows whether the kernel
// got the call.
func clone3(World) error {
	err := call(unix.SYS_CLONE3, 0, 1, 0, 0, 0, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// by32Bit calls getpid with another architecture's number, the usual way around a filter.
func by32Bit(World) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("not on this processor")
	}
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3} // mov eax, 20; int 0x80; ret
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	entry := unsafe.Pointer(&page)
	(*(*func())(unsafe.Pointer(&entry)))()
	return nil
}

// typeInto is refused by the filter, or by the kernel since a pipe is no
// terminal.
func typeInto(request uintptr) error {
	var c byte
	err := call(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&c)), 0, 0, 0)
	if errors.Is(err, unix.ENOTTY) {
		return nil
	}
	return err
}

// Dial connects and closes the connection.
func Dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

func dialUnix(address string) error { return Dial("unix", address) }

func connectTCP(protocol, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// sendUDP recognises a receiver by its answer.
func sendUDP(w World) error {
	c, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", w.UDP))
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 4))
	return err
}

func sendDatagram(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}

// BindSocket makes a socket without a listener.
func BindSocket(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Close(fd))
}

// openBlockDevice tries all block devices.
func openBlockDevice(World) error {
	table, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return err
	}
	err = ErrNothing
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) == 4 {
			if err = openFor("/dev/"+fields[3], unix.O_RDONLY); err == nil {
				return nil
			}
		}
	}
	return err
}

// inheritedDescriptor searches a descriptor inherited from outside, except standard streams.
func inheritedDescriptor(World) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue // Go's own look at its limits
		}
		if fd > 2 && err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, fmt.Sprintf("/proc/%d/fd", os.Getpid())) {
			fmt.Println(fd, target)
			return nil
		}
	}
	return ErrNothing
}
