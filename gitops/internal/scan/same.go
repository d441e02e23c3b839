package scan

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Folders is the metadata of all folders that a scan opened, from before it did so. A folder with the same
// metadata still has the same names. [Scan.Same] finds a folder that may not be read.
type Folders map[string]index.Stat

// recordFolder records the metadata of a folder that is about to be opened.
func (s *Scan) recordFolder(path string, n listedName) {
	s.withLock(func() { s.folders[path] = n.stat })
}

// Folders returns the folders of a finished scan, which began at a time of the file system. It returns nil if
// the names of a folder may have changed since without a new time.
func (s *Scan) Folders(began time.Time) Folders {
	for _, stat := range s.folders {
		before := began
		if stat.MtimeNsec == 0 && stat.CtimeNsec == 0 {
			const coarsest = 2 * time.Second // of the times that file systems store
			before = began.Add(-coarsest)
		}
		modified, changed := time.Unix(int64(stat.MtimeSec), int64(stat.MtimeNsec)), time.Unix(int64(stat.CtimeSec), int64(stat.CtimeNsec))
		if !modified.Before(before) || !changed.Before(before) {
			return nil
		}
	}
	return s.folders
}

// Same reports whether metadata proves that Run would find nothing new after an earlier scan. That scan found the
// given folders and untracked files, and no difference from the index. Same lists no folder.
func (s *Scan) Same(ctx context.Context, folders Folders, untracked iter.Seq2[string, index.Stat]) bool {
	if len(folders) == 0 || s.settings.IgnoreCase || s.settings.Precompose {
		return false
	}
	files := map[string]map[string]index.Stat{} // the untracked ones by folder
	var unproven, next atomic.Int64             // unproven counts folders and files
	unproven.Store(int64(len(folders) + s.index.Len()))
	for name, stat := range untracked {
		folder, base := path.Split(name)
		if files[folder] == nil {
			files[folder] = map[string]index.Stat{}
		}
		files[folder][base] = stat
		unproven.Add(1)
	}
	var group sync.WaitGroup
	names := slices.Collect(maps.Keys(folders))
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1); i <= int64(len(names)) && ctx.Err() == nil; i = next.Add(1) {
				proven := s.provenIn(names[i-1], folders[names[i-1]], files[names[i-1]])
				if unproven.Add(-proven); proven == 0 {
					next.Store(int64(len(names)))
				}
			}
		})
	}
	group.Wait()
	return unproven.Load() == 0
}

// provenIn returns how many entries it proves to be the same: a folder and the files directly in it, together. It
// returns 0 if any of them may differ.
func (s *Scan) provenIn(name string, before index.Stat, untracked map[string]index.Stat) (proven int64) {
	dir, err := s.tree.Dir.OpenFile(path.Clean(name), syscall.O_DIRECTORY, 0)
	if err != nil {
		return 0
	}
	defer dir.Close()
	folder := int(dir.Fd())
	if now, err := lstatIn(folder, "."); err != nil || now.stat != before {
		return 0
	}
	proven = 1
	for i, end := s.index.EntriesBelow(name, 0, s.index.Len()); i < end; {
		rest := s.index.Path(i)[len(name):]
		if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
			_, i = s.index.EntriesBelow(name+string(rest[:slash+1]), i, end)
			continue
		}
		now, err := lstatIn(folder, string(rest))
		if err != nil || !s.provenUnchanged(now, i) {
			return 0
		}
		proven++
		i++
	}
	for base, stat := range untracked {
		now, err := lstatIn(folder, base)
		if err != nil || stableStat(now.stat) != stat {
			return 0
		}
		proven++
	}
	return proven
}
