package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
)

// Duplicate describes a finished copy of the work tree's files.
type Duplicate struct {
	// Stats has the stat data of the copies of unmodified tracked files and links.
	Stats []index.StatUpdate
	// Unread lists unreadable paths, which were not copied.
	Unread []string
}

// DuplicateInto copies the work tree into the empty folder to, with times, modes, symbolic and hard
// links. It omits .git, hidden paths, sockets, pipes and devices. links maps paths to replacement
// contents; "" omits the file.
func (w *Worktree) DuplicateInto(ctx context.Context, to *os.Root, ix *index.File, links map[string]string) (*Duplicate, error) {
	done, hidden := &Duplicate{}, w.skippedPaths()
	c := &copytree.Copier{To: to, Replacements: links, Omit: func(name string) bool { return name == ".git" || w.repo.Settings.Covers(hidden, name) }}
	c.OnCopied = func(full string, original, copied *unix.Stat_t) { w.recordCopy(done, ix, full, original, copied) }
	if err := c.Content(ctx, w.dir); err != nil {
		return nil, fmt.Errorf("copy the files: %w", err)
	}
	done.Unread = c.Unread
	return done, nil
}

// recordCopy records the stat data of a copied file, if the original is tracked and unmodified. Without stat
// data, a file is later compared by content.
func (w *Worktree) recordCopy(done *Duplicate, ix *index.File, full string, original, copied *unix.Stat_t) {
	i, known := ix.Search(full)
	if known && scan.Unchanged(&w.repo.Settings, ix.Metadata(i).Stat, scan.LstatFrom(original), ix.Modified) {
		done.Stats = append(done.Stats, index.StatUpdate{Entry: i, Stat: scan.LstatFrom(copied).Stat()})
	}
}

// WrittenSince reports whether anything in a folder has a status change time (ctime) after then.
func (w *Worktree) WrittenSince(folder string, then time.Time) bool {
	err := fs.WalkDir(w.dir.FS(), folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what can't be read was not copied
		}
		info, err := e.Info()
		switch {
		case regularfile.Absent(err):
			return nil
		case err != nil:
			return errWritten // unknown, so it counts as written
		}
		stat := index.StatOf(info)
		if changed := time.Unix(int64(stat.CtimeSec), int64(stat.CtimeNsec)); changed.After(then) {
			return errWritten
		}
		return nil
	})
	return errors.Is(err, errWritten)
}

var errWritten = errors.New("written")
