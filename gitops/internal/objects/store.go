// Package objects reads and writes git's objects. It finds loose and packed objects, verifies the
// hash of objects in other folders, and writes blobs, trees and commits to its own folder. It
// reads, edits and compares trees. It reads packs from untrusted senders.
//
// Callers give it git folders. It knows no references, configuration, work trees or git program.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Store finds objects in its own git folder, to which nobody else writes, and in borrowed ones. It
// verifies the hash of each borrowed object.
type Store struct {
	dir      string // its own git folder, or ""
	own      *folder
	borrowed []*folder
	Lost     []string // git folders that a borrowed one borrows from, and that were missing before Open
}

// Open opens the objects of git folders. own is the folder to write to, or "".
func Open(own string, borrowed ...string) *Store {
	s := &Store{dir: own}
	if own != "" {
		s.own = openFolder(own)
	}
	for _, dir := range borrowed {
		s.borrowed = append(s.borrowed, openFolder(dir))
	}
	return s
}

// Close closes the packs that were opened.
func (s *Store) Close() error {
	var errs []error
	for _, folder := range s.folders() {
		errs = append(errs, folder.close())
	}
	return errors.Join(errs...)
}

func (s *Store) folders() []*folder {
	if s.own == nil {
		return s.borrowed
	}
	return append([]*folder{s.own}, s.borrowed...)
}

// Reindex finds packs that another program has added to the store's own folder.
func (s *Store) Reindex() { s.own.reindex() }

// MissingError returns a *DamagedError for an object that must exist and is in no folder. The error names a
// deleted repository from which this one borrows objects.
func (s *Store) MissingError(id plumbing.Hash) error {
	damaged := &DamagedError{ID: id.String(), Err: plumbing.ErrObjectNotFound}
	lenders := slices.Clone(s.Lost)
	for i, folder := range s.borrowed {
		if i > 0 { // the first is the repository itself
			lenders = append(lenders, folder.files.Root())
		}
	}
	for _, dir := range lenders {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			damaged.Lender = dir
			break
		}
	}
	return damaged
}

// Has reports whether an object can be read.
func (s *Store) Has(id plumbing.Hash) bool {
	_, err := s.lookUp(plumbing.AnyObject, id)
	return err == nil
}

// lookUp returns an object. It returns plumbing.ErrObjectNotFound for a missing object or another
// type, and a *DamagedError for a damaged one.
func (s *Store) lookUp(t plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := plumbing.EncodedObject(nil), plumbing.ErrObjectNotFound
	if s.own != nil {
		o, err = s.own.object(id)
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		o, err = s.borrow(id)
	}
	if err != nil {
		return nil, err
	}
	if t != plumbing.AnyObject && o.Type() != t {
		return nil, plumbing.ErrObjectNotFound
	}
	return o, nil
}

// Size returns the size of an object that must exist.
func (s *Store) Size(id plumbing.Hash) (int64, error) {
	o, err := s.lookUp(plumbing.AnyObject, id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = s.MissingError(id)
	}
	if err != nil {
		return 0, err
	}
	return o.Size(), nil
}

func (s *Store) Write(t plumbing.ObjectType, size int64, r io.Reader) (plumbing.Hash, error) {
	id, err := s.writeLoose(t, size, r)
	if err != nil {
		return id, fmt.Errorf("write an object: %w", err)
	}
	return id, nil
}

// WriteBytes writes an object, unless the store's own folder has it already.
func (s *Store) WriteBytes(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	if id := plumbing.ComputeHash(t, data); s.own.has(id) == nil {
		return id, nil
	}
	return s.Write(t, int64(len(data)), bytes.NewReader(data))
}

// CopyTo copies the objects that another store's own folder does not have.
func (s *Store) CopyTo(ctx context.Context, to *Store, ids []plumbing.Hash) error {
	for _, id := range ids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if to.own.has(id) == nil {
			continue
		}
		if err := s.copyOne(to, id); err != nil {
			return fmt.Errorf("copy objects: %w", err)
		}
	}
	return nil
}

// copyOne copies one object to another store's own folder.
func (s *Store) copyOne(to *Store, id plumbing.Hash) error {
	o, r, err := s.open(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = to.Write(o.Type(), o.Size(), r)
	return err
}

// OwnFiles copies the contents of files to the store's own folder.
func (s *Store) OwnFiles(ctx context.Context, files []index.Entry) error {
	var ids []plumbing.Hash
	for _, f := range files {
		if f.Mode != 0 && f.Mode != index.Gitlink {
			ids = append(ids, f.ID)
		}
	}
	return s.CopyTo(ctx, s, ids)
}

// Blob opens the content of a blob and returns its size.
func (s *Store) Blob(id plumbing.Hash) (content io.ReadCloser, size int64, err error) {
	o, r, err := s.open(plumbing.BlobObject, id)
	if err != nil {
		return nil, 0, fmt.Errorf("read a blob: %w", err)
	}
	return r, o.Size(), nil
}

// BlobBytes reads a blob. It returns a *TooLargeError if the blob has more than limit bytes.
func (s *Store) BlobBytes(id plumbing.Hash, limit int64) ([]byte, error) {
	r, size, err := s.Blob(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, &TooLargeError{Size: size, Limit: limit}
	}
	data, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", id, err)
	}
	return data, nil
}

// Commit reads a commit.
func (s *Store) Commit(id plumbing.Hash) (*object.Commit, error) {
	o, err := s.lookUp(plumbing.CommitObject, id)
	c := &object.Commit{}
	if err == nil {
		err = c.Decode(o)
	}
	switch {
	case errors.As(err, new(*DamagedError)):
		return nil, fmt.Errorf("read a commit: %w", err)
	case err != nil:
		return nil, fmt.Errorf("read commit %s: %w", id, err)
	}
	return c, nil
}

// EncodeObject returns the bytes of an object. encode is the method of go-git that encodes it.
func EncodeObject(encode func(plumbing.EncodedObject) error) ([]byte, error) {
	o := &plumbing.MemoryObject{}
	if err := encode(o); err != nil {
		return nil, err
	}
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

const maxAncestors = 200_000 // commits examined in search of an ancestor

// IsAncestor reports whether old is now or an ancestor of it. It sees only the history in the
// store, which a shallow clone cuts.
func (s *Store) IsAncestor(ctx context.Context, old, now plumbing.Hash) (bool, error) {
	since := time.Time{}
	if c, err := s.Commit(old); err == nil {
		since = c.Committer.When.Add(-24 * time.Hour) // do not search beyond commits a day older; a day because clocks differ
	}
	seen := map[plumbing.Hash]bool{now: true}
	queue := []plumbing.Hash{now}
	for len(queue) > 0 && len(seen) < maxAncestors {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		id := queue[0]
		queue = queue[1:]
		if id == old {
			return true, nil
		}
		commit, err := s.Commit(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		if commit.Committer.When.Before(since) {
			continue
		}
		for _, p := range commit.ParentHashes {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return false, nil
}

// TooLargeError reports a blob above a limit. The caller sets Path.
type TooLargeError struct {
	Path        string
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%q of the base commit has %d bytes, over the limit of %d", e.Path, e.Size, e.Limit)
}

// DamagedError reports a missing, unreadable or wrong object.
type DamagedError struct {
	ID     string
	Err    error
	Lender string // a missing git folder that the repository borrows objects from; "" for none
}

func (e *DamagedError) Error() string {
	if e.Lender != "" {
		return fmt.Sprintf("the repository borrows objects such as %s from %s, which is missing; restore that folder, or make a clone that has all objects itself", e.ID, e.Lender)
	}
	return fmt.Sprintf("the repository is damaged: object %s: %v; `git fsck` lists what is, and a new clone has it right", e.ID, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// PackError reports a pack that is not one of a change set.
type PackError struct {
	Reason string
}

func (e *PackError) Error() string { return "the pack is refused: " + e.Reason }
