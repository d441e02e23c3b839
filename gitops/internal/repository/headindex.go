package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// cachedIndex is the index of the checkout that was read last, with the state of its file.
type cachedIndex struct {
	file *index.File
	info fs.FileInfo
}

// Index returns the index of the work tree. It reads the file only if it changed since the last
// call, because an index can be large.
func (r *Repository) Index(ctx context.Context) (*index.File, error) {
	path := r.indexPath()
	info, err := os.Stat(path)
	if err != nil {
		return r.readIndex(ctx, path)
	}
	if r.cachedIndex.file != nil && os.SameFile(info, r.cachedIndex.info) && index.StatOf(info) == index.StatOf(r.cachedIndex.info) {
		return r.cachedIndex.file, nil
	}
	f, err := r.readIndex(ctx, path)
	if err != nil {
		return nil, err
	}
	r.cachedIndex = cachedIndex{f, info}
	return f, nil
}

// WriteIndex replaces the index of the work tree by ix with updates.
func (r *Repository) WriteIndex(ix *index.File, updates []index.Entry) error {
	write := func(w io.Writer) error { return index.Write(w, ix, updates) }
	var err error
	if r.indexLock == nil {
		err = r.replaceUnderLock(r.indexPath(), func() error { return nil }, write)
	} else if err = r.requireIndexLock(); err == nil {
		err = r.indexLock.replace(write)
	}
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}

// readIndex reads an index of this checkout. It joins a split index.
func (r *Repository) readIndex(ctx context.Context, path string) (*index.File, error) {
	f, err := index.Read(path)
	if errors.Is(err, index.ErrMalformed) {
		err = fmt.Errorf("%w; remove %s and run `git reset`, which rebuilds it", err, path)
	}
	if err != nil {
		return nil, err
	}
	if f.Sparse() {
		return nil, sparseCheckout()
	}
	if !f.Split() {
		return f, nil
	}
	return r.unsplitIndex(ctx, path, f)
}

// unsplitIndex lets git join a copy of a split index. The checkout's own index stays split.
func (r *Repository) unsplitIndex(ctx context.Context, path string, split *index.File) (*index.File, error) {
	whole := filepath.Join(r.PrivateDir, "whole-index")
	if err := regularfile.CopyIfThere(path, whole, index.MaxSize); err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	shared, err := filepath.Glob(filepath.Join(filepath.Dir(path), "sharedindex.*"))
	if err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	for _, from := range shared {
		if err := regularfile.CopyIfThere(from, filepath.Join(r.PrivateDir, filepath.Base(from)), index.MaxSize); err != nil {
			return nil, fmt.Errorf("read the split index: %w", err)
		}
	}
	git, err := r.PrivateGit()
	if err != nil {
		return nil, err
	}
	_ = os.Remove(whole + ".lock") // left by a git that was killed
	if _, err := git.With("GIT_INDEX_FILE="+whole).Run(ctx, r.Root, nil, "update-index", "--no-split-index"); err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	f, err := index.Read(whole)
	if err != nil {
		return nil, err
	}
	f.Modified = split.Modified
	return f, nil
}

// Head returns the content of HEAD, "ref: NAME" or an id, and its commit. If the branch has no
// commit or cannot be read, it returns the content, a zero commit and an error.
func (l Layout) Head() (text string, commit plumbing.Hash, err error) {
	text, err = readHead(l.GitDir)
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	name, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text, plumbing.NewHash(text), nil
	}
	commit, err = l.ReadRef(name)
	return text, commit, err
}

// MoveHead changes HEAD from the content from to head ("ref: NAME" or an id), and writes the
// reflog. commit is the new commit, to its name in the reflog. It returns a *HeadMovedError if HEAD
// is not from, or the new branch is not at commit. It checks both although the index is locked: git
// renames branches and writes HEAD without that lock.
func (r *Repository) MoveHead(from, head, commit, to string) error {
	if err := r.requireIndexLock(); err != nil {
		return fmt.Errorf("write HEAD: %w", err)
	}
	_, old, _ := r.Head() // zero for a branch without commits
	err := r.replaceUnderLock(filepath.Join(r.GitDir, "HEAD"), func() error {
		now, _, err := r.Head()
		if err != nil || now != from {
			return &HeadMovedError{}
		}
		if name, symbolic := strings.CutPrefix(head, "ref: "); symbolic {
			if id, err := r.ReadRef(name); err != nil || id.String() != commit {
				return &HeadMovedError{}
			}
		}
		message := "checkout: moving from " + cmp.Or(strings.TrimPrefix(from, "ref: refs/heads/"), "HEAD") + " to " + to
		return r.appendReflog(filepath.Join(r.GitDir, "logs", "HEAD"), old, plumbing.NewHash(commit), message)
	}, lineWriter(head))
	if err != nil {
		return fmt.Errorf("write HEAD: %w", err)
	}
	return nil
}

// HeadMovedError reports that others switched to another branch, or renamed one.
type HeadMovedError struct{}

func (e *HeadMovedError) Error() string {
	return "others switched to another branch, or renamed one, meanwhile"
}

// BranchMovedError reports that others moved a branch.
type BranchMovedError struct{ Branch string }

func (e *BranchMovedError) Error() string {
	return fmt.Sprintf("branch %s was moved meanwhile: look at it and try again", e.Branch)
}

// SetBranch moves a branch from one commit to another and writes its reflog. It returns a
// *BranchMovedError if the branch is not at from. A zero from means that the branch must not exist.
func (r *Repository) SetBranch(branch string, from, commit plumbing.Hash, message string) error {
	name := "refs/heads/" + branch
	return r.writeRef(name, commit, func() error {
		now, err := r.ReadRef(name)
		if err != nil && !errors.Is(err, ErrNoRef) {
			return err
		}
		if now != from {
			return &BranchMovedError{branch}
		}
		return r.appendReflog(filepath.Join(r.CommonDir, "logs", filepath.FromSlash(name)), from, commit, message)
	})
}

// logName and logMail identify agent-ci in reflogs.
const (
	logName = "agent-ci"
	logMail = "agent-ci@noreply.invalid"
)

// appendReflog appends a line to a reflog, unless the configuration turns reflogs off. It refuses a link,
// which could redirect the write. Like git, it is called before the reference moves: if the log
// cannot be written, nothing moves.
func (r *Repository) appendReflog(path string, old, now plumbing.Hash, message string) error {
	if r.Settings.noReflog {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	f, err := regularfile.Append(path)
	if err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	when := time.Now()
	message, _, _ = strings.Cut(message, "\n")
	_, err = fmt.Fprintf(f, "%s %s %s <%s> %d %s\t%s\n", old, now, logName, logMail, when.Unix(), when.Format("-0700"), message)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	return nil
}
