package stage

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// buildNamespaces sets up the new namespaces: mounts, loopback and settings. It returns the lent mounts.
// received contains the descriptors sent with the spec.
func buildNamespaces(spec Spec, received []int, report *Report) (lent []int, err error) {
	if err := wrapStep("detach mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		return nil, err
	}
	trees, err := cloneTrees(spec, received, report)
	defer trees.close()
	if err != nil {
		return nil, err
	}
	if err := wrapStep("make / read-only", setAttributes(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnlyMount)); err != nil {
		return nil, err
	}
	if err := wrapStep("mount /dev", mountDevices(trees.devices)); err != nil {
		return nil, err
	}
	if err := wrapStep("mount /proc", mountProc()); err != nil {
		return nil, err
	}
	if err := placeMounts(spec.Mounts, trees, report); err != nil {
		return nil, err
	}
	if spec.OwnNetwork && spec.LoopbackUp {
		if err := wrapStep("bring up loopback", loopbackUp()); err != nil {
			return nil, err
		}
	}
	if lent, err = cloneLoans(spec); err != nil { // after all mounts in the shared folder
		return lent, err
	}
	if err := wrapStep("lock /proc", lockProc(spec, trees, report)); err != nil {
		return lent, err
	}
	if err := wrapStep("enter /", unix.Chdir("/")); err != nil {
		return lent, err
	}
	return lent, wrapStep("look at /", checkReadOnly("/"))
}

// cloneLoans returns detached mounts of the shared folder, with all mounts in it, for other sandboxes. The
// first Spec.LendToRead are read-only. In the others, only read-only parts stay read-only.
func cloneLoans(spec Spec) (lent []int, err error) {
	for i := range spec.LendToRead + spec.LendToWrite {
		attributes := uint64(readOnlyMount)
		if i >= spec.LendToRead {
			attributes = writableMount
		}
		fd, err := cloneTree(unix.AT_FDCWD, spec.SharedFolder, unix.AT_RECURSIVE, attributes)
		if err != nil {
			return lent, wrapStep("lend "+spec.SharedFolder, err)
		}
		lent = append(lent, fd)
	}
	return lent, nil
}

const (
	readOnlyMount = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writableMount = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	// deviceMount permits reading and writing a device, but no change of its node.
	deviceMount = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID
)

func setAttributes(dir int, path string, flags uint, set uint64) error {
	return unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: set})
}

// checkReadOnly returns an error if the mount at path is writable.
func checkReadOnly(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	if fs.Flags&unix.ST_RDONLY == 0 {
		return errors.New("it is writable")
	}
	return nil
}

// trees contains detached mounts of the outer file system, before they get their place. -1 means none.
type trees struct {
	mounts         []int // in the order of Spec.Mounts
	devices        map[string]int
	emptyFileMount int   // Spec.EmptyFile
	borrowed       []int // mounts from the spec; their owner closes them
}

// close closes the trees. Commands must not get them, because they lead to the outer file system.
func (t trees) close() {
	if t.emptyFileMount >= 0 {
		_ = unix.Close(t.emptyFileMount)
	}
	for _, fd := range t.devices {
		_ = unix.Close(fd)
	}
	for _, fd := range t.mounts {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// cloneTrees clones the trees for all mounts, before a mount covers their sources.
func cloneTrees(spec Spec, received []int, report *Report) (t trees, err error) {
	t.borrowed = received
	t.devices = make(map[string]int)
	if t.emptyFileMount, err = unix.Open(spec.EmptyFile, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return t, wrapStep("open "+spec.EmptyFile, err)
	}
	for _, name := range devices {
		if fd, err := cloneTree(unix.AT_FDCWD, "/dev/"+name, 0, deviceMount); err == nil {
			t.devices[name] = fd
		}
	}
	t.mounts = slices.Repeat([]int{-1}, len(spec.Mounts))
	for round := range cloneRounds {
		for i, m := range slices.Backward(spec.Mounts) { // inner paths first: an outer mount would cover them
			if m.cloneRound() != round || m.Kind == Pinned || m.Kind == Removed {
				continue
			}
			fd, err := t.mountFor(m)
			if err != nil && !m.Optional {
				return t, wrapStep(string(m.Kind)+" "+m.Path, err)
			}
			if err != nil {
				report.Skipped = append(report.Skipped, string(m.Kind)+" "+m.Path+": "+err.Error())
				fd = readOnlyFallback(m)
			}
			t.mounts[i] = fd
		}
	}
	return t, nil
}

// readOnlyFallback returns a read-only clone of the folder of an overlay that failed, or -1. Without it, a mount
// above could cover the folder.
func readOnlyFallback(m Mount) (fd int) {
	if m.Kind != Overlay {
		return -1
	}
	fd, _ = cloneTree(unix.AT_FDCWD, m.Path, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, readOnlyMount)
	return fd
}

const cloneRounds = 3

// cloneRound returns the round in which cloneTrees clones a mount. A later round may cover sources of
// earlier ones: an overlay with Below covers its own path.
func (m Mount) cloneRound() int {
	switch {
	case m.Kind != Overlay:
		return 0
	case len(m.Below) == 0:
		return 1
	}
	return 2
}

// mountFor returns a detached mount for m.
func (t trees) mountFor(m Mount) (fd int, err error) {
	switch m.Kind {
	case Hidden:
		if m.File {
			return t.emptyFile()
		}
		return newTmpfs("0555") // placeMounts makes it read-only, after other mounts are placed in it
	case Overlay:
		return newOverlay(m)
	case Borrowed, BorrowedToWrite:
		if len(t.borrowed) == 0 {
			return -1, errors.New("no mount came with the spec")
		}
		return unix.FcntlInt(uintptr(t.borrowed[0]), unix.F_DUPFD_CLOEXEC, ControlFD)
	case Readable:
		return cloneTree(unix.AT_FDCWD, m.Source, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, readOnlyMount)
	}
	return cloneTree(unix.AT_FDCWD, m.Source, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, writableMount)
}

// emptyFile returns a file that reads as empty and cannot be written.
func (t trees) emptyFile() (fd int, err error) {
	return cloneTree(t.emptyFileMount, "", unix.AT_EMPTY_PATH, readOnlyMount)
}

// cloneTree returns a detached mount of the files at path, with attributes. With AT_RECURSIVE in flags it
// includes the mounts inside.
func cloneTree(dir int, path string, flags uint, attributes uint64) (fd int, err error) {
	fd, err = unix.OpenTree(dir, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return -1, err
	}
	if err := setAttributes(fd, "", unix.AT_EMPTY_PATH|flags&unix.AT_RECURSIVE, attributes); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func newTmpfs(mode string) (fd int, err error) {
	return newMount("tmpfs", writableMount, map[string]string{"mode": mode})
}

// newOverlay returns an overlay of m.Path with the changes of Below and Source. It mounts an overlay for
// each folder of Below first: one overlay cannot have several, because the kernel rejects nested layers.
func newOverlay(m Mount) (fd int, err error) {
	var changes []int
	for _, dir := range append([]string{m.Source}, m.Below...) {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		changes = append(changes, fd)
	}
	for _, below := range slices.Backward(changes[1:]) {
		tree, err := overlay(m, below, "ro")
		if err != nil {
			return -1, err
		}
		defer unix.Close(tree)
		if err := moveTo(tree, m.Path); err != nil {
			return -1, err
		}
	}
	return overlay(m, changes[0], "volatile")
}

// overlay returns an overlay of m.Path with the changes of one folder. changesFD is its descriptor. flag is "ro"
// or "volatile": without one, the end of the overlay writes the whole file system of the changes to disk.
func overlay(m Mount, changesFD int, flag string) (fd int, err error) {
	var lower []string
	for _, path := range append(upperFolders(m.Frozen), m.Path) { // as descriptors, because the kernel accepts only 255 bytes
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		lower = append(lower, fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	folder := fmt.Sprintf("/proc/self/fd/%d/", changesFD) // as a descriptor, because a mount may cover the path
	_ = os.RemoveAll(folder + "work/work/incompat")       // a volatile overlay's mark, with which the kernel mounts no other
	return newMount("overlay", writableMount, map[string]string{
		"lowerdir": strings.Join(lower, ":"), "upperdir": folder + "upper", "workdir": folder + "work", "index": "off",
	}, flag, "userxattr")
}

func upperFolders(overlays []string) (folders []string) {
	for _, dir := range overlays {
		folders = append(folders, path.Join(dir, "upper"))
	}
	return folders
}

// newMount returns a detached mount of a new file system.
func newMount(kind string, attributes int, options map[string]string, flags ...string) (fd int, err error) {
	fsContext, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fsContext)
	for key, value := range options {
		if err := unix.FsconfigSetString(fsContext, key, value); err != nil {
			return -1, err
		}
	}
	for _, flag := range flags {
		if err := unix.FsconfigSetFlag(fsContext, flag); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fsContext); err != nil {
		return -1, err
	}
	return unix.Fsmount(fsContext, unix.FSMOUNT_CLOEXEC, attributes)
}

// placeMounts mounts the trees in the order of mounts. It then makes /dev and hidden folders read-only,
// which were writable for mount points.
func placeMounts(mounts []Mount, trees trees, report *Report) error {
	var toSeal []string
	for i, m := range mounts {
		switch m.Kind {
		case Pinned:
			if err := bindOnItself(m.Path); err != nil {
				return wrapStep("pin "+m.Path, err)
			}
		case Removed:
			if err := os.RemoveAll(m.Path); err != nil {
				return wrapStep("remove "+m.Path, err)
			}
		}
		if trees.mounts[i] < 0 {
			continue
		}
		err := mountTree(trees.mounts[i], m)
		switch {
		case err != nil && m.Optional:
			report.Skipped = append(report.Skipped, string(m.Kind)+" "+m.Path+": "+err.Error())
		case err != nil:
			return wrapStep(string(m.Kind)+" "+m.Path, err)
		case m.Kind == Hidden && !m.File:
			toSeal = append(toSeal, m.Path)
		}
	}
	for _, path := range append(toSeal, "/dev") {
		if err := sealPath(path); err != nil {
			return wrapStep("close "+path, err)
		}
	}
	return nil
}

// bindOnItself mounts an existing folder on itself.
func bindOnItself(path string) error {
	tree, err := cloneTree(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, writableMount)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return moveTo(tree, path)
}

// sealPath makes a mount read-only. A later mount at or above the path has its own attributes.
func sealPath(path string) error {
	err := setAttributes(unix.AT_FDCWD, path, 0, readOnlyMount)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// mountTree mounts a tree at m's path. It creates a missing path, unless m hides it.
func mountTree(tree int, m Mount) error {
	err := moveTo(tree, m.Path)
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	if m.Kind == Hidden {
		return nil
	}
	if err := makeMountPoint(m.Path, m.File); err != nil {
		return err
	}
	return moveTo(tree, m.Path)
}

func moveTo(tree int, path string) error {
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makeMountPoint creates an empty file or folder.
func makeMountPoint(at string, file bool) error {
	if !file {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

// devices lists the devices that commands get in /dev.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// mountDevices covers /dev with a folder of the commands' devices, terminals and shared memory.
func mountDevices(nodes map[string]int) error {
	dev, err := newTmpfs("0755")
	if err != nil {
		return err
	}
	defer unix.Close(dev)
	if err := moveTo(dev, "/dev"); err != nil {
		return err
	}
	for _, name := range devices {
		if fd, ok := nodes[name]; ok {
			if err := mountTree(fd, Mount{Path: "/dev/" + name, File: true}); err != nil {
				return err
			}
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	shm, err := newTmpfs("1777")
	if err != nil {
		return err
	}
	defer unix.Close(shm)
	if err := mountTree(shm, Mount{Path: "/dev/shm"}); err != nil {
		return err
	}
	return mountTerminals()
}

func mountTerminals() error {
	options := map[string]string{"ptmxmode": "0666", "mode": "0620"}
	pts, err := newMount("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, options, "newinstance")
	if err != nil {
		return err
	}
	defer unix.Close(pts)
	return mountTree(pts, Mount{Path: "/dev/pts"})
}

func mountProc() error {
	proc, err := newMount("proc", writableMount, nil)
	if err != nil {
		return err
	}
	defer unix.Close(proc)
	return moveTo(proc, "/proc")
}

// procHidden lists files in /proc about the machine, which commands must not see.
var procHidden = []string{"kcore", "keys", "key-users", "kmsg", "kallsyms", "timer_list", "sched_debug", "latency_stats", "acpi", "scsi", "asound"}

// lockProc sets the namespaces' own settings, covers hidden files in /proc, and makes the rest
// read-only. It cannot change modes instead: except for processes, they apply to the whole machine.
func lockProc(spec Spec, trees trees, report *Report) error {
	if spec.PIDMax && spec.Processes > 0 {
		report.PIDMax = writeSetting("kernel/pid_max", spec.Processes) == nil // otherwise RLIMIT_NPROC is the limit
	}
	if spec.OwnNetwork {
		_ = writeSetting("net/ipv4/ip_unprivileged_port_start", 0) // commands may use ports below 1024 of their own network
	}
	for _, name := range procHidden {
		if err := trees.hidePath("/proc/" + name); err != nil {
			return err
		}
	}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} { // after all mounts: the kernel counts a detached mount as a namespace
		_ = writeSetting("user/max_"+kind+"_namespaces", 0) // seccomp refuses new namespaces, too
	}
	return setAttributes(unix.AT_FDCWD, "/proc", 0, readOnlyMount)
}

func writeSetting(name string, value int) error {
	return os.WriteFile("/proc/sys/"+name, []byte(strconv.Itoa(value)), 0)
}

// hidePath covers path with an empty file or folder, if path exists.
func (t trees) hidePath(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	tree, err := t.emptyMountLike(info)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return moveTo(tree, path)
}

// emptyMountLike returns a mount of an empty folder if info is one's, or else of an empty file. Both are
// read-only.
func (t trees) emptyMountLike(info os.FileInfo) (tree int, err error) {
	if !info.IsDir() {
		return t.emptyFile()
	}
	if tree, err = newTmpfs("0555"); err != nil {
		return -1, err
	}
	if err := setAttributes(tree, "", unix.AT_EMPTY_PATH, readOnlyMount); err != nil {
		_ = unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// loopbackUp brings up the loopback of this network namespace.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}
