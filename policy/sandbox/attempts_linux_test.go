package sandbox

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

// world is what there is to attack. It is handed to the attempts as JSON.
type world struct {
	Workspace string // writable
	Outside   string // holds secret.txt, which is world-readable, and may be written by the user
	Home      string
	Denied    string // a file that policy.deny_read names
	Extra     string // writable besides; a/cred in it is denied, as conf/deep/cred in the workspace
	Temp      string // RUNNER_TEMP, holds cred
	Victim    int    // process id of whoever opened the sandbox, outside
	Socket    string // a named socket that somebody outside listens on
	Datagram  string // the same for datagrams
	Abstract  string // name of an abstract socket, without its first byte
	TCP, UDP  int    // ports on the machine's loopback
	SharedKey int    // of a System V segment
	Shared    string // file in /dev/shm
	Bare      bool   // nothing is confined
	Secret    string // stands in all that must not be read, and in the victim's environment
}

func (w world) outside(name string) string   { return filepath.Join(w.Outside, name) }
func (w world) workspace(name string) string { return filepath.Join(w.Workspace, name) }

// attempt tries to get out. No error means that it did.
type attempt struct {
	name string
	do   func(world) error
	// open says in which tier the attempt succeeds, and what is done about it.
	open map[string]string
	// unproven is true where trying without a sandbox would do harm or needs what
	// not every machine has. All others have to succeed there for user 0.
	unproven bool
	// roots is true where it is user 0's thing that is attacked: it is open to no
	// other.
	roots bool
}

var errNothing = errors.New("nothing of the secret is there")

const (
	checkedAfterwards = "Landlock grants the workspace whole; what git keeps is compared afterwards"
	notLandlocks      = "Landlock does not cover the attributes of files; the owner outside is the user who started agent-ci"
	notNames          = "Landlock covers what is in files and folders, not that they are there"
	refusesToStart    = "Landlock grants a folder with all that is in it; a denied file in one refuses the start"
	notSignals        = "Landlock covers signals only; priorities of the user's other processes can be changed"
)

func attempts() []attempt {
	return slices.Concat(fileAttempts(), secretAttempts(), hiddenAttempts(), gitAttempts(), processAttempts(), kernelAttempts(), networkAttempts(), rightsAttempts(), attributeAttempts(), setidAttempts())
}

func inLandlock(why string) map[string]string { return map[string]string{"landlock": why} }

func fileAttempts() []attempt {
	return []attempt{
		{name: "write a file outside", do: func(w world) error { return write(w.outside("secret.txt")) }},
		{name: "create a file outside", do: func(w world) error { return create(w.outside("new")) }},
		{name: "truncate a file outside", do: func(w world) error { return os.Truncate(w.outside("truncate"), 0) }},
		{name: "delete a file outside", do: func(w world) error { return os.Remove(w.outside("delete")) }},
		{name: "make a folder outside", do: func(w world) error { return os.Mkdir(w.outside("folder"), 0o755) }},
		{name: "make a named pipe outside", do: func(w world) error { return unix.Mkfifo(w.outside("pipe"), 0o600) }},
		{name: "make a symbolic link outside", do: func(w world) error { return os.Symlink("/", w.outside("link")) }},
		{name: "bind a socket outside", do: func(w world) error { return bindSocket(w.outside("bound.sock")) }},
		{name: "move a file out", do: func(w world) error {
			return errors.Join(create(w.workspace("mine")), os.Rename(w.workspace("mine"), w.outside("mine")))
		}},
		{name: "move a file in", do: func(w world) error { return os.Rename(w.outside("move"), w.workspace("moved")) }},
		{name: "hard link a file in and write it", do: func(w world) error {
			return errors.Join(os.Link(w.outside("secret.txt"), w.workspace("hard")), write(w.workspace("hard")))
		}},
		{name: "write through a symbolic link", do: func(w world) error {
			return errors.Join(os.Symlink(w.outside("secret.txt"), w.workspace("soft")), write(w.workspace("soft")))
		}},
		{name: "create through a linked folder", do: func(w world) error {
			return errors.Join(os.Symlink(w.Outside, w.workspace("softdir")), create(w.workspace("softdir/new2")))
		}},
		{name: "write through /proc/self/root", do: func(w world) error { return write("/proc/self/root" + w.outside("secret.txt")) }},
		{name: "write through /proc/self/cwd", do: func(w world) error {
			return write("/proc/self/cwd/../" + filepath.Base(w.Outside) + "/secret.txt")
		}},
		{name: "write through the supervisor's root", do: func(w world) error {
			return write(fmt.Sprintf("/proc/%d/root%s", os.Getppid(), w.outside("secret.txt")))
		}},
		{name: "change the mode of a file outside", do: func(w world) error { return os.Chmod(w.outside("secret.txt"), 0o666) }, open: inLandlock(notLandlocks)},
		{name: "change the times of a file outside", do: func(w world) error {
			return unix.Utimes(w.outside("secret.txt"), []unix.Timeval{{Sec: 1}, {Sec: 1}})
		}, open: inLandlock(notLandlocks)},
		{name: "give a file outside an attribute", do: func(w world) error {
			return unix.Setxattr(w.outside("secret.txt"), "user.agent", []byte("x"), 0)
		}, open: inLandlock(notLandlocks)},
		{name: "move the workspace away", do: func(w world) error {
			return errors.Join(os.Rename(w.Workspace, w.Workspace+"-gone"), os.Rename(w.Workspace+"-gone", w.Workspace))
		}},
		{name: "write a shared memory file of others", do: func(w world) error { return write(w.Shared) }},
		{name: "write a block device", do: openBlockDevice, unproven: true},
		{name: "make a block device", do: func(w world) error {
			return unix.Mknod(w.workspace("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
		}},
		{name: "make a character device", do: func(w world) error {
			return unix.Mknod(w.workspace("mem"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1)))
		}},
		{name: "write a kernel setting", do: func(world) error { return write("/proc/sys/kernel/core_pattern") }},
		{name: "write sysrq-trigger", do: func(world) error { return write("/proc/sysrq-trigger") }, unproven: true},
		{name: "drop the machine's caches", do: func(world) error { return write("/proc/sys/vm/drop_caches") }},
		{name: "write below /sys", do: func(world) error {
			return write("/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling")
		}, unproven: true},
		{name: "read the kernel's memory", do: func(world) error { return openFor("/proc/kcore", unix.O_RDONLY) }, unproven: true},
		{name: "read /dev/mem", do: func(world) error { return openFor("/dev/mem", unix.O_RDONLY) }, unproven: true},
		{name: "read the kernel's log device", do: func(world) error { return openFor("/dev/kmsg", unix.O_RDONLY) }, unproven: true},
		{name: "write the supervisor's program", do: func(world) error { return write(fmt.Sprintf("/proc/%d/exe", os.Getppid())) }, unproven: true},
	}
}

func secretAttempts() []attempt {
	read := func(path func(world) string) func(world) error {
		return func(w world) error { return readSecret(w, path(w)) }
	}
	home := func(name string) func(world) error {
		return read(func(w world) string { return filepath.Join(w.Home, name) })
	}
	return []attempt{
		{name: "read an SSH key", do: home(".ssh/id_rsa")},
		{name: "read AWS credentials", do: home(".aws/credentials")},
		{name: "read .netrc", do: home(".netrc")},
		{name: "read gh's token", do: home(".config/gh/hosts.yml")},
		{name: "read a linked folder of credentials", do: home(".kube/config")},
		{name: "read where that link leads", do: read(func(w world) string { return w.outside("kube/config") })},
		{name: "read a denied file", do: read(func(w world) string { return w.Denied })},
		{name: "read RUNNER_TEMP", do: read(func(w world) string { return filepath.Join(w.Temp, "cred") })},
		{name: "list a folder of keys", do: func(w world) error {
			entries, err := os.ReadDir(filepath.Join(w.Home, ".ssh"))
			if err == nil && len(entries) == 0 {
				return errNothing
			}
			return err
		}},
		{name: "read a denied file by a symbolic link", do: func(w world) error {
			return errors.Join(os.Symlink(w.Denied, w.workspace("deniedlink")), readSecret(w, w.workspace("deniedlink")))
		}},
		{name: "read a denied file by a hard link", do: func(w world) error {
			return errors.Join(os.Link(w.Denied, w.workspace("deniedhard")), readSecret(w, w.workspace("deniedhard")))
		}},
		{name: "read a denied file through /proc/self/root", do: read(func(w world) string { return "/proc/self/root" + w.Denied })},
		{name: "move a folder of denied files in", do: func(w world) error {
			return errors.Join(os.Rename(filepath.Dir(w.Denied), w.workspace("stolen")), readSecret(w, w.workspace("stolen/"+filepath.Base(w.Denied))))
		}, unproven: true},
		{name: "learn that a key is there", do: func(w world) error { return exists(filepath.Join(w.Home, ".ssh/id_rsa")) }, open: inLandlock(notNames)},
		{name: "watch a folder of keys", do: func(w world) error { return watchFolder(filepath.Join(w.Home, ".ssh")) }, open: inLandlock(notNames)},
		{name: "open a key by a descriptor of its path", do: func(w world) error {
			fd, err := unix.Open(filepath.Join(w.Home, ".ssh/id_rsa"), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			return readSecret(w, fmt.Sprintf("/proc/self/fd/%d", fd))
		}},
		{name: "read a key through the supervisor's folder", do: func(w world) error {
			return readSecret(w, fmt.Sprintf("/proc/%d/cwd%s", os.Getppid(), filepath.Join(w.Home, ".ssh/id_rsa")))
		}},
		{name: "map the supervisor's memory", do: func(world) error { return openFor(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDONLY) }, unproven: true},
		{name: "open the supervisor's control socket", do: func(world) error {
			return fdOf(unix.Open(fmt.Sprintf("/proc/%d/fd/3", os.Getppid()), unix.O_RDWR, 0))
		}, unproven: true},
		{name: "read the password hashes", do: func(world) error { return readAny("/etc/shadow") }},
	}
}

// hiddenAttempts are on what is hidden in folders that commands may write to.
func hiddenAttempts() []attempt {
	away := func(path string) error {
		return errors.Join(os.Rename(path, path+"-gone"), os.Rename(path+"-gone", path))
	}
	swap := func(path, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	hidden := []attempt{
		{name: "read a hidden file of the workspace", do: func(w world) error { return readSecret(w, w.workspace("conf/deep/cred")) }},
		{name: "read a hidden file of a writable folder", do: func(w world) error { return readSecret(w, filepath.Join(w.Extra, "a/cred")) }},
		{name: "move a hidden file", do: func(w world) error { return away(w.workspace("conf/deep/cred")) }},
		{name: "move the folder of a hidden file", do: func(w world) error { return away(w.workspace("conf/deep")) }},
		{name: "move a folder above a hidden file", do: func(w world) error { return away(w.workspace("conf")) }},
		{name: "move a folder above a hidden file into another", do: func(w world) error {
			return errors.Join(os.Rename(w.workspace("conf/deep"), w.workspace("mnt/deep")), os.Rename(w.workspace("mnt/deep"), w.workspace("conf/deep")))
		}},
		{name: "move the folder of a hidden file in a writable folder", do: func(w world) error { return away(filepath.Join(w.Extra, "a")) }},
		{name: "exchange a folder above a hidden file", do: func(w world) error {
			return errors.Join(swap(w.workspace("conf"), w.workspace("mnt")), swap(w.workspace("conf"), w.workspace("mnt")))
		}},
		{name: "hard link a hidden file", do: func(w world) error {
			return errors.Join(os.Link(w.workspace("conf/deep/cred"), w.workspace("linked")), os.Remove(w.workspace("linked")))
		}},
		{name: "write a hidden file", do: func(w world) error {
			return errors.Join(os.WriteFile(w.workspace("conf/deep/cred"), []byte(w.Secret), 0o644), readSecret(w, w.workspace("conf/deep/cred")))
		}},
	}
	for i := range hidden {
		hidden[i].open = inLandlock(refusesToStart)
	}
	return hidden
}

func gitAttempts() []attempt {
	git := func(do func(dir string) error) func(world) error {
		return func(w world) error { return do(w.workspace(".git")) }
	}
	return []attempt{
		{name: "read the token in git's configuration", do: func(w world) error { return readSecret(w, w.workspace(".git/config")) }},
		{name: "write a git hook", do: git(func(dir string) error { return create(dir + "/hooks/pre-commit") }), open: inLandlock(checkedAfterwards)},
		{name: "write git's configuration", do: git(func(dir string) error { return write(dir + "/config") }), open: inLandlock(checkedAfterwards)},
		{name: "replace git's configuration", do: func(w world) error {
			return errors.Join(create(w.workspace("config")), os.Rename(w.workspace("config"), w.workspace(".git/config")))
		}, open: inLandlock(checkedAfterwards)},
		{name: "replace git's HEAD", do: func(w world) error {
			return errors.Join(create(w.workspace("HEAD")), os.Rename(w.workspace("HEAD"), w.workspace(".git/HEAD")))
		}, open: inLandlock(checkedAfterwards)},
		{name: "delete git's index", do: git(func(dir string) error { return os.Remove(dir + "/description") }), open: inLandlock(checkedAfterwards)},
		{name: "change the mode of a hook", do: git(func(dir string) error { return os.Chmod(dir+"/hooks/kept", 0o755) }), open: inLandlock(checkedAfterwards)},
		{name: "move .git away", do: git(func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-gone"), os.Rename(dir+"-gone", dir))
		}), open: inLandlock(checkedAfterwards)},
	}
}

func processAttempts() []attempt {
	return []attempt{
		{name: "read the environment of agent-ci", do: func(w world) error { return readSecret(w, fmt.Sprintf("/proc/%d/environ", w.Victim)) }},
		{name: "open the memory of agent-ci", do: func(w world) error { return openFor(fmt.Sprintf("/proc/%d/mem", w.Victim), unix.O_RDONLY) }},
		{name: "list the maps of agent-ci", do: func(w world) error { return readAny(fmt.Sprintf("/proc/%d/maps", w.Victim)) }},
		{name: "follow the descriptors of agent-ci", do: func(w world) error {
			_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", w.Victim))
			return err
		}},
		{name: "open the memory of the supervisor", do: func(world) error { return openFor(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDWR) }},
		{name: "open a descriptor of the supervisor", do: func(world) error { return openFor(fmt.Sprintf("/proc/%d/fd/3", os.Getppid()), unix.O_RDWR) }, unproven: true},
		{name: "trace agent-ci", do: func(w world) error { return trace(w.Victim) }},
		{name: "trace the supervisor", do: func(world) error { return trace(os.Getppid()) }},
		{name: "read another process's memory", do: func(w world) error { return call(unix.SYS_PROCESS_VM_READV, uintptr(w.Victim), 0, 0, 0, 0, 0) }},
		{name: "write another process's memory", do: func(w world) error { return call(unix.SYS_PROCESS_VM_WRITEV, uintptr(w.Victim), 0, 0, 0, 0, 0) }},
		{name: "compare with another process", do: func(w world) error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.Victim), 1, 0, 0, 0) }, unproven: true},
		{name: "signal agent-ci", do: func(w world) error { return unix.Kill(w.Victim, unix.SIGCONT) }},
		{name: "signal a thread of agent-ci", do: func(w world) error { return unix.Tgkill(w.Victim, w.Victim, unix.SIGCONT) }},
		{name: "signal agent-ci by a descriptor", do: func(w world) error {
			fd, err := unix.PidfdOpen(w.Victim, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		}},
		{name: "take a descriptor of agent-ci", do: func(w world) error {
			fd, err := unix.PidfdOpen(w.Victim, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, 1, 0)
			return err
		}},
		{name: "limit agent-ci", do: func(w world) error { return unix.Prlimit(w.Victim, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
		{name: "limit the supervisor", do: func(world) error { return unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
		{name: "slow agent-ci down", do: func(w world) error { return unix.Setpriority(unix.PRIO_PROCESS, w.Victim, 1) }, open: inLandlock(notSignals)},
		{name: "pin agent-ci to a processor", do: func(w world) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(w.Victim, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(w.Victim, &set)
		}, open: inLandlock(notSignals)},
		{name: "attach to shared memory of others", do: func(w world) error {
			id, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(w.SharedKey), 1, 0)
			if errno != 0 {
				return errno
			}
			_, err := unix.SysvShmAttach(int(id), 0, 0)
			return err
		}},
	}
}

func kernelAttempts() []attempt {
	zero := func(number uintptr) func(world) error {
		return func(world) error { return call(number, 0, 0, 0, 0, 0, 0) }
	}
	return []attempt{
		{name: "mount a file system", do: func(w world) error {
			if err := unix.Mount("tmpfs", w.workspace("mnt"), "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount(w.workspace("mnt"), 0)
		}},
		{name: "mount over the workspace's .git", do: func(w world) error { return unix.Mount(w.workspace("mnt"), w.workspace(".git"), "", unix.MS_BIND, "") }, unproven: true},
		{name: "make / writable", do: func(world) error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }, unproven: true},
		{name: "make / writable by attributes", do: func(world) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}, unproven: true},
		{name: "take a mount away", do: func(world) error { return unix.Unmount("/proc", unix.MNT_DETACH) }, unproven: true},
		{name: "open a file system", do: func(world) error { return fdOf(unix.Fsopen("tmpfs", 0)) }},
		{name: "clone a mount", do: func(w world) error { return fdOf(unix.OpenTree(unix.AT_FDCWD, w.Workspace, unix.OPEN_TREE_CLONE)) }},
		{name: "change the root", do: func(w world) error { return unix.Chroot(w.Workspace) }},
		{name: "pivot the root", do: func(w world) error { return unix.PivotRoot(w.Workspace, w.workspace("mnt")) }, unproven: true},
		{name: "make a user namespace", do: func(world) error { return cloned(unix.CLONE_NEWUSER) }},
		{name: "make a mount namespace", do: func(world) error { return cloned(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
		{name: "make a network namespace", do: func(world) error { return cloned(unix.CLONE_NEWUSER | unix.CLONE_NEWNET) }},
		{name: "leave a namespace", do: func(world) error { return unix.Unshare(unix.CLONE_NEWUTS) }},
		{name: "make a namespace by clone3", do: clone3},
		{name: "enter a namespace of agent-ci", do: func(w world) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", w.Victim), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, 0)
		}},
		{name: "enter a namespace by a process descriptor", do: func(world) error {
			fd, err := unix.PidfdOpen(os.Getppid(), 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWNET)
		}},
		{name: "load a BPF program", do: func(world) error {
			attr := [16]uint32{2, 4, 4, 1} // an array
			return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0, 0, 0)
		}},
		{name: "watch events of the machine", do: func(world) error {
			return fdOf(unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER5}, 0, -1, -1, 0))
		}},
		{name: "handle page faults", do: func(world) error { return call(unix.SYS_USERFAULTFD, 0, 0, 0, 0, 0, 0) }},
		{name: "set up io_uring", do: func(world) error {
			var params [30]uint32
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0, 0, 0, 0)
		}},
		{name: "list keys", do: func(world) error {
			return call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, keyring(unix.KEY_SPEC_USER_KEYRING), 1, 0, 0, 0)
		}},
		{name: "add a key", do: func(world) error {
			_, err := unix.AddKey("user", "agent-ci-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{name: "open a file by its handle", do: func(w world) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Workspace, 0)
			if err != nil {
				return err
			}
			at, err := unix.Open(w.Workspace, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return fdOf(unix.OpenByHandleAt(at, handle, unix.O_RDONLY))
		}},
		{name: "read the kernel's log", do: func(world) error {
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
			return err
		}},
		{name: "watch all of a file system", do: func(world) error { return fdOf(unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)) }},
		{name: "rename the machine", do: func(world) error {
			var name unix.Utsname
			if err := unix.Uname(&name); err != nil {
				return err
			}
			return unix.Sethostname([]byte(unix.ByteSliceToString(name.Nodename[:])))
		}},
		{name: "set the clock", do: func(world) error {
			var now unix.Timeval
			return errors.Join(unix.Gettimeofday(&now), unix.Settimeofday(&now))
		}},
		{name: "load a kernel module", do: zero(unix.SYS_INIT_MODULE), unproven: true},
		{name: "load another kernel", do: zero(unix.SYS_KEXEC_LOAD), unproven: true},
		{name: "restart the machine", do: func(world) error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_ON) }, unproven: true},
		{name: "swap", do: func(w world) error { return call(unix.SYS_SWAPON, 0, 0, 0, 0, 0, 0) }, unproven: true},
		{name: "account processes", do: func(world) error { return unix.Acct("") }, unproven: true},
		{name: "call by 32-bit numbers", do: by32Bit},
		{name: "call by x32 numbers", do: func(world) error { return call(0x40000000+unix.SYS_GETPID, 0, 0, 0, 0, 0, 0) }, unproven: true},
		{name: "type into a terminal", do: func(world) error { return typeInto(unix.TIOCSTI) }},
		{name: "load a terminal's discipline", do: func(world) error { return typeInto(unix.TIOCSETD) }},
		{name: "take the console's messages", do: func(world) error { return typeInto(unix.TIOCCONS) }},
		{name: "type into a terminal by a longer number", do: func(world) error { return typeInto(unix.TIOCSTI | 1<<32) }},
	}
}

func networkAttempts() []attempt {
	return []attempt{
		{name: "connect to the machine's loopback", do: func(w world) error { return dial("tcp4", fmt.Sprintf("127.0.0.1:%d", w.TCP)) }},
		{name: "connect to the machine's loopback by IPv6", do: func(w world) error { return dial("tcp6", fmt.Sprintf("[::ffff:127.0.0.1]:%d", w.TCP)) }, unproven: true},
		{name: "connect by multipath TCP", do: func(w world) error { return connectTCP(unix.IPPROTO_MPTCP, w.TCP) }, unproven: true},
		{name: "send to the machine's loopback", do: sendUDP},
		{name: "connect to a host that is not here", do: func(world) error { return dial("udp4", "192.0.2.1:53") }},
		{name: "connect to a socket outside", do: func(w world) error { return dial("unix", w.Socket) }},
		{name: "connect to a socket outside by a link", do: func(w world) error {
			return errors.Join(os.Symlink(w.Socket, w.workspace("sock")), dial("unix", w.workspace("sock")))
		}},
		{name: "send to a socket outside", do: func(w world) error { return sendDatagram(w.Datagram) }},
		{name: "connect to an abstract socket outside", do: func(w world) error { return dial("unix", "@"+w.Abstract) }},
		{name: "send packets", do: func(world) error { return fdOf(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) }},
		{name: "send raw datagrams", do: func(world) error { return fdOf(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) }},
		{name: "reach the machine's host", do: func(world) error { return fdOf(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) }, unproven: true},
		{name: "use the kernel's ciphers", do: func(world) error { return fdOf(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) }, unproven: true},
		{name: "hear the kernel's events", do: func(world) error {
			return fdOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT))
		}},
		{name: "hear the audit", do: func(world) error { return fdOf(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)) }, unproven: true},
		{name: "send packets by a longer family", do: func(world) error { return call(unix.SYS_SOCKET, unix.AF_PACKET|1<<32, unix.SOCK_RAW, 0, 0, 0, 0) }},
		{name: "hear the kernel's events by a longer protocol", do: func(world) error {
			return call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT|1<<32, 0, 0)
		}},
	}
}

func rightsAttempts() []attempt {
	return []attempt{
		{name: "have a capability", do: func(world) error {
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(status)) {
				if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(value, "0\t\n ") != "" {
					return nil
				}
			}
			return errNothing
		}},
		{name: "gain rights by executing", do: func(world) error {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && set == 1 {
				return errNothing
			}
			return err
		}},
		{name: "become another user", do: func(world) error { return unix.Setresuid(1, 1, 1) }},
		{name: "join a group", do: func(world) error { return unix.Setgroups([]int{1}) }},
		{name: "use an inherited descriptor", do: inheritedDescriptor, unproven: true},
		{name: "lift a limit", do: func(world) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})
		}, unproven: true},
	}
}

// write opens the first of the paths that exists for writing and changes nothing.
func write(paths ...string) error {
	var err error
	for _, path := range paths {
		if err = openFor(path, unix.O_WRONLY); !errors.Is(err, os.ErrNotExist) {
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

func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func readSecret(w world, path string) error {
	content, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(content, []byte(w.Secret)) {
		return errNothing
	}
	return err
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

func watchFolder(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE)
	if err == nil {
		entries, _ := os.ReadDir(path) // an empty one covers it
		if stat, failed := os.Stat(path); failed == nil && len(entries) == 0 && stat.Mode().Perm() == 0o555 {
			return errNothing
		}
	}
	return err
}

func readAny(path string) error {
	content, err := os.ReadFile(path)
	if err == nil && len(content) == 0 {
		return errNothing
	}
	return err
}

func fdOf(_ int, err error) error { return err }

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func keyring(id int) uintptr { return uintptr(id) }

func trace(pid int) error {
	runtime.LockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	return nil
}

// cloned starts a process by clone(2), as the kernel sees it.
func cloned(flags uintptr) error {
	runtime.LockOSThread()
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

// clone3 asks for a namespace in a way that a filter can't look into. A wrong
// size tells whether the kernel looked at the call at all.
func clone3(world) error {
	err := call(unix.SYS_CLONE3, 0, 1, 0, 0, 0, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// by32Bit calls getpid by the numbers of another architecture, which is how a
// filter of the first is got around.
func by32Bit(world) error {
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

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

func connectTCP(protocol, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// sendUDP knows by the answer that somebody got it.
func sendUDP(w world) error {
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

func bindSocket(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// openBlockDevice tries all that the kernel names.
func openBlockDevice(world) error {
	table, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return err
	}
	err = errNothing
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) == 4 {
			if err = openFor("/dev/"+fields[3], unix.O_RDONLY); err == nil {
				return nil
			}
		}
	}
	return err
}

// inheritedDescriptor looks for one that neither the command's own program
// opened nor is its input and output.
func inheritedDescriptor(world) error {
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
	return errNothing
}
