package objects

import (
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Reindex finds packs that another program has added to the store's own folder.
func (s *Store) Reindex() { s.own.Reindex() }

// WritePack writes objects as a pack of version 2 (gitformat-pack(5)).
func (s *Store) WritePack(ctx context.Context, ids []plumbing.Hash, w io.Writer) error {
	sum := sha1.New()
	both := io.MultiWriter(w, sum)
	header := binary.BigEndian.AppendUint32([]byte("PACK"), packfile.VersionSupported)
	if _, err := both.Write(binary.BigEndian.AppendUint32(header, uint32(len(ids)))); err != nil {
		return err
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.packOne(ctx, id, both); err != nil {
			return err
		}
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// packOne writes an object as an entry of a pack, without a delta.
func (s *Store) packOne(ctx context.Context, id plumbing.Hash, w io.Writer) error {
	o, r, err := s.open(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := w.Write(packHeader(o.Type(), uint64(o.Size()))); err != nil {
		return err
	}
	compressed := s.small.Get().(*zlib.Writer)
	defer s.small.Put(compressed)
	compressed.Reset(w)
	if _, err := io.Copy(compressed, regularfile.Until(ctx, r)); err != nil {
		return errors.Join(fmt.Errorf("object %s: %w", id, err), compressed.Close())
	}
	return compressed.Close()
}

// packHeader encodes the type and size of an object in a pack: 4 bits of the size in the first
// byte, 7 bits in each further byte.
func packHeader(t plumbing.ObjectType, size uint64) []byte {
	c := byte(t)<<4 | byte(size&0x0f)
	size >>= 4
	var b []byte
	for size > 0 {
		b = append(b, c|0x80)
		c = byte(size & 0x7f)
		size >>= 7
	}
	return append(b, c)
}
