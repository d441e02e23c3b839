package gitops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/eol"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// suspect is a file of the work tree whose content has to be known as git
// would store it.
type suspect struct {
	path string
	mode uint32
	info fs.FileInfo
	old  plumbing.Hash // what the index holds; zero: nothing
	id   plumbing.Hash // what clean found
	why  string        // it cannot be known: why not
	kind ProblemKind   // of why
}

// cleaner turns files of the work tree into blobs ("clean" in
// gitattributes(5)). With keep it stores them, else it only finds their ids.
type cleaner struct {
	*Checkout
	attributes *attributes
	keep       bool
}

// clean fills in the ids of list. Files that only git can convert go through
// one run of git together.
func (c *cleaner) clean(ctx context.Context, list []suspect) error {
	c.leaveOutLarge(list)
	var forGit []*suspect
	for i := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if list[i].why != "" {
			continue
		}
		later, err := c.one(ctx, &list[i])
		switch {
		case cannotBeRead(err):
			list[i].why, list[i].kind = err.Error(), ProblemUnreadable
		case err != nil:
			return fmt.Errorf("read %q: %w", list[i].path, err)
		case later:
			forGit = append(forGit, &list[i])
		}
	}
	err := c.withGit(ctx, forGit)
	if err == nil || !c.keep || ctx.Err() != nil {
		return err
	}
	for _, s := range forGit { // a filter that fails takes no other file with it
		s.id, s.why, s.kind = plumbing.ZeroHash, err.Error(), ProblemUnreadable
	}
	return nil
}

// LargestChange is how many bytes the files of a change may have together, as
// they stand in the work tree. Files that are as long as they were do not count.
const LargestChange = 1 << 30

// leaveOutLarge leaves out the largest files, before any is read, until the
// others are no more than a change may have.
func (c *cleaner) leaveOutLarge(list []suspect) {
	var files []*suspect
	total := int64(0)
	for i := range list {
		if list[i].info.Mode().IsRegular() {
			files = append(files, &list[i])
			total += countedSize(&list[i])
		}
	}
	if total <= LargestChange {
		return
	}
	slices.SortFunc(files, func(a, b *suspect) int {
		return cmp.Or(cmp.Compare(b.info.Size(), a.info.Size()), cmp.Compare(a.path, b.path))
	})
	for _, s := range files {
		if total <= LargestChange {
			return
		}
		total -= countedSize(s)
		if known, err := c.objects.Size(s.old); s.old.IsZero() || err != nil || known != s.info.Size() {
			s.why, s.kind = fmt.Sprintf("it has %d bytes, and all files of a change may have %d together: remove it, or let git ignore it", s.info.Size(), LargestChange), ProblemLarge
		}
	}
}

// countedSize is a file's size, as far as it matters: a sum of such cannot
// overflow.
func countedSize(s *suspect) int64 { return min(s.info.Size(), LargestChange+1) }

// cannotBeRead says that the failure is one of this file alone.
func cannotBeRead(err error) bool {
	var unsupported *repository.UnsupportedError
	return errors.Is(err, fs.ErrPermission) || errors.As(err, &unsupported)
}

func (c *cleaner) one(ctx context.Context, s *suspect) (later bool, err error) {
	if s.mode == index.Symlink && s.info.Mode()&fs.ModeSymlink != 0 {
		target, err := c.dir.Readlink(s.path)
		if err != nil {
			return false, err
		}
		s.id, err = c.blob(strings.NewReader(target), int64(len(target)))
		return false, err
	}
	attrs := c.attributes.of(s.path)
	if why, needs := c.repo.Settings.NeedsGit(attrs); needs {
		if !c.repo.Git.There() {
			return false, noGitFor(why)
		}
		return true, nil
	}
	f, err := regularfile.OpenIn(c.dir, s.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	s.id, err = c.file(ctx, f, c.repo.Settings.EOL.Decide(attrs), s.old)
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
	r, _, err := c.objects.Blob(old)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	known, err := eol.Look(r)
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

// withGit lets git run the filters.
func (c *cleaner) withGit(ctx context.Context, list []*suspect) error {
	if len(list) == 0 {
		return nil
	}
	var paths bytes.Buffer
	for _, s := range list {
		if err := c.filtersOf(s.path); err != nil {
			return err
		}
		paths.WriteString(quoteLine(s.path) + "\n")
	}
	args := []string{"hash-object", "--stdin-paths"}
	if c.keep {
		args = []string{"hash-object", "-w", "--stdin-paths"}
	}
	out, err := c.repo.Git.Run(ctx, c.repo.Root, &paths, args...)
	if err != nil {
		return fmt.Errorf("run the filters of %d files: %w", len(list), err)
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(list) {
		return fmt.Errorf("run the filters: git names %d of %d objects", len(ids), len(list))
	}
	for i, s := range list {
		if s.id, err = repository.ParseID(ids[i]); err != nil {
			return fmt.Errorf("run the filters: %w", err)
		}
	}
	return nil
}

// filtersOf refuses filters that come into play only now and run a program of
// the checkout.
func (c *cleaner) filtersOf(path string) error {
	if name := c.attributes.of(path)["filter"].Text(); c.repo.Settings.Filters[name].Active() {
		return c.filterOutside(name)
	}
	return nil
}

// quoteLine writes a path for a list of lines as git's quote.c reads it.
func quoteLine(path string) string {
	if !strings.ContainsAny(path, "\n\"\\") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
