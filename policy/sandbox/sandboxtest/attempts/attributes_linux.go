package attempts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is a file of the machine, with the attributes that its owner can change outside of a sandbox.
type target struct {
	name    string
	path    func(World) string
	changes []string // of attributeChanges
	roots   bool     // user 0 owns it, so that others are held everywhere
}

// attributeChanges rewrite existing values, so an attempt does no harm.
var attributeChanges = map[string]func(path string, now unix.Stat_t) error{
	"mode": func(path string, now unix.Stat_t) error { return unix.Chmod(path, now.Mode&0o7777) },
	"mode by a descriptor": func(path string, now unix.Stat_t) error {
		return byDescriptor(path, func(fd int) error { return unix.Fchmod(fd, now.Mode&0o7777) })
	},
	"times": func(path string, now unix.Stat_t) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{now.Atim, now.Mtim}, 0)
	},
	"times to now": func(path string, _ unix.Stat_t) error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0) },
	"owner":        func(path string, now unix.Stat_t) error { return unix.Chown(path, int(now.Uid), int(now.Gid)) },
	"access list":  func(path string, now unix.Stat_t) error { return setAccessList(path, now.Mode) },
	"flags": func(path string, _ unix.Stat_t) error {
		return byDescriptor(path, func(fd int) error {
			flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
			if err != nil {
				return err
			}
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
		})
	},
}

func byDescriptor(path string, change func(fd int) error) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(change(fd), unix.Close(fd))
}

// setAccessList gives a file an access list equal to its mode (acl(5)).
func setAccessList(path string, mode uint32) error {
	const user, group, others, nobodyElse = 0x01, 0x04, 0x20, ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version
	for _, entry := range []struct{ who, shift uint32 }{{user, 6}, {group, 3}, {others, 0}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry.who))
		list = binary.LittleEndian.AppendUint16(list, uint16(mode>>entry.shift&7))
		list = binary.LittleEndian.AppendUint32(list, nobodyElse)
	}
	return unix.Setxattr(path, "system.posix_acl_access", list, 0)
}

var everyChange = []string{"mode", "mode by a descriptor", "times", "times to now", "owner"}

// targets returns the files whose attributes the attempts try to change.
func targets() []target {
	machine := func(path string, changes ...string) target {
		return target{name: path, path: func(World) string { return path }, changes: changes, roots: true}
	}
	device := func(path string, changes ...string) target { // not only for root, since every writer of a device may set its times to now
		return target{name: path, path: func(World) string { return path }, changes: changes}
	}
	file := func(name string, path func(World) string, changes ...string) target {
		return target{name: name, path: path, changes: append(changes, everyChange...)}
	}
	return []target{
		device("/dev/null", everyChange...),
		device("/dev/zero", everyChange...),
		device("/dev/full", everyChange...),
		device("/dev/random", everyChange...),
		device("/dev/urandom", everyChange...),
		device("/dev/tty", "mode", "times", "times to now", "owner"),
		machine("/dev", everyChange...),
		machine("/proc/uptime", everyChange...),
		machine("/proc/net/dev", everyChange...),
		machine("/proc/kcore", "mode", "owner"),
		machine("/sys/kernel/uevent_seqnum", everyChange...),
		machine("/", everyChange...),
		machine("/etc/passwd", everyChange...),
		{name: "the standard input", path: func(World) string { return "/proc/self/fd/0" }, changes: []string{"mode", "times"}, roots: true},
		file("a file outside", func(w World) string { return w.outside("secret.txt") }, "access list", "flags"),
		file("a covered file", func(w World) string { return w.home(".netrc") }, "access list", "flags"),
		file("a covered folder", func(w World) string { return w.home(".ssh") }, "access list", "flags"),
		file("a denied file", func(w World) string { return w.Denied }, "access list", "flags"),
		file("a covered socket", func(w World) string { return w.Socket }),
		file(fileOfGits, func(w World) string { return w.workspace(".git/HEAD") }, "access list", "flags"),
	}
}

const fileOfGits = "a file of git's"

// attributeAttempts returns an attempt for each target, and further ones on covered files and mounts.
func attributeAttempts() []Attempt {
	all := []Attempt{
		{Name: "write a covered file", Do: func(w World) error { return write(w.home(".netrc")) }},
		{Name: "change the mode of what is mounted", Do: changeMounts, Open: inLandlock(notLandlocks), Roots: true},
	}
	for _, t := range targets() {
		do := t.change
		if t.name == fileOfGits {
			do = onGit(do)
		}
		all = append(all, Attempt{
			Name: "change attributes of " + t.name, Do: do, Open: inLandlock(notLandlocks), Roots: t.roots,
			Unproven: t.name == "a covered socket" || t.name == "/proc/kcore",
		})
	}
	return all
}

// change succeeds if one of the changes succeeds. Without confinement all must succeed, which proves that
// each attack works.
func (t target) change(w World) error {
	var now unix.Stat_t
	if err := unix.Stat(t.path(w), &now); err != nil {
		return err
	}
	var failed []error
	for _, name := range t.changes {
		if err := attributeChanges[name](t.path(w), now); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(failed) == len(t.changes) || w.Bare {
		return errors.Join(failed...)
	}
	return nil
}

// changeMounts tries all mounts except the commands' own.
func changeMounts(w World) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	tree, err := os.Getwd() // of a check, in the place of the workspace
	if err != nil {
		return err
	}
	own := []string{
		w.Workspace, tree, w.workspace("conf"), w.workspace("conf/deep"), w.Extra, w.extra("a"), w.Cache, w.Home,
		"/tmp", "/var/tmp", "/dev/shm", "/dev/pts",
	}
	refused := errors.New("there is no mount")
	for line := range strings.Lines(string(table)) {
		point := strings.Fields(line)[4]
		var now unix.Stat_t
		if slices.Contains(own, point) || unix.Stat(point, &now) != nil {
			continue
		}
		inGit := slices.ContainsFunc([]string{tree, w.Workspace}, func(at string) bool { // two paths of a check's tree
			return strings.HasPrefix(point+"/", filepath.Join(at, ".git")+"/")
		})
		if w.ownGit() && inGit && filepath.Base(point) != "objects" {
			continue // the git folder is the tree's own, except the borrowed objects
		}
		if err := unix.Chmod(point, now.Mode&0o7777); err == nil {
			fmt.Println(point)
			return nil
		} else {
			refused = err
		}
	}
	return refused
}

// setidForms lists ways to create a file with set-user-ID or set-group-ID bits.
var setidForms = []struct {
	name string
	do   func(path string, mode uint32) error
}{
	{"chmod", onFile(func(path string, mode uint32) error { return unix.Fchmodat(unix.AT_FDCWD, path, mode, 0) })},
	{"chmod with a longer mode", onFile(func(path string, mode uint32) error {
		name := append([]byte(path), 0)
		return call(unix.SYS_FCHMODAT, here, uintptr(unsafe.Pointer(&name[0])), uintptr(mode)|1<<40|1<<20)
	})},
	{"chmod of a name in a folder", onFile(func(path string, mode uint32) error {
		return byDescriptor(filepath.Dir(path), func(fd int) error { return unix.Fchmodat(fd, filepath.Base(path), mode, 0) })
	})},
	{"chmod by a descriptor", onFile(func(path string, mode uint32) error {
		return byDescriptor(path, func(fd int) error { return unix.Fchmod(fd, mode) })
	})},
	{"chmod by a descriptor's path", onFile(func(path string, mode uint32) error {
		return byDescriptor(path, func(fd int) error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) })
	})},
	{"chmod by a symbolic link", onFile(func(path string, mode uint32) error {
		return errors.Join(os.Symlink(path, path+".link"), unix.Chmod(path+".link", mode))
	})},
	{"chmod by its newest number", onFile(func(path string, mode uint32) error {
		return byDescriptor(path, func(fd int) error {
			empty := new(byte)
			return call(unix.SYS_FCHMODAT2, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(mode), unix.AT_EMPTY_PATH)
		})
	})},
	{"open", func(path string, mode uint32) error {
		return errorOf(unix.Open(path, unix.O_CREAT|unix.O_WRONLY, mode))
	}},
	{"open of an unnamed file", func(path string, mode uint32) error {
		fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY, mode)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}},
	{"open by a structure", func(path string, mode uint32) error {
		return errorOf(unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}))
	}},
	{"creat", func(path string, mode uint32) error { return errorOf(unix.Creat(path, mode)) }},
	{"mknod", func(path string, mode uint32) error { return unix.Mknod(path, unix.S_IFREG|mode, 0) }},
	{"chmod while a folder and a file change places", chmodExchanged},
}

// here is AT_FDCWD in a register.
const here = ^uintptr(99)

func onFile(change func(string, uint32) error) func(string, uint32) error {
	return func(path string, mode uint32) error { return errors.Join(create(path), change(path, mode)) }
}

// chmodExchanged changes the mode of a path that alternates between folder and file.
func chmodExchanged(path string, mode uint32) error {
	folder := path + ".folder"
	if err := errors.Join(create(path), os.Mkdir(folder, 0o755)); err != nil {
		return err
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, folder, unix.RENAME_EXCHANGE)
			}
		}
	}()
	var err error
	for range 500 {
		err = unix.Chmod(path, mode)
	}
	close(end)
	<-ended
	if info, failed := os.Stat(path); failed == nil && info.IsDir() {
		return errors.Join(err, unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, folder, unix.RENAME_EXCHANGE))
	}
	return err
}

// setidAttempts try to create a program that runs with the rights of another user or group.
func setidAttempts() []Attempt {
	all := []Attempt{{Name: "give a program a capability", Do: func(w World) error {
		const revision2, setuid = 0x02000000, 1 << 7
		capability := []uint32{revision2, setuid, 0, 0, 0}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&capability[0])), 4*len(capability))
		return errors.Join(create(w.workspace("capable")), unix.Setxattr(w.workspace("capable"), "security.capability", raw, 0))
	}}}
	for i, form := range setidForms {
		all = append(all, Attempt{Name: "leave a setuid program by " + form.name, Do: func(w World) error {
			user := createWithBit(form.do, w.workspace(fmt.Sprintf("setuid-%d", i)), unix.S_ISUID)
			group := createWithBit(form.do, w.workspace(fmt.Sprintf("setgid-%d", i)), unix.S_ISGID)
			if user != nil && group != nil || w.Bare {
				return errors.Join(user, group)
			}
			return nil
		}})
	}
	return all
}

// createWithBit creates a file with a bit, and succeeds if it exists.
func createWithBit(form func(string, uint32) error, path string, bit uint32) error {
	err := form(path, bit|0o755)
	var left unix.Stat_t
	if failed := unix.Lstat(path, &left); failed != nil {
		return errors.Join(err, failed)
	}
	if left.Mode&unix.S_IFMT == unix.S_IFREG && left.Mode&bit != 0 {
		return nil
	}
	return errors.Join(err, fmt.Errorf("the mode is %o", left.Mode))
}
