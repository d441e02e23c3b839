package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/eol"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Suspect is a file of the work tree whose content has to be known as git
// would store it.
type Suspect struct {
	Path     string
	Mode     uint32 // that git would record
	Info     fs.FileInfo
	ID       plumbing.Hash // what clean found
	Why      string        // it cannot be known: why not
	TooLarge bool          // because a change may not have so much

	entry int           // of the index; -1: none
	old   plumbing.Hash // what the index holds; zero: nothing
}

// Suspect makes an untracked file that was found one of the suspects.
func (s *Scan) Suspect(f Found) {
	s.Suspects = append(s.Suspects, Suspect{Path: f.Path, Info: f.info, Mode: modeOf(s.settings, f.info, 0), entry: -1})
}

// Clean finds out what git would store of the suspects, and with keep stores it.
func (s *Scan) Clean(ctx context.Context, keep bool) error {
	if len(s.Suspects) == 0 {
		return nil
	}
	c := cleaner{Worktree: s.work, attributes: s.workAttributes(), keep: keep}
	return c.clean(ctx, s.Suspects)
}

// AsIndexed says that a suspect, once clean, is what the index has.
func (s *Scan) AsIndexed(one *Suspect) bool {
	if one.entry < 0 || one.Why != "" {
		return false
	}
	e := s.index.Entry(one.entry)
	return e.Stage == 0 && !e.IntentToAdd && e.Mode == one.Mode && e.ID == one.ID
}

// cleaner turns files of the work tree into blobs ("clean" in
// gitattributes(5)). With keep it stores them, else it only finds their ids.
type cleaner struct {
	*Worktree
	attributes *attributes
	keep       bool
	places     *places
	staged     *stage // of files that only git can convert; nil for none yet
}

// clean fills in the ids of list. Files that only git can convert go through
// one run of git together.
func (c *cleaner) clean(ctx context.Context, list []Suspect) (err error) {
	c.leaveOutLarge(list)
	c.places = c.openPlaces()
	defer func() { err = errors.Join(err, c.places.Close(), c.staged.remove()) }()
	var forGit []*Suspect
	for i := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if list[i].Why != "" {
			continue
		}
		later, err := c.one(ctx, &list[i])
		switch {
		case cannotBeRead(err), c.keep && errors.As(err, new(*FilterError)): // which takes no other file with it
			list[i].Why = err.Error()
		case err != nil:
			return fmt.Errorf("read %q: %w", list[i].Path, err)
		case later:
			forGit = append(forGit, &list[i])
		}
	}
	return c.withGit(ctx, forGit)
}

// LargestChange is how many bytes the files of a change may have together, as
// they stand in the work tree. Files that are as long as they were do not count.
const LargestChange = 1 << 30

// leaveOutLarge leaves out the largest files, before any is read, until the
// others are no more than a change may have.
func (c *cleaner) leaveOutLarge(list []Suspect) {
	var files []*Suspect
	total := int64(0)
	for i := range list {
		if list[i].Info.Mode().IsRegular() {
			files = append(files, &list[i])
			total += countedSize(&list[i])
		}
	}
	if total <= LargestChange {
		return
	}
	slices.SortFunc(files, func(a, b *Suspect) int {
		return cmp.Or(cmp.Compare(b.Info.Size(), a.Info.Size()), cmp.Compare(a.Path, b.Path))
	})
	for _, s := range files {
		if total <= LargestChange {
			return
		}
		total -= countedSize(s)
		if known, err := c.objects.Size(s.old); s.old.IsZero() || err != nil || known != s.Info.Size() {
			s.Why = fmt.Sprintf("it has %d bytes, and all files of a change may have %d together: remove it, or let git ignore it", s.Info.Size(), LargestChange)
			s.TooLarge = true
		}
	}
}

// countedSize is a file's size, as far as it matters: a sum of such cannot
// overflow.
func countedSize(s *Suspect) int64 { return min(s.Info.Size(), LargestChange+1) }

// cannotBeRead says that the failure is one of this file alone.
func cannotBeRead(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.As(err, new(*repository.UnsupportedError))
}

func (c *cleaner) one(ctx context.Context, s *Suspect) (later bool, err error) {
	if s.Mode == index.Symlink && s.Info.Mode()&fs.ModeSymlink != 0 {
		target, err := c.dir.Readlink(s.Path)
		if err != nil {
			return false, err
		}
		s.ID, err = c.blob(strings.NewReader(target), int64(len(target)))
		return false, err
	}
	attrs := c.attributes.of(s.Path)
	f, err := regularfile.OpenIn(c.dir, s.Path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if name := c.repo.Settings.FilterOf(attrs); name != "" {
		if f, err = c.places.convert(ctx, name, toGit, s.Path, f, c.keep); err != nil {
			return false, err
		}
		defer f.Close()
	}
	if c.repo.Settings.NeedsGit(attrs) {
		return true, c.stage(ctx, s.Path, f)
	}
	s.ID, err = c.file(ctx, f, c.repo.Settings.EOL.Decide(attrs), s.old)
	return false, err
}

func (c *cleaner) file(ctx context.Context, f *os.File, action eol.Action, old plumbing.Hash) (plumbing.Hash, error) {
	info, err := f.Stat()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !action.Converts() {
		return c.blob(regularfile.Until(ctx, f), info.Size())
	}
	content, err := eol.Look(regularfile.Until(ctx, f))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return plumbing.ZeroHash, err
	}
	indexed, err := c.indexed(action, content, old)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !action.Strips(content, indexed) {
		return c.blob(regularfile.Until(ctx, f), content.Size)
	}
	return c.blob(eol.ToLF(regularfile.Until(ctx, f)), content.Size-content.CRLF)
}

// indexed looks at what the index holds, where that decides.
func (c *cleaner) indexed(action eol.Action, content eol.Content, old plumbing.Hash) (*eol.Content, error) {
	if !action.Guesses() || content.CRLF == 0 || old.IsZero() {
		return nil, nil
	}
	known, err := c.lineEndings(old)
	return &known, err
}

func (c *cleaner) blob(r io.Reader, size int64) (plumbing.Hash, error) {
	if c.keep {
		return c.objects.Write(plumbing.BlobObject, size, r)
	}
	sum := plumbing.NewHasher(plumbing.BlobObject, size)
	n, err := io.Copy(sum, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes where %d were expected: it changes while it is read", n, size)
	}
	return sum.Sum(), err
}

func (c *cleaner) withGit(ctx context.Context, list []*Suspect) error {
	if len(list) == 0 {
		return nil
	}
	var paths bytes.Buffer
	for _, s := range list {
		paths.WriteString(repository.Quote(s.Path) + "\n")
	}
	args := []string{"hash-object", "--stdin-paths"}
	if c.keep {
		args = []string{"hash-object", "-w", "--stdin-paths"}
	}
	out, err := c.staged.git(ctx, c, &paths, args...)
	if err != nil {
		return fmt.Errorf("convert %d files: %w", len(list), err)
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(list) {
		return fmt.Errorf("convert files: git names %d of %d objects", len(ids), len(list))
	}
	for i, s := range list {
		if s.ID, err = repository.ParseID(ids[i]); err != nil {
			return fmt.Errorf("convert files: %w", err)
		}
	}
	return nil
}

// stage is a folder with copies of files for git, which could not be given a path of a layer, and
// must not follow links that commands make meanwhile.
type stage struct {
	dir  string
	root *os.Root
}

// stage copies the content of a file into the stage.
func (c *cleaner) stage(ctx context.Context, name string, content io.Reader) (err error) {
	if c.staged == nil {
		dir, err := os.MkdirTemp(c.repo.Private, "files-")
		if err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return errors.Join(err, os.Remove(dir))
		}
		c.staged = &stage{dir, root}
	}
	if err := c.staged.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := c.staged.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, regularfile.Until(ctx, content))
	return errors.Join(err, f.Close())
}

// git runs git in the stage, with the attribute files that decide.
func (s *stage) git(ctx context.Context, c *cleaner, stdin io.Reader, args ...string) ([]byte, error) {
	cp := copier{ctx: ctx, from: c.dir, to: s.root}
	for folder := range c.attributes.folders {
		if err := cp.entry(folder + ".gitattributes"); err != nil {
			return nil, err
		}
	}
	return c.repo.Git.With("GIT_WORK_TREE="+s.dir).Run(ctx, s.dir, stdin, args...)
}

func (s *stage) remove() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.root.Close(), os.RemoveAll(s.dir))
}
