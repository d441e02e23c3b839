package copytree

import "golang.org/x/sys/unix"

// clone makes the empty file out share the content of in, without a copy, until either is written
// (ioctl_ficlone(2)). If it fails, out stays empty.
func clone(out, in int) error { return unix.IoctlFileClone(out, in) }
