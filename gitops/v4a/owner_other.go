//go:build !unix

package v4a

import "io/fs"

func differingOwner(_, _ fs.FileInfo) (uid, gid int, differs bool) { return 0, 0, false }

func heldByOwner(_, _ fs.FileInfo, _ int) bool { return false }
