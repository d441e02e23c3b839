package gitops

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// newObjects lists the trees and blobs that the tree of cs has and the base
// tree has not at the same place, each once.
func (c *Checkout) newObjects(ctx context.Context, cs *ChangeSet) ([]plumbing.Hash, error) {
	var ids []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	add := func(id plumbing.Hash) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	err := c.objects.diff(ctx, cs.Base.Tree.hash(), cs.Tree.hash(),
		func(d difference) error {
			if inPack(d) {
				add(d.new.id)
			}
			return nil
		},
		func(_ string, id plumbing.Hash) error {
			add(id)
			return nil
		})
	return ids, err
}

// inPack says whether a pack carries the new side of a difference: a blob that
// is not the base's at this path.
func inPack(d difference) bool {
	return d.new.mode != 0 && d.new.mode != index.Gitlink && d.new.id != d.old.id
}

// WritePack writes a packfile, without deltas, of the objects that the tree of
// cs has and its base has not, and of the commit when it is not "".
func (c *Checkout) WritePack(ctx context.Context, cs *ChangeSet, commit string, w io.Writer) error {
	ids, err := c.newObjects(ctx, cs)
	if err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	if commit != "" {
		ids = append(ids, plumbing.NewHash(commit))
	}
	if err := c.objects.pack(ctx, ids, w); err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	return nil
}

// pack writes objects as gitformat-pack(5) says, version 2.
func (s *store) pack(ctx context.Context, ids []plumbing.Hash, w io.Writer) error {
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

func (s *store) packOne(ctx context.Context, id plumbing.Hash, w io.Writer) error {
	o, err := s.object(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	r, err := o.Reader()
	if err != nil {
		return fmt.Errorf("object %s: %w", id, err)
	}
	defer r.Close()
	if _, err := w.Write(packHeader(o.Type(), uint64(o.Size()))); err != nil {
		return err
	}
	compressed := s.small.take(w)
	defer s.small.giveBack(compressed)
	if _, err := io.Copy(compressed, regularfile.Until(ctx, r)); err != nil {
		return errors.Join(fmt.Errorf("object %s: %w", id, err), compressed.Close())
	}
	return compressed.Close()
}

// packHeader is type and size: 4 bits of the size in the first byte, 7 in each
// that follows.
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
