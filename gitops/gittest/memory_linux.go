package gittest

import "golang.org/x/sys/unix"

// roomInMemory is the free space in bytes that a folder in memory must have for tests.
const roomInMemory = 4 << 30

// memory returns a folder in memory with enough space, in which programs may be executed, or "".
func memory() string {
	const path = "/dev/shm"
	var found unix.Statfs_t
	if err := unix.Statfs(path, &found); err != nil || found.Type != unix.TMPFS_MAGIC || found.Flags&unix.ST_NOEXEC != 0 {
		return ""
	}
	if found.Bavail*uint64(found.Bsize) < roomInMemory || unix.Access(path, unix.W_OK) != nil {
		return ""
	}
	return path
}
