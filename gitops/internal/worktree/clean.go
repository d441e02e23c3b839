package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
)

// HashSuspects sets the blob id of every suspect of a scan: that of the content as git would store it.
func (w *Worktree) HashSuspects(ctx context.Context, s *scan.Scan) error {
	c := cleaner{Worktree: w, attributes: w.scannedAttributes(s)}
	return c.clean(ctx, s.Suspects)
}

// StoreSuspects is HashSuspects, and also stores the blobs.
func (w *Worktree) StoreSuspects(ctx context.Context, s *scan.Scan) error {
	c := cleaner{Worktree: w, attributes: w.scannedAttributes(s), keep: true}
	return c.clean(ctx, s.Suspects)
}

// cleaner turns files of the work tree into blobs ("clean" in gitattributes(5)). If keep is true it
// stores them; otherwise it only computes their ids.
type cleaner struct {
	*Worktree
	attributes *attributes
	keep       bool
	sandboxes  *sandboxes
	staged     *stage // files for git to convert; nil until there is one
}

// clean sets the ids of list. git converts the files that only it can convert, all in one run.
func (c *cleaner) clean(ctx context.Context, list []scan.Suspect) (err error) {
	c.leaveOutLarge(list)
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Path
	}
	if err := c.attributes.load(ctx, paths); err != nil {
		return err
	}
	c.sandboxes = c.newSandboxes()
	c.sandboxes.keep = c.keep
	defer func() { err = errors.Join(err, c.sandboxes.Close(), c.staged.remove()) }()
	var forGit []*scan.Suspect
	for i := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if list[i].Why != "" {
			continue
		}
		needsGit, err := c.cleanFile(ctx, &list[i])
		switch {
		case cannotBeRead(err), c.keep && errors.As(err, new(*FilterError)): // a problem of this file alone does not fail the others
			list[i].Why = err.Error()
		case err != nil:
			return fmt.Errorf("read %q: %w", list[i].Path, err)
		case needsGit:
			forGit = append(forGit, &list[i])
		}
	}
	return c.convertWithGit(ctx, forGit)
}

// LargestChange is the size limit of all files of a change together, in bytes in the work tree. A
// file that kept its size is never left out, even above the limit.
const LargestChange = 1 << 30

// leaveOutLarge marks the largest files as too large until the total is at most LargestChange. It
// does so before any file is read. It does not mark a file with the size of its old content, because the file
// may be unchanged.
func (c *cleaner) leaveOutLarge(list []scan.Suspect) {
	var files []*scan.Suspect
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
	slices.SortFunc(files, func(a, b *scan.Suspect) int {
		return cmp.Or(cmp.Compare(b.Info.Size(), a.Info.Size()), cmp.Compare(a.Path, b.Path))
	})
	for _, s := range files {
		if total <= LargestChange {
			return
		}
		total -= countedSize(s)
		oldSize, err := c.objects.Size(s.Old)
		mayBeUnchanged := !s.Old.IsZero() && err == nil && oldSize == s.Info.Size()
		if !mayBeUnchanged {
			s.Why = fmt.Sprintf("it has %d bytes, and all files of a change may have %d together: remove it, or let git ignore it", s.Info.Size(), LargestChange)
			s.TooLarge = true
		}
	}
}

// countedSize returns a file's size, capped just above the limit, so that sums cannot overflow.
func countedSize(s *scan.Suspect) int64 { return min(s.Info.Size(), LargestChange+1) }

// cannotBeRead reports whether an error concerns one file alone, such as a missing permission.
func cannotBeRead(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.As(err, new(*repository.UnsupportedError))
}

// cleanFile sets the id that git would store for a suspect, after the conversions of its
// attributes. If only git can convert the file, cleanFile copies it to the stage and returns needsGit.
func (c *cleaner) cleanFile(ctx context.Context, s *scan.Suspect) (needsGit bool, err error) {
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
		if f, err = c.sandboxes.convert(ctx, name, toGit, s.Path, f); err != nil {
			return false, err
		}
		defer f.Close()
	}
	if path.Base(s.Path) == ".gitattributes" {
		if err := c.requireQuickAttributes(s.Path, s.Info.Size()); err != nil {
			return false, err
		}
	}
	needsGit = c.repo.Settings.NeedsGit(attrs)
	if !needsGit && c.repo.Settings.ConvertsLines(attrs) {
		if needsGit, err = hasCRLF(regularfile.Until(ctx, f)); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			return false, err
		}
	}
	if needsGit {
		return true, c.stage(ctx, s.Path, f)
	}
	info, err := f.Stat()
	if err == nil {
		s.ID, err = c.blob(regularfile.Until(ctx, f), info.Size())
	}
	return false, err
}

// hasCRLF reports whether the content contains CRLF. A buffer may end between CR and LF, so a final
// CR is kept for the next read.
func hasCRLF(r io.Reader) (bool, error) {
	buf := make([]byte, 32<<10)
	for kept := 0; ; {
		n, err := r.Read(buf[kept:])
		seen := buf[:kept+n]
		switch {
		case bytes.Contains(seen, []byte("\r\n")):
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
		kept = 0
		if bytes.HasSuffix(seen, []byte("\r")) {
			kept = copy(buf, "\r")
		}
	}
}

// blob returns the blob id of size bytes of content, and stores the blob if keep is set. It fails
// if the content has another size.
func (c *cleaner) blob(r io.Reader, size int64) (plumbing.Hash, error) {
	if c.keep {
		return c.objects.Write(plumbing.BlobObject, size, r)
	}
	sum := plumbing.NewHasher(plumbing.BlobObject, size)
	n, err := io.Copy(sum, io.LimitReader(r, size+1)) // which also makes the buffer no larger
	if err == nil && n != size {
		err = fmt.Errorf("it is not %d bytes long, as expected: it changes while it is read", size)
	}
	return sum.Sum(), err
}

// stage copies a file to the stage, and makes the stage if it is the first file.
func (c *cleaner) stage(ctx context.Context, name string, content io.Reader) (err error) {
	if c.staged == nil {
		if c.staged, err = c.attributes.newStage(ctx); err != nil {
			return err
		}
	}
	return c.staged.add(ctx, name, content)
}

// convertWithGit sets the ids of staged files with git. If git fails and keep is set, it converts the
// files one at a time, and notes in Why those that git cannot convert.
func (c *cleaner) convertWithGit(ctx context.Context, list []*scan.Suspect) error {
	if len(list) == 0 {
		return nil
	}
	err := c.convertStaged(ctx, list)
	if !c.keep || program.ExitStatus(err) < 0 { // below 0: nil, or no failure of git
		return err
	}
	for _, s := range list {
		err := c.convertStaged(ctx, []*scan.Suspect{s})
		if err != nil && program.ExitStatus(err) < 0 {
			return err
		}
		if err != nil {
			s.Why = err.Error()
		}
	}
	return nil
}

// convertStaged lets git update-index convert staged files, and takes their new ids from its index. That index
// begins with the old contents, because git keeps CRLF in a file that had it before.
func (c *cleaner) convertStaged(ctx context.Context, list []*scan.Suspect) error {
	var paths bytes.Buffer
	var old []index.Entry
	for _, s := range list {
		paths.WriteString(s.Path + "\x00")
		if !s.Old.IsZero() {
			old = append(old, index.Entry{Path: s.Path, Mode: index.Regular, ID: s.Old})
		}
	}
	if err := c.objects.OwnFiles(ctx, old); err != nil {
		return err
	}
	args := []string{"update-index", "--add", "-z", "--stdin"}
	if !c.keep {
		args = slices.Insert(args, 1, "--info-only")
	}
	if _, err := c.staged.runGit(ctx, old, &paths, args...); err != nil {
		return fmt.Errorf("convert %d files: %w", len(list), err)
	}
	made, err := index.Read(c.staged.index())
	if err != nil {
		return fmt.Errorf("convert %d files: %w", len(list), err)
	}
	for _, s := range list {
		i, is := made.Search(s.Path)
		if !is {
			s.Why = "git refuses its path"
			continue
		}
		s.ID = made.Entry(i).ID
	}
	return nil
}
