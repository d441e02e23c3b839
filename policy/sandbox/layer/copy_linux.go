package layer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

const (
	// maxCopyBytes bounds the copied changes, by their size on disk.
	maxCopyBytes = 1 << 30
	// minCharge is the minimum size charged per file and folder, since each takes time.
	minCharge = 4 << 10
)

// Copy copies an overlay's changes to an empty overlay. They must not change meanwhile: see
// sandbox.Paused. It clones contents if possible (ioctl_ficlone(2)) and keeps holes. It returns a
// ForkError for more than 1 GiB on disk, an unreadable file, or a full disk.
func Copy(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(grants.Upper(from)); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was changed yet
	}
	name := filepath.Base(grants.Upper(from))
	return asForkError(ctx, copyBounded(ctx, from, to, name), "its changes", filepath.Join(from, name), filepath.Join(to, name))
}

// asForkError converts an fs.PathError about a file below from or to into a ForkError. called describes what
// is copied.
func asForkError(ctx context.Context, err error, called, from, to string) error {
	pathErr, ok := errors.AsType[*fs.PathError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	file := strings.TrimPrefix(strings.TrimPrefix(pathErr.Path, from+"/"), to+"/")
	return &ForkError{fmt.Sprintf("of %s, %q can't be copied: %v", called, file, pathErr.Err)}
}

// CopyCaches copies the folder name from one folder to another, where it is missing or empty, so that
// later commands find cached files. It must not change meanwhile. If it has more than 1 GiB or a file
// that cannot be copied, CopyCaches copies nothing: tools would trust an incomplete cache.
func CopyCaches(ctx context.Context, from, to, name string) error {
	if info, err := os.Lstat(filepath.Join(from, name)); err != nil || !info.IsDir() { // commands may have made a link
		return nil
	}
	copied := filepath.Join(to, name)
	if err := os.Remove(copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // it is not empty
	}
	partial := copied + ".partial"
	if err := Remove(partial); err != nil {
		return err
	}
	err := copyBounded(ctx, from, partial, name)
	if err == nil {
		err = os.Rename(filepath.Join(partial, name), copied)
	}
	if err != nil { // leave the cache empty; only the end of ctx is an error
		err = errors.Join(ctx.Err(), os.MkdirAll(copied, 0o700))
	}
	return errors.Join(err, Remove(partial))
}

// checkSize refuses a too large layer. It counts a file with several names once.
func checkSize(ctx context.Context, layer string) error {
	remaining, seen := int64(maxCopyBytes), make(map[uint64]bool)
	return filepath.WalkDir(layer, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		if seen[stat.Ino] {
			return nil
		}
		seen[stat.Ino] = true
		const block = 512                                              // stat(2)
		remaining -= max(minCharge, min(stat.Blocks*block, stat.Size)) // blocks reserved beyond the end are not copied
		if remaining < 0 {
			return &ForkError{fmt.Sprintf("its changes take more than %d MiB on the disk; remove what is not needed of them", maxCopyBytes>>20)}
		}
		return nil
	})
}

// CopyFolder copies the folder name between folders. It returns a ForkError above 1 GiB on disk or
// for a file that cannot be copied.
func CopyFolder(ctx context.Context, from, to, name string) error {
	return asForkError(ctx, copyBounded(ctx, from, to, name), name, filepath.Join(from, name), filepath.Join(to, name))
}

// copyBounded copies the folder called name from one folder into another, if it takes at most 1 GiB.
func copyBounded(ctx context.Context, from, to, name string) error {
	if err := checkSize(ctx, filepath.Join(from, name)); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Open(to)
	if err != nil {
		return err
	}
	defer target.Close()
	c := layerCopy{ctx, make(map[uint64]string), make([]byte, maxAttribute)}
	return c.copyEntry(source, target, name)
}

// layerCopy copies files exactly. It uses open folders and follows no links, because commands chose
// the names.
type layerCopy struct {
	ctx         context.Context
	firstCopies map[uint64]string // path of the copy of a file with several names, by inode
	buffer      []byte
}

// maxAttribute bounds an attribute's value and the list of names (xattr(7)).
const maxAttribute = 64 << 10

// copyEntry copies a file or folder with everything below.
func (c *layerCopy) copyEntry(from, to *os.File, name string) error {
	err := c.copyWithStatus(from, to, name)
	if err == nil || errors.As(err, new(*fs.PathError)) { // it already names the file
		return err
	}
	return &fs.PathError{Op: "copy", Path: filepath.Join(from.Name(), name), Err: err}
}

// copyWithStatus is copyEntry without the name of the file in every error.
func (c *layerCopy) copyWithStatus(from, to *os.File, name string) error {
	stat, err := c.lstat(from, name)
	if err != nil {
		return err
	}
	if isDir(stat) {
		err = c.copyFolder(from, to, name)
	} else {
		err = c.copyNonFolder(from, to, name, stat)
	}
	if err != nil {
		return err
	}
	return copyStatus(to, name, stat)
}

func (c *layerCopy) lstat(from *os.File, name string) (stat unix.Stat_t, err error) {
	if c.ctx.Err() != nil {
		return stat, context.Cause(c.ctx)
	}
	err = unix.Fstatat(int(from.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return stat, err
}

// copyFolder copies a folder and its content, without the folder's owner, mode and times.
func (c *layerCopy) copyFolder(from, to *os.File, name string) error {
	in, err := openAt(from, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := unix.Mkdirat(int(to.Fd()), name, 0o700); err != nil {
		return err
	}
	out, err := openAt(to, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer out.Close()
	names, err := in.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.copyEntry(in, out, name); err != nil {
			return err
		}
	}
	return c.copyAttributes(in, out)
}

// copyNonFolder copies anything but folders. It links a file with several names to its first copy. It does not
// track the device that marks removed files in overlayfs, which has many names.
func (c *layerCopy) copyNonFolder(from, to *os.File, name string, stat unix.Stat_t) error {
	kind := stat.Mode & unix.S_IFMT
	if stat.Nlink > 1 && kind != unix.S_IFCHR {
		if first, is := c.firstCopies[stat.Ino]; is {
			return unix.Linkat(unix.AT_FDCWD, first, int(to.Fd()), name, 0)
		}
		c.firstCopies[stat.Ino] = filepath.Join(to.Name(), name)
	}
	switch kind {
	case unix.S_IFREG:
		return c.copyFile(from, to, name)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(from.Fd()), name, target)
		if err != nil {
			return err
		}
		return unix.Symlinkat(string(target[:n]), int(to.Fd()), name)
	}
	return unix.Mknodat(int(to.Fd()), name, stat.Mode, int(stat.Rdev))
}

// copyFile copies a regular file without its owner, mode and times.
func (c *layerCopy) copyFile(from, to *os.File, name string) error {
	in, err := openAt(from, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := openAt(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer out.Close()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil { // a failed clone writes nothing
		err = c.copyData(in, out)
	}
	return errors.Join(err, c.copyAttributes(in, out))
}

// copyData copies a file's content and keeps its holes.
func (c *layerCopy) copyData(in, out *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for end := int64(0); c.ctx.Err() == nil; {
		start, err := in.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // there is no more
			return out.Truncate(info.Size())
		}
		if err != nil {
			return err
		}
		if end, err = in.Seek(start, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
	}
	return context.Cause(c.ctx)
}

// openAt opens a file in a folder with flags and follows no link.
func openAt(folder *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(folder.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(folder.Name(), name)), nil
}

// copyAttributes copies extended attributes set by overlayfs or commands, and access lists. It omits the
// machine's attributes and the overlay's identity (user.overlay.uuid).
func (c *layerCopy) copyAttributes(from, to *os.File) error {
	n, err := unix.Flistxattr(int(from.Fd()), c.buffer)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(c.buffer[:n]), "\x00") {
		isCopied := strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
		if !isCopied || name == "user.overlay.uuid" {
			continue
		}
		n, err := unix.Fgetxattr(int(from.Fd()), name, c.buffer)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, c.buffer[:n], 0)
		}
		if err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}

// copyStatus gives a file its owner, mode and times.
func copyStatus(folder *os.File, name string, stat unix.Stat_t) error {
	dir := int(folder.Fd())
	if err := unix.Fchownat(dir, name, int(stat.Uid), int(stat.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFLNK { // a link has no mode
		if err := unix.Fchmodat(dir, name, stat.Mode&^unix.S_IFMT, 0); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{stat.Atim, stat.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}
