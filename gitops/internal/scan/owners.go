package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Owner is a user with a group.
type Owner struct{ UID, GID uint32 }

// WhyForeign describes a file or folder that has another owner, or returns "". Of tracked files it looks only
// at those with another owner in the index, and checks their current owner, because the index may be
// outdated. It also checks folders with tracked files, and untracked files. In a folder without
// tracked files it checks only the folder and its direct entries, because such a folder, like an
// installation, usually has one owner. For user 0, folders and untracked files may belong to anybody.
func (o Owner) WhyForeign(ctx context.Context, t Tree, ix *index.File) (string, error) {
	info, err := t.Dir.Stat(".")
	if err != nil {
		return "", err
	}
	if why := o.describeOtherOwner("", info); why != "" {
		return why, nil
	}
	for path := range ix.OfOthers(o.UID, o.GID) {
		info, err := t.Dir.Lstat(path)
		if err != nil {
			continue // it was deleted, or may not be seen
		}
		if why := o.describeOtherOwner(path, info); why != "" {
			return why, nil
		}
	}
	if o.UID == 0 {
		return "", nil
	}
	return ownerCheck{ctx, ix, t, o}.checkFolder(t.Dir, "", 0, ix.Len())
}

// describeOtherOwner describes the owner of the file at path, if it is another one. path is "" for the whole tree.
func (o Owner) describeOtherOwner(path string, info fs.FileInfo) string {
	stat := index.StatOf(info)
	if stat.UID == o.UID && stat.GID == o.GID {
		return ""
	}
	named := "it"
	if path != "" {
		named = fmt.Sprintf("%q", path)
	}
	return fmt.Sprintf("%s belongs to user %d and group %d, not to %d and %d", named, stat.UID, stat.GID, o.UID, o.GID)
}

type ownerCheck struct {
	ctx  context.Context
	ix   *index.File
	tree Tree
	want Owner
}

// checkFolder checks the content of a folder whose index entries are lo to hi. path is "" or ends with a slash.
// It skips an unreadable folder.
func (c ownerCheck) checkFolder(dir *os.Root, path string, lo, hi int) (why string, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return "", nil // this process may not see its content
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(listedAtOnce) // Readdirnames does not stat the files, unlike ReadDir on some systems
		for _, name := range names {
			if why, err := c.checkEntry(dir, path, name, lo, hi); why != "" || err != nil {
				return why, err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("look for whom files belong to: %w", err)
		case c.ctx.Err() != nil:
			return "", context.Cause(c.ctx)
		}
	}
}

// checkEntry describes a file at or below an entry of a folder that has another owner than c.want. why is "" if
// there is none. Tracked files, skipped paths and files that this process cannot see do not count.
func (c ownerCheck) checkEntry(dir *os.Root, folder, name string, lo, hi int) (why string, err error) {
	path, inUntracked := folder+name, folder != "" && lo == hi
	at, end := c.ix.EntriesOf(path, lo, hi)
	switch {
	case at < end && c.ix.Mode(at) != index.Gitlink: // a tracked file
		return "", nil
	case !inUntracked && (path == ".git" || c.tree.Repo.Settings.Covers(c.tree.Skip, path)):
		return "", nil
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return "", nil // it was deleted
	}
	why = c.want.describeOtherOwner(path, info)
	hasTrackedContent := info.IsDir() && !inUntracked
	if why != "" || !hasTrackedContent {
		return why, nil
	}
	sub, err := regularfile.OpenFolder(dir, name)
	if err != nil {
		return "", nil // this process may not see its content
	}
	defer sub.Close()
	first, last := c.ix.EntriesBelow(path+"/", lo, hi)
	return c.checkFolder(sub, path+"/", first, last)
}
