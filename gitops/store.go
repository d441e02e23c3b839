package gitops

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// store finds objects: in a git folder of its own, which it writes to and which
// nobody else does, and in those that it borrows from. What is borrowed is handed
// out only once it was hashed whole and is what its id says. It is a go-git
// EncodedObjectStorer, so that go-git's objects can be used.
type store struct {
	dir      string // the git folder of its own; "" for none
	own      *filesystem.ObjectStorage
	borrowed []*filesystem.ObjectStorage
	fast     compressors // for objects by themselves
	small    compressors // for packs
}

const (
	cachedObjects = 4 * cache.MiByte
	largeObject   = int64(1 << 20) // from here on an object is read as a stream
)

// openStore opens the objects folders of git folders: of one of its own, which
// may be "", and of those that it borrows from.
func openStore(own string, borrowed ...string) *store {
	s := &store{dir: own, fast: compressors{level: zlib.BestSpeed}, small: compressors{level: zlib.DefaultCompression}}
	if own != "" {
		s.own = openObjects(own)
	}
	for _, dir := range borrowed {
		s.borrowed = append(s.borrowed, openObjects(dir))
	}
	return s
}

func openObjects(dir string) *filesystem.ObjectStorage {
	return filesystem.NewObjectStorageWithOptions(
		dotgit.New(osfs.New(dir)), cache.NewObjectLRU(cachedObjects),
		filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: largeObject})
}

// objectFolders returns the git folders whose objects a repository has: its
// own, and those that objects/info/alternates names, and theirs.
func objectFolders(commonDir string) ([]string, error) {
	const deepest = 5 // as in git
	list := []string{commonDir}
	depth := map[string]int{commonDir: 0}
	for i := 0; i < len(list); i++ {
		objects := filepath.Join(list[i], "objects")
		data, err := regularfile.Read(filepath.Join(objects, "info", "alternates"), regularfile.Small)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the alternates of %s: %w", objects, err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			alternate := absolute(objects, line)
			if filepath.Base(alternate) != "objects" || strings.HasPrefix(line, `"`) {
				return nil, &UnsupportedError{
					Feature: fmt.Sprintf("the alternate object folder %q", line),
					Remedy:  "run `git repack -a -d` and remove objects/info/alternates",
				}
			}
			dir := filepath.Dir(alternate)
			if _, seen := depth[dir]; !seen && depth[list[i]] < deepest && isDir(alternate) {
				depth[dir] = depth[list[i]] + 1
				list = append(list, dir)
			}
		}
	}
	return list, nil
}

func (s *store) close() error {
	var errs []error
	for _, folder := range s.folders() {
		errs = append(errs, folder.Close())
	}
	return errors.Join(errs...)
}

func (s *store) folders() []*filesystem.ObjectStorage {
	if s.own == nil {
		return s.borrowed
	}
	return append([]*filesystem.ObjectStorage{s.own}, s.borrowed...)
}

// EncodedObject returns plumbing.ErrObjectNotFound for what nothing has, and an
// *ObjectError for what is not what its id says.
func (s *store) EncodedObject(t plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := s.ownObject(id)
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

func (s *store) ownObject(id plumbing.Hash) (plumbing.EncodedObject, error) {
	if s.own == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	return s.own.EncodedObject(plumbing.AnyObject, id)
}

func (s *store) HasEncodedObject(id plumbing.Hash) error {
	for _, folder := range s.folders() {
		err := folder.HasEncodedObject(id)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return err
		}
	}
	return plumbing.ErrObjectNotFound
}

func (s *store) has(id plumbing.Hash) bool { return s.HasEncodedObject(id) == nil }

func (s *store) EncodedObjectSize(id plumbing.Hash) (int64, error) {
	o, err := s.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return 0, err
	}
	return o.Size(), nil
}

func (s *store) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

func (s *store) SetEncodedObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	r, err := o.Reader()
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("write an object: %w", err)
	}
	defer r.Close()
	return s.write(o.Type(), o.Size(), r)
}

func (s *store) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errors.ErrUnsupported
}

func (s *store) AddAlternate(string) error { return errors.ErrUnsupported }

// write stores an object of a known size from a stream.
func (s *store) write(t plumbing.ObjectType, size int64, r io.Reader) (plumbing.Hash, error) {
	id, err := s.writeLoose(t, size, r)
	if err != nil {
		return id, fmt.Errorf("write an object: %w", err)
	}
	return id, nil
}

// writeBytes stores a small object.
func (s *store) writeBytes(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	return s.write(t, int64(len(data)), bytes.NewReader(data))
}

// copyTo puts objects into another store that may not have them yet.
func (s *store) copyTo(to *store, ids []plumbing.Hash) error {
	for _, id := range ids {
		if to.own.HasEncodedObject(id) == nil {
			continue
		}
		if err := s.copyOne(to, id); err != nil {
			return fmt.Errorf("copy objects: %w", err)
		}
	}
	return nil
}

func (s *store) copyOne(to *store, id plumbing.Hash) error {
	o, err := s.object(plumbing.AnyObject, id)
	if err != nil {
		return err
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = to.write(o.Type(), o.Size(), r)
	return err
}

// blob opens the content of a blob.
func (s *store) blob(id plumbing.Hash) (io.ReadCloser, int64, error) {
	o, err := s.object(plumbing.BlobObject, id)
	if err != nil {
		return nil, 0, fmt.Errorf("read a blob: %w", err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, 0, fmt.Errorf("read blob %s: %w", id, err)
	}
	return r, o.Size(), nil
}

// blobBytes reads a blob that must not be longer than limit.
func (s *store) blobBytes(id plumbing.Hash, limit int64) ([]byte, error) {
	r, size, err := s.blob(id)
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

func (s *store) commit(id plumbing.Hash) (*object.Commit, error) {
	c, err := object.GetCommit(s, id)
	switch {
	case errors.As(err, new(*ObjectError)):
		return nil, fmt.Errorf("read a commit: %w", err)
	case err != nil:
		return nil, fmt.Errorf("read commit %s: %w", id, err)
	}
	return c, nil
}
