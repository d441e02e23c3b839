package tree

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Commit writes the whole plan or nothing. It writes new content to temporary files beside their
// destinations and then renames them. If anything fails, or ctx ends early, it undoes all changes.
// A replaced file is a new file for the system: other hard links keep the old content.
//
// It compares every file twice with the plan's input: before any change, and at its replacement. An undo
// does not overwrite files that another program has put there later.
//
// An error is a [*ChangedError] if the tree changed since [NewPlan], a [*CommitError], or ctx's. Only
// with a [*LeftoverError] the patch is applied.
func (p *Plan) Commit(ctx context.Context) error {
	c := &commit{folders: map[string]*folder{".": {Dir: p.tree, path: "."}}} // the caller closes the root
	for i := range p.changed {
		c.addSteps(&p.changed[i])
	}
	defer c.close()
	if err := c.run(ctx); err != nil {
		return c.rollBack(err)
	}
	return nil
}

// commit is the execution of a plan.
type commit struct {
	folders map[string]*folder
	opened  []*folder // the open ones except the root, the one opened first at the front
	writes  []*step
	removes []*step
	undo    []undo
}

// step writes or removes one file.
type step struct {
	file   *file
	folder *folder
	name   string
	fresh  string      // name of the temporary file with the new content
	made   fs.FileInfo // state of the new file after it was written
	old    string      // second name of the old file, as long as an undo may need it
}

// addSteps adds the steps for one change. A move counts as write and removal.
func (c *commit) addSteps(ch *change) {
	if ch.Op == v4a.Delete {
		c.removes = append(c.removes, &step{file: ch.file})
		return
	}
	c.writes = append(c.writes, &step{file: ch.file})
	if ch.MovedFrom != "" {
		c.removes = append(c.removes, &step{file: ch.file.movedFrom})
	}
}

// run writes all new content before it touches old files, so that a full disk is noticed first. It
// removes files before it puts new ones in place: on a file system that ignores case, both may have
// the same name.
func (c *commit) run(ctx context.Context) error {
	all := slices.Concat(c.removes, c.writes)
	phases := [...]struct {
		steps []*step
		do    func(*step) error
	}{
		{all, c.openFolderOf},
		{c.writes, c.stage},
		{all, c.requireUnchanged},
		{c.removes, c.moveOldAside},
		{c.writes, c.replace},
	}
	for _, phase := range phases {
		for _, s := range phase.steps {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.withOpenFolder(s.folder, func() error { return phase.do(s) }); err != nil {
				return failedAt(s.file.path, err)
			}
		}
	}
	return c.discardOld()
}

// failedAt returns err as a *CommitError about a file, or the *ChangedError in it.
func failedAt(name string, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	return &CommitError{Path: name, Err: err}
}

// openFolderOf opens the folder of a file. It makes the folder of a new file.
func (c *commit) openFolderOf(s *step) (err error) {
	s.name = path.Base(s.file.path)
	s.folder, err = c.openFolder(path.Dir(s.file.path), s.file.exists)
	return err
}

// stage writes the new content to a temporary file.
func (c *commit) stage(s *step) error {
	name := temporaryName()
	w, err := s.folder.Create(name, s.file.modeSource)
	if err != nil {
		return err
	}
	s.fresh = name
	c.undo = append(c.undo, undo{folder: s.folder, path: path.Join(s.folder.path, name), litter: true, do: s.discardFresh})
	_, err = io.WriteString(w, s.file.content)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	s.made, err = s.folder.Lstat(name)
	return err
}

// temporaryPrefix and temporarySuffix enclose the random part of a temporary file's name.
const temporaryPrefix, temporarySuffix = ".apply-patch-", ".tmp"

func temporaryName() string { return temporaryPrefix + rand.Text() + temporarySuffix }

// IsTemporary reports whether a file name is one of a patch's temporary files.
func IsTemporary(name string) bool {
	random, is := strings.CutPrefix(name, temporaryPrefix)
	return is && len(random) == len(rand.Text())+len(temporarySuffix) && strings.HasSuffix(random, temporarySuffix)
}

// moveOldAside renames the old file to a temporary name.
func (c *commit) moveOldAside(s *step) error {
	old := temporaryName()
	if err := s.folder.Rename(s.name, old); err != nil {
		return err
	}
	c.registerOld(s, old)
	return s.compareOld()
}

// registerOld records the second name of an old file, and the undo that restores it.
func (c *commit) registerOld(s *step, old string) {
	s.old = old
	c.undo = append(c.undo, undo{folder: s.folder, path: s.file.path, old: path.Join(s.folder.path, old), do: s.restoreOld})
}

// replace puts the new file in place of the old one.
func (c *commit) replace(s *step) error {
	if s.file.before == nil {
		return c.placeNew(s)
	}
	swapped, err := c.saveOld(s)
	if err != nil {
		return err
	}
	if swapped {
		return nil
	}
	return c.rename(s)
}

// rename renames the temporary file to the final name.
func (c *commit) rename(s *step) error {
	if err := s.folder.Rename(s.fresh, s.name); err != nil {
		return err
	}
	s.fresh = ""
	if s.old == "" {
		c.registerNew(s)
	}
	return nil
}

// registerNew records the undo that removes a new file.
func (c *commit) registerNew(s *step) {
	c.undo = append(c.undo, undo{folder: s.folder, path: s.file.path, do: s.removeNew})
}

// saveOld keeps the old file under a second name: by a hard link, or by exchanging it with the new
// file. Both leave no moment without a file at the path. If neither works, it renames the old file
// first. swapped reports that the new file is in place.
func (c *commit) saveOld(s *step) (swapped bool, err error) {
	linked, copied, err := c.linkOld(s)
	if err != nil {
		return false, err
	}
	if linked {
		return false, s.compareOld()
	}
	if copied && s.folder.Exchange(s.fresh, s.name) == nil {
		c.registerOld(s, s.fresh)
		s.fresh = ""
		return true, s.compareOld()
	}
	err = c.moveOldAside(s)
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if c.removedUnderOtherName(s) {
		return false, nil
	}
	return false, s.changedError(vanishedReason)
}

// linkOld gives the old file a second name by a hard link. On an overlay the link may be a copy of
// the file in the lower layer (linux, Documentation/filesystems/overlayfs.rst, "Non-standard
// behavior"). linkOld removes such a copy and returns copied. Both results are false if the file
// cannot be linked.
func (c *commit) linkOld(s *step) (linked, copied bool, err error) {
	old := temporaryName()
	if err := s.folder.Link(s.name, old); err != nil {
		return false, false, nil
	}
	kept := len(c.undo)
	c.registerOld(s, old)
	if now, err := s.folder.Lstat(s.name); err != nil || s.isOld(now) {
		return true, false, nil
	}
	s.old, c.undo = "", c.undo[:kept]
	return false, true, s.folder.Remove(old)
}

// removedUnderOtherName reports whether the patch removed the file under another spelling, on a
// file system that ignores case.
func (c *commit) removedUnderOtherName(s *step) bool {
	return slices.ContainsFunc(c.removes, func(r *step) bool {
		return r.folder == s.folder && strings.EqualFold(r.name, s.name)
	})
}

// placeNew gives a new file its name by a hard link, which never replaces a file. On a file system
// without hard links, it checks that the name is free and renames.
func (c *commit) placeNew(s *step) error {
	err := s.folder.Link(s.fresh, s.name)
	if err == nil {
		c.registerNew(s)
		if err := s.folder.Remove(s.fresh); err != nil {
			return err
		}
		s.fresh = ""
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return s.changedError(appearedReason)
	}
	if err := c.requireUnchanged(s); err != nil {
		return err
	}
	return c.rename(s)
}

// discardOld removes the old files. Afterwards nothing is undone.
func (c *commit) discardOld() error {
	c.undo = nil
	var left []string
	var errs []error
	for _, s := range slices.Concat(c.removes, c.writes) {
		if s.old == "" {
			continue
		}
		if err := c.withOpenFolder(s.folder, func() error { return s.folder.Remove(s.old) }); err != nil {
			errs = append(errs, err)
			left = append(left, path.Join(s.folder.path, s.old))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &LeftoverError{Paths: left, Err: errors.Join(errs...)}
}

// folder is a directory of the tree. It is open, unless the commit has opened many others since.
type folder struct {
	Dir                  // nil while it is closed
	identity fs.FileInfo // nil before it was opened for the first time
	path     string
	parent   *folder // nil for the root
}

// maxOpenFolders limits how many directories are open at once, besides the root.
const maxOpenFolders = 64

// withOpenFolder runs do while a directory is open. folder may be nil.
func (c *commit) withOpenFolder(folder *folder, do func() error) error {
	if err := c.open(folder); err != nil {
		return err
	}
	return do()
}

// open opens a directory without following links. It does nothing for nil or an open directory. It
// fails if another directory has taken the place of one that was open before.
func (c *commit) open(f *folder) error {
	if f == nil || f.Dir != nil {
		return nil
	}
	if err := c.open(f.parent); err != nil {
		return err
	}
	dir, err := f.parent.Sub(path.Base(f.path))
	if err != nil {
		return err
	}
	now, err := dir.Lstat(".")
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	wasOpen := f.identity != nil
	if wasOpen && !os.SameFile(f.identity, now) {
		return errors.Join(&ChangedError{Path: f.path, Reason: "another directory is in its place"}, dir.Close())
	}
	f.Dir, f.identity = dir, now
	c.opened = append(c.opened, f)
	if len(c.opened) > maxOpenFolders {
		c.opened[0].close()
		c.opened = c.opened[1:]
	}
	return nil
}

// close closes a directory. Errors do not matter: the files in it are already written.
func (f *folder) close() {
	_ = f.Dir.Close()
	f.Dir = nil
}

// openFolder returns an open directory. If it is missing and wanted is set, openFolder makes it.
func (c *commit) openFolder(name string, wanted bool) (*folder, error) {
	if f := c.folders[name]; f != nil {
		return f, c.open(f)
	}
	parent, err := c.openFolder(path.Dir(name), wanted)
	if err != nil {
		return nil, err
	}
	info, err := parent.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) && wanted:
		if err := c.makeFolder(parent, name); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ChangedError{Path: name, Reason: vanishedReason}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &ChangedError{Path: name, Reason: "it is not a directory any more"}
	}
	f := &folder{path: name, parent: parent}
	c.folders[name] = f
	return f, c.open(f)
}

// makeFolder makes a directory and records its undo.
func (c *commit) makeFolder(parent *folder, name string) error {
	element := path.Base(name)
	if err := parent.Mkdir(element); err != nil {
		return err
	}
	c.undo = append(c.undo, undo{folder: parent, path: name, litter: true, do: func() error { return parent.Remove(element) }})
	return nil
}

// close closes the directories.
func (c *commit) close() {
	for _, f := range c.opened {
		f.close()
	}
}
