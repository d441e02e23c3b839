package objects

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
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
	id, err = encodeLoose(f, t, size, r)
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
func encodeLoose(f io.Writer, t plumbing.ObjectType, size int64, r io.Reader) (id plumbing.Hash, err error) {
	buffered := bufio.NewWriter(f)
	header := fmt.Sprintf("%s %d\x00", t, size)
	compressed := compress(buffered, int64(len(header))+size)
	sum := newHasher(t, size)
	if _, err := io.WriteString(compressed, header); err != nil {
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

// oneBlock is the size of an object, in bytes, that fits in one block of a file system: compressing it saves no space.
const oneBlock = 4000

// compress returns a zlib stream of size bytes. Close ends it.
func compress(w *bufio.Writer, size int64) io.WriteCloser {
	if size <= oneBlock {
		return newStored(w, uint16(size))
	}
	z := compressors.Get().(*zlib.Writer)
	z.Reset(w)
	return pooled{z}
}

// pooled is a compressor that returns to compressors when it is closed.
type pooled struct{ *zlib.Writer }

func (p pooled) Close() error {
	defer compressors.Put(p.Writer)
	return p.Writer.Close()
}

// stored writes a zlib stream of one uncompressed block (RFC 1950, RFC 1951 section 3.2.4).
type stored struct {
	w   *bufio.Writer
	sum hash.Hash32
}

// newStored begins a stream of size bytes.
func newStored(w *bufio.Writer, size uint16) stored {
	w.Write([]byte{0x78, 0x01, 0x01, byte(size), byte(size >> 8), ^byte(size), ^byte(size >> 8)}) // Flush returns an error
	return stored{w, adler32.New()}
}

func (s stored) Write(data []byte) (int, error) {
	s.sum.Write(data) // never fails
	return s.w.Write(data)
}

func (s stored) Close() error {
	_, err := s.w.Write(s.sum.Sum(nil))
	return err
}

// compressors has zlib writers of all stores, because each takes more than 1 MB.
var compressors = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // fails only for an invalid level
	return w
}}

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
