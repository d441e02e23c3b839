package v4a

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Commit writes the plan: all of it, or nothing. New content goes to temporary
// files next to where it belongs, which then take the place of the old ones by
// renaming; when something fails, or ctx ends before all is in place, what was
// done is undone. A replaced file is a new one to the system: other hard links
// to the old one keep the old content.
//
// An error is a [*ChangedError] when the tree is not what it was in [NewPlan],
// a [*CommitError], or that of ctx. Only with a [*LeftoverError] the patch is
// applied.
func (p *Plan) Commit(ctx context.Context) error {
	c := &commit{tree: p.tree, folders: map[string]*folder{}}
	for i := range p.changed {
		c.addSteps(&p.changed[i])
	}
	defer c.close()
	if err := c.run(ctx); err != nil {
		return c.rollBack(err)
	}
	return nil
}

// commit is a plan on its way into the tree.
type commit struct {
	tree    Dir
	folders map[string]*folder
	opened  []*folder // parents first
	writes  []*step
	removes []*step
	undo    []undo
}

// step puts a file in place or takes it away.
type step struct {
	file   *file
	folder *folder
	name   string
	fresh  string // the temporary file that holds the new content
	old    string // the second name of the old file, while it may be needed
}

// undo takes one thing back that a commit did.
type undo struct {
	path string
	old  string // where the old content is meanwhile, or empty
	do   func() error
}

func (c *commit) addSteps(ch *change) {
	if ch.Op == Delete {
		c.removes = append(c.removes, &step{file: ch.file})
		return
	}
	c.writes = append(c.writes, &step{file: ch.file})
	if ch.MovedFrom != "" {
		c.removes = append(c.removes, &step{file: ch.file.from})
	}
}

// run stages all new content before it touches any old one: a full disk shows
// first. What goes away does so before what comes, since the two may be one
// name to a file system that ignores case.
func (c *commit) run(ctx context.Context) error {
	phases := [...]struct {
		steps []*step
		do    func(*step) error
	}{
		{c.removes, c.open},
		{c.writes, c.openOrMake},
		{c.writes, c.stage},
		{c.removes, c.compare},
		{c.writes, c.compare},
		{c.removes, c.setAside},
		{c.writes, c.replace},
	}
	for _, phase := range phases {
		for _, s := range phase.steps {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := phase.do(s); err != nil {
				return failedAt(s.file.path, err)
			}
		}
	}
	return c.discardOld()
}

func failedAt(name string, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	return &CommitError{Path: name, Err: err}
}

func (c *commit) open(s *step) error       { return c.locate(s, false) }
func (c *commit) openOrMake(s *step) error { return c.locate(s, true) }

func (c *commit) locate(s *step, wanted bool) (err error) {
	s.name = path.Base(s.file.path)
	s.folder, err = c.folder(path.Dir(s.file.path), wanted)
	return err
}

// stage writes the new content to a temporary file.
func (c *commit) stage(s *step) error {
	name := temporaryName()
	w, err := s.folder.Create(name, s.file.like)
	if err != nil {
		return err
	}
	s.fresh = name
	c.undo = append(c.undo, undo{path: path.Join(s.folder.path, name), do: s.discardFresh})
	_, err = io.WriteString(w, s.file.content.text)
	return errors.Join(err, w.Close())
}

func temporaryName() string { return ".apply-patch-" + rand.Text() + ".tmp" }

// discardFresh removes the temporary file unless it has taken its place.
func (s *step) discardFresh() error {
	if s.fresh == "" {
		return nil
	}
	return s.folder.Remove(s.fresh)
}

// compare checks that the tree still has what the plan is made from.
func (c *commit) compare(s *step) error {
	now, err := s.folder.Lstat(s.name)
	before := s.file.before
	switch {
	case errors.Is(err, fs.ErrNotExist) && before == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return s.changed("it is gone")
	case err != nil:
		return err
	case before == nil:
		return s.changed("it has come into being")
	case before.Mode() != now.Mode() || before.Size() != now.Size():
		return s.changed("another size or mode")
	case identified(before):
		if !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()) {
			return s.changed("it was written")
		}
		return nil
	}
	return s.compareContent(now)
}

// compareContent serves file systems whose files have no identity and no time.
func (s *step) compareContent(now fs.FileInfo) error {
	read := func() (string, error) { return read(s.folder, s.name, now.Size()) }
	if s.file.isLink() {
		read = func() (string, error) { return s.folder.Readlink(s.name) }
	}
	text, err := read()
	if err == nil && text != s.file.content.base {
		return s.changed("it was written")
	}
	return err
}

func (s *step) changed(reason string) error {
	return &ChangedError{Path: s.file.path, Reason: reason}
}

// setAside takes the old file away under another name.
func (c *commit) setAside(s *step) error {
	old := temporaryName()
	if err := s.folder.Rename(s.name, old); err != nil {
		return err
	}
	s.old = old
	c.undo = append(c.undo, undo{s.file.path, path.Join(s.folder.path, old), s.restore})
	return nil
}

// replace puts the new content in place. The old file gets a second name first,
// so that the path always leads to one of the two; where files have one name
// only, it is set aside for a moment.
func (c *commit) replace(s *step) error {
	if s.file.before != nil {
		if err := c.keepOld(s); err != nil {
			return err
		}
	}
	if err := s.folder.Rename(s.fresh, s.name); err != nil {
		return err
	}
	s.fresh = ""
	if s.old == "" {
		c.undo = append(c.undo, undo{path: s.file.path, do: func() error { return s.folder.Remove(s.name) }})
	}
	return nil
}

// keepOld passes over a file that is gone: one that was removed under another
// spelling, where case does not count.
func (c *commit) keepOld(s *step) error {
	old := temporaryName()
	if err := s.folder.Link(s.name, old); err != nil {
		if err := c.setAside(s); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	s.old = old
	c.undo = append(c.undo, undo{s.file.path, path.Join(s.folder.path, old), s.restore})
	return nil
}

// restore gives the old file its name back. Renaming does nothing when both
// names are of one file still, hence the removal.
func (s *step) restore() error {
	if err := s.folder.Rename(s.old, s.name); err != nil {
		return err
	}
	if err := s.folder.Remove(s.old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.old = ""
	return nil
}

// discardOld ends the commit: nothing is undone from here on.
func (c *commit) discardOld() error {
	c.undo = nil
	var left []string
	var errs []error
	for _, s := range slices.Concat(c.removes, c.writes) {
		if s.old == "" {
			continue
		}
		if err := s.folder.Remove(s.old); err != nil {
			errs = append(errs, err)
			left = append(left, path.Join(s.folder.path, s.old))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &LeftoverError{Paths: left, Err: errors.Join(errs...)}
}

// rollBack undoes what was done, last thing first, and completes the error with
// what could not be.
func (c *commit) rollBack(cause error) error {
	var stuck []string
	for _, u := range slices.Backward(c.undo) {
		if err := u.do(); err != nil {
			stuck = append(stuck, u.failed(err))
		}
	}
	if len(stuck) == 0 {
		return cause
	}
	if failed, ok := errors.AsType[*CommitError](cause); ok {
		failed.Unrestored = stuck
		return failed
	}
	return &CommitError{Path: stuck[0], Err: cause, Unrestored: stuck}
}

func (u undo) failed(err error) string {
	if u.old == "" {
		return fmt.Sprintf("%s (%v)", u.path, err)
	}
	return fmt.Sprintf("%s (its old content is in %s: %v)", u.path, u.old, err)
}
