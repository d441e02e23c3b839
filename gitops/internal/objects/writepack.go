package objects

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// WritePack writes a packfile of the given objects, without deltas (gitformat-pack(5)).
func (s *Store) WritePack(ctx context.Context, ids []plumbing.Hash, w io.Writer) error {
	sum := sha1.New()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	out.WriteString("PACK\x00\x00\x00\x02") // Flush returns an error
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(ids))))
	for _, id := range ids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.packOne(ctx, id, out); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// packOne writes one object of a pack: its type and size, then its content.
func (s *Store) packOne(ctx context.Context, id plumbing.Hash, out *bufio.Writer) error {
	o, r, err := s.open(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	defer r.Close()
	size := o.Size()
	first, rest := byte(o.Type())<<4|byte(size&15), uint64(size>>4)
	if rest == 0 {
		out.WriteByte(first)
	} else {
		out.WriteByte(first | 0x80)
		out.Write(binary.AppendUvarint(nil, rest))
	}
	compressed := compress(out, size)
	n, err := io.Copy(compressed, regularfile.Until(ctx, r))
	if err == nil && n != size {
		err = fmt.Errorf("object %s: %d bytes where %d were expected", id, n, size)
	}
	return errors.Join(err, compressed.Close())
}
