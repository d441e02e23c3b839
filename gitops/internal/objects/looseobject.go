package objects

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// writeLoose writes a loose object. The file gets its final name when it is complete. An existing
// object stays unchanged.
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

// encodeLoose writes an object of size bytes in git's loose form and returns its id. It fails if r
// does not have exactly size bytes.
func (s *Store) encodeLoose(f io.Writer, t plumbing.ObjectType, size int64, r io.Reader) (id plumbing.Hash, err error) {
	buffered := bufio.NewWriter(f)
	compressed := s.zlib.Get().(*zlib.Writer)
	defer s.zlib.Put(compressed)
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

// newCompressors returns a pool of zlib writers. Making one takes longer than writing a small
// object.
func newCompressors() *sync.Pool {
	return &sync.Pool{New: func() any {
		w, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // fails only for an invalid level
		return w
	}}
}

// placeLoose renames a temporary file to the path of a loose object. If the object exists, it
// removes the file.
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
