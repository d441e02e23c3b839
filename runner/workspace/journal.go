package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/record"
)

// The journal of a patch holds what the files that it changes were before. A
// patch that a crash broke off is undone by it; one whose journal is closed is
// whole.
const (
	journalFolder = record.StateFolder + "/journal"
	journalFile   = journalFolder + "/files.json"
	journalClosed = journalFolder + "/closed"
)

// journal is what a patch is undone by.
type journal struct {
	Seq   int64        `json:"seq"`           // last event before the patch
	Top   bool         `json:"top,omitempty"` // paths are below the root of the checkout
	Files []journalled `json:"files"`
}

// journalled is one file before a patch.
type journalled struct {
	Path    string      `json:"path"` // below the working directory, or the root
	Mode    fs.FileMode `json:"mode"` // 0: it was not there
	Link    string      `json:"link,omitempty"`
	Content string      `json:"content,omitempty"` // file in the journal
	Folders []string    `json:"folders,omitempty"` // above it that were not there, the deepest first
}

// JournalPatch begins the journal of each patch to files below the root that open
// gives, and closes the journal when the patch is done. view is what commands see: nothing else gets into
// the journal.
func (w *Workspace) JournalPatch(open func() (*os.Root, error), view func() (*grants.View, error)) func(paths []string) (done func(applied bool), err error) {
	return func(paths []string) (func(bool), error) {
		root, err := open()
		if err != nil {
			return nil, err
		}
		if err := w.beginJournal(root, view, paths, false); err != nil {
			return nil, err
		}
		return func(applied bool) { w.endJournal(root, paths, applied) }, nil
	}
}

func (w *Workspace) beginJournal(root *os.Root, view func() (*grants.View, error), paths []string, top bool) error {
	w.rec.Remove(journalFolder)
	shown, err := view()
	if err != nil {
		return err
	}
	files := make([]journalled, 0, len(paths))
	for i, name := range paths {
		file, err := w.journalOne(root, shown, name, journalFolder+"/"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	if err := w.rec.WriteJSON(journalFile, journal{w.rec.Log().Seq(), top, files}); err != nil {
		return err
	}
	for _, folder := range []string{journalFolder, record.StateFolder} {
		if err := w.rec.Sync(folder); err != nil {
			return fmt.Errorf("write the journal of a patch: %w", err)
		}
	}
	return nil
}

func (w *Workspace) endJournal(root *os.Root, paths []string, applied bool) {
	if !applied { // the patch has undone itself
		w.rec.Remove(journalFolder)
		return
	}
	// Once the journal is closed nothing of the patch may be lost, as far as the disk
	// does its part. A patch that is whole and whose journal stays open would be
	// undone, and told so: no harm.
	syncPatched(root, paths)
	_ = w.rec.Write(journalClosed, []byte("closed\n"))
}

func syncPatched(root *os.Root, paths []string) {
	for _, name := range paths {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			_ = record.SyncIn(root, name)
		}
		_ = record.SyncIn(root, path.Dir(name))
	}
}

func (w *Workspace) journalOne(root *os.Root, view *grants.View, name, content string) (journalled, error) {
	file := journalled{Path: name}
	info, err := root.Lstat(name)
	switch {
	case isMissing(err):
		file.Folders = missingFolders(root, name)
		return file, nil
	case err != nil:
		return file, err
	}
	file.Mode = info.Mode()
	if info.Mode()&fs.ModeSymlink != 0 {
		file.Link, err = root.Readlink(name)
		return file, err
	}
	if !info.Mode().IsRegular() {
		return file, nil // a patch does not replace it
	}
	raw, err := readShown(root, view, name)
	if err != nil {
		return file, err
	}
	file.Content = content
	return file, w.rec.Write(content, raw)
}

// isMissing says whether an error is that nothing is at a path, or a file in the place of its folder.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// readShown reads a file that commands see. A link may have come in the place of the
// file, and lead to what they don't see: that is not read.
func readShown(root *os.Root, view *grants.View, name string) ([]byte, error) {
	f, err := given.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if why := view.HidesFile(f); why != "" {
		return nil, fmt.Errorf("%s can't be read: %s", name, why)
	}
	return given.ReadOpen(f, name, record.MaxRead)
}

func missingFolders(root *os.Root, name string) []string {
	var missing []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && info.IsDir() {
			break
		}
		missing = append(missing, dir)
	}
	return missing
}

// UndoPatch takes back what a patch that was broken off had done in the working
// directory.
func (w *Workspace) UndoPatch(ctx context.Context, path string) (found Found, err error) {
	err = w.in(ctx, OfAgent, func(_ *gitops.Checkout, top *os.Root) error {
		root, err := top.OpenRoot(filepath.FromSlash(path) + "/") // which waits for no pipe
		if err != nil {
			return fmt.Errorf("open the working directory: %w", err)
		}
		defer root.Close()
		found, err = w.undoIn(root, top)
		return err
	})
	return found, err
}

// undoIn takes a patch below root, or below the root of the checkout, back.
func (w *Workspace) undoIn(root, top *os.Root) (Found, error) {
	raw, err := w.rec.Read(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Found{}, nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(raw, &j)
	}
	if err != nil {
		return Found{}, fmt.Errorf("read the journal of the last patch: %w", err)
	}
	if _, err := w.rec.Root().Stat(journalClosed); err == nil {
		return Found{Whole: true, PatchedAt: j.Seq}, nil
	}
	if j.Top {
		root = top
	}
	slices.SortStableFunc(j.Files, func(a, b journalled) int { return cmp.Compare(a.order(), b.order()) })
	for _, file := range j.Files {
		if ledAway(root, path.Dir(file.Path)) {
			continue // what the patch wrote is where commands moved it
		}
		if err := w.putBack(root, file); err != nil {
			return Found{PatchedAt: j.Seq}, fmt.Errorf("undo the last patch: %q: %w", file.Path, err)
		}
	}
	w.rec.Remove(journalFolder)
	return Found{Undone: true, PatchedAt: j.Seq}, nil
}

// order is that in which files are put back: first goes what came, to make room for folders and files in
// the place of one another.
func (j journalled) order() int {
	switch {
	case j.Mode == 0:
		return 0
	case j.Mode.IsDir():
		return 1
	}
	return 2
}

// ledAway says whether a folder is a link, or lies below one. No link led to it when
// the patch began: commands may have made the link, to what they don't see.
func ledAway(root *os.Root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func (w *Workspace) putBack(root *os.Root, file journalled) error {
	dropTemporary(root, path.Dir(file.Path))
	switch {
	case file.Mode == 0:
		if err := root.Remove(file.Path); err != nil && !isMissing(err) {
			return err
		}
		for _, dir := range file.Folders {
			_ = root.Remove(dir) // only when it is empty
		}
		return nil
	case file.Mode.IsDir():
		if info, err := root.Lstat(file.Path); err == nil && !info.IsDir() {
			return root.Remove(file.Path)
		}
		return nil
	case file.Link == "" && file.Content == "":
		return nil
	}
	if err := root.MkdirAll(path.Dir(file.Path), 0o755); err != nil {
		return err
	}
	if file.Link != "" {
		_ = root.Remove(file.Path)
		return root.Symlink(file.Link, file.Path)
	}
	raw, err := w.rec.Read(file.Content)
	if err != nil {
		return err
	}
	if now, err := given.ReadIn(root, file.Path, record.MaxRead); err == nil && string(now) == string(raw) {
		return nil
	}
	return replaceFile(root, file.Path, raw, file.Mode.Perm())
}

// dropTemporary removes the files that a patch writes beside those that it changes,
// until it puts them in their place.
func dropTemporary(root *os.Root, dir string) {
	folder, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".apply-patch-") && strings.HasSuffix(name, ".tmp") {
			_ = root.Remove(path.Join(dir, name))
		}
	}
}

func replaceFile(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	temporary := name + ".agent-ci-undo"
	if err := root.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	if err := root.Chmod(temporary, mode); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}
