package scan

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Lstat is the metadata of a name. A scan needs one for each file of a repository. It contains no
// pointers and is no fs.FileInfo, because garbage collection would take much of a scan's time.
type Lstat struct {
	mode     fs.FileMode // type and permissions
	stat     index.Stat
	modified int64 // seconds since 1970; stat has the nanoseconds
}

func LstatOf(info fs.FileInfo) Lstat {
	return Lstat{info.Mode(), index.StatOf(info), info.ModTime().Unix()}
}

// Stat returns the metadata in the form of the index.
func (l Lstat) Stat() index.Stat { return l.stat }

// modifiedAt returns the time of the last change of the content.
func (l Lstat) modifiedAt() time.Time { return time.Unix(l.modified, int64(l.stat.MtimeNsec)) }

// lstatIn returns the metadata of a name in an open folder, without following links.
func lstatIn(folder int, name string) (Lstat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	for errors.Is(err, unix.EINTR) { // retry an interrupted call, as package os does
		err = unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return Lstat{}, err
	}
	return LstatFrom(&st), nil
}

// LstatFrom returns the metadata that a system call returned.
func LstatFrom(st *unix.Stat_t) Lstat {
	return Lstat{
		mode: typeOf(uint32(st.Mode)) | fs.FileMode(st.Mode)&fs.ModePerm,
		stat: index.Stat{
			CtimeSec: uint32(st.Ctim.Sec), CtimeNsec: uint32(st.Ctim.Nsec),
			MtimeSec: uint32(st.Mtim.Sec), MtimeNsec: uint32(st.Mtim.Nsec),
			Dev: uint32(st.Dev), Ino: uint32(st.Ino), UID: st.Uid, GID: st.Gid, Size: uint32(st.Size),
		},
		modified: int64(st.Mtim.Sec),
	}
}

// typeOf returns the type of a file: regular, link, folder, or irregular for devices, pipes and sockets.
func typeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFDIR:
		return fs.ModeDir
	}
	return fs.ModeIrregular
}

// stableStat returns the stat data without ctime and device, which a rename or a reboot can change.
func stableStat(stat index.Stat) index.Stat {
	stat.CtimeSec, stat.CtimeNsec, stat.Dev = 0, 0, 0
	return stat
}
