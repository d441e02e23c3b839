package worktree

import (
	"io/fs"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// unchanged says that a file is, by its times and numbers alone, the one that
// the index knows, so that it need not be read. written is when the index was:
// a file that is not older may have changed since within one tick of the clock.
func unchanged(s *repository.Settings, known index.Stat, info fs.FileInfo, written time.Time) bool {
	now := index.StatOf(info)
	if known.MtimeSec != now.MtimeSec || known.Size != now.Size {
		return false
	}
	if !s.MinimalStat && !sameDetails(s, known, now) {
		return false
	}
	return info.ModTime().Before(written)
}

// sameDetails compares what core.checkStat=minimal leaves out. A time that was
// stored without nanoseconds is compared by seconds.
func sameDetails(s *repository.Settings, known, now index.Stat) bool {
	if known.UID != now.UID || known.GID != now.GID || known.Ino != now.Ino {
		return false
	}
	if known.MtimeNsec != 0 && known.MtimeNsec != now.MtimeNsec {
		return false
	}
	if !s.TrustCtime {
		return true
	}
	return known.CtimeSec == now.CtimeSec && (known.CtimeNsec == 0 || known.CtimeNsec == now.CtimeNsec)
}

// modeOf returns the mode that git records for a file, known being what the
// index has for the path now (0: nothing). It is 0 for what git does not
// record: folders, sockets, devices, pipes.
func modeOf(s *repository.Settings, info fs.FileInfo, known uint32) uint32 {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return index.Symlink
	case !info.Mode().IsRegular():
		return 0
	case !s.Symlinks && known == index.Symlink:
		return known
	case !s.FileMode && (known == index.Regular || known == index.Executable):
		return known
	case s.FileMode && info.Mode()&0o100 != 0:
		return index.Executable
	}
	return index.Regular
}
