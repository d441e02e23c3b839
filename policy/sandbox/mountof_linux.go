package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// onMountOf reports whether a file is on its folder's mount. It cannot compare device numbers, because
// overlayfs uses different ones for files and folders.
func onMountOf(dir *os.File, name string) bool {
	var above, file unix.Statx_t
	fd := int(dir.Fd())
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &above) != nil {
		return false
	}
	return unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &file) == nil && above.Mnt_id == file.Mnt_id
}
