package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/pjbgf/sha1cd"
)

var (
	errOtherContent = errors.New("it has another content than its id says")
	errCollision    = errors.New("its content was made to have the id of another one (a collision of SHA-1)")
)

// hasher computes object ids. Like git, it detects content made for a SHA-1 collision.
type hasher struct{ sha1cd.CollisionResistantHash }

func newHasher(t plumbing.ObjectType, size int64) hasher {
	h := hasher{sha1cd.New().(sha1cd.CollisionResistantHash)}
	fmt.Fprintf(h, "%s %d\x00", t, size)
	return h
}

func (h hasher) id() (id plumbing.Hash, err error) {
	_, collides := h.CollisionResistantSum(id[:0])
	if collides {
		err = errCollision
	}
	return id, err
}

// open opens an object that must exist. Its errors contain the id.
func (s *Store) open(t plumbing.ObjectType, id plumbing.Hash) (o plumbing.EncodedObject, r io.ReadCloser, err error) {
	if o, err = s.lookUp(t, id); err == nil {
		r, err = o.Reader()
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		err = s.MissingError(id)
	case err != nil && !errors.As(err, new(*DamagedError)):
		err = fmt.Errorf("object %s: %w", id, err)
	}
	return o, r, err
}

// borrow looks for an object in all borrowed folders. If it finds none, it rereads the lists of
// packs and looks again, because another process may have repacked.
func (s *Store) borrow(id plumbing.Hash) (plumbing.EncodedObject, error) {
	for range 2 {
		for _, folder := range s.borrowed {
			o, err := folder.object(id)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				continue
			}
			if err == nil {
				o, err = s.verifyBorrowed(id, o)
			}
			return o, damagedError(id, err)
		}
		for _, folder := range s.borrowed {
			folder.reindex()
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// damagedError returns a *DamagedError about an object, unless err is about an unreadable file.
func damagedError(id plumbing.Hash, err error) error {
	if err == nil || errors.As(err, new(*fs.PathError)) {
		return err
	}
	return &DamagedError{ID: id.String(), Err: err}
}

// verifyBorrowed returns a borrowed object after verifying its hash. It holds a small object in memory
// and copies a large one to the store's own folder.
func (s *Store) verifyBorrowed(id plumbing.Hash, o plumbing.EncodedObject) (plumbing.EncodedObject, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if o.Size() > largeObject && s.own != nil {
		return s.storeVerified(id, o, r)
	}
	if whole, ok := o.(*plumbing.MemoryObject); ok {
		return whole, checkContent(id, o, r)
	}
	inMemory := &plumbing.MemoryObject{}
	inMemory.SetType(o.Type())
	return inMemory, checkContent(id, o, io.TeeReader(io.LimitReader(r, largeObject+1), inMemory))
}

// storeVerified copies an object to the store's own folder and compares the id.
func (s *Store) storeVerified(id plumbing.Hash, o plumbing.EncodedObject, r io.Reader) (plumbing.EncodedObject, error) {
	found, err := s.Write(o.Type(), o.Size(), r)
	if err != nil {
		return nil, err
	}
	if found != id {
		return nil, errOtherContent
	}
	return s.own.object(id)
}

// checkContent returns an error unless the content of the object o has the given id.
func checkContent(id plumbing.Hash, o plumbing.EncodedObject, content io.Reader) error {
	sum := newHasher(o.Type(), o.Size())
	if _, err := io.Copy(sum, content); err != nil {
		return err
	}
	found, err := sum.id()
	if err == nil && found != id {
		err = errOtherContent
	}
	return err
}

// CheckOwn verifies the hashes of objects that the store's own folder already has. Use it for a
// folder that others write to.
func (s *Store) CheckOwn(ids []plumbing.Hash) error {
	for _, id := range ids {
		o, err := s.own.object(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err == nil {
			err = checkObject(id, o)
		}
		if err := damagedError(id, err); err != nil {
			return err
		}
	}
	return nil
}

// checkObject reads o and returns an error unless it has the given id.
func checkObject(id plumbing.Hash, o plumbing.EncodedObject) error {
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	return checkContent(id, o, r)
}

// CheckFiles verifies that all blobs for changes exist and are intact. Call it before writing to
// the work tree.
func (s *Store) CheckFiles(ctx context.Context, changes []Difference) error {
	for _, d := range changes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !d.New.isFile() {
			continue
		}
		_, r, err := s.open(plumbing.BlobObject, d.New.ID)
		if err != nil {
			return fmt.Errorf("write %q: %w", d.Path, err)
		}
		r.Close()
	}
	return nil
}
