package objects

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// writeLoose writes a loose object. It has its name
// only once it is whole. An object that is there already stays as it is.
func (s *Store) writeLoose(t plumbing.ObjectType, size int64, r io.Reader) (id plumbing.Hash, err error) {
	objects := filepath.Join(s.dir, "objects")
	f, err := os.CreateTemp(objects, "tmp_obj_")
	if err != nil {
		return id, err
	}
	id, err = s.encodeLoose(f, t, size, r)
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err == nil {
		err = placeLoose(objects, f.Name(), id)
	}
	if err != nil {
		return plumbing.ZeroHash, errors.Join(err, os.Remove(f.Name()))
	}
	return id, nil
}

func (s *Store) encodeLoose(f io.Writer, t plumbing.ObjectType, size int64, r io.Reader) (id plumbing.Hash, err error) {
	buffered := bufio.NewWriter(f)
	compressed := s.fast.Get().(*zlib.Writer)
	defer s.fast.Put(compressed)
	compressed.Reset(buffered)
	sum := newHasher(t, size)
	if _, err := fmt.Fprintf(compressed, "%s %d\x00", t, size); err != nil {
		return id, err
	}
	n, err := io.Copy(io.MultiWriter(sum, compressed), r)
	if err != nil {
		return id, err
	}
	if n != size {
		return id, fmt.Errorf("%d bytes where %d were expected: it changes while it is read", n, size)
	}
	if err := errors.Join(compressed.Close(), buffered.Flush()); err != nil {
		return id, err
	}
	return sum.id()
}

// newCompressors are writers that are used again: one takes more time to make than
// a small object takes to be written.
func newCompressors(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, _ := zlib.NewWriterLevel(nil, level) // fails for levels alone that there are not
		return w
	}}
}

func placeLoose(objects, temporary string, id plumbing.Hash) error {
	name := id.String()
	dir := filepath.Join(objects, name[:2])
	path := filepath.Join(dir, name[2:])
	if _, err := os.Lstat(path); err == nil {
		return os.Remove(temporary)
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(temporary, path)
}

// AddPack keeps the objects of a pack that was fetched. They are named by what is
// in them, whoever sent it.
func (s *Store) AddPack(pack io.Reader) error {
	var folder storer.PackfileWriter = s.own
	w, err := folder.PackfileWriter()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	_, err = io.Copy(buffered, pack)
	if err = errors.Join(err, buffered.Flush(), w.Close()); err != nil {
		return err
	}
	s.own.Reindex()
	return nil
}

// WritePack writes objects as gitformat-pack(5) says, version 2.
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
