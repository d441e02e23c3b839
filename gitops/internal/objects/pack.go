package objects

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// folder finds the objects of a git folder. go-git reads loose objects, and packs at an offset. Its
// own lookup would hold the whole index of each pack in memory.
type folder struct {
	*filesystem.ObjectStorage // of loose objects
	files                     billy.Filesystem
	cache                     cache.Object
	packs                     []*pack // nil before the first lookup
}

// looseFiles is a git folder without packs and alternates.
type looseFiles struct{ billy.Filesystem }

func (looseFiles) ReadDir(string) ([]os.FileInfo, error) { return nil, nil }

func (l looseFiles) Open(name string) (billy.File, error) {
	if name == "objects/info/alternates" {
		return nil, fs.ErrNotExist
	}
	return l.Filesystem.Open(name)
}

func openFolder(dir string) *folder {
	f := &folder{files: osfs.New(dir), cache: cache.NewObjectLRU(cachedObjects)}
	f.ObjectStorage = filesystem.NewObjectStorageWithOptions(
		dotgit.New(looseFiles{f.files}), f.cache, filesystem.Options{LargeObjectThreshold: largeObject})
	return f
}

// EncodedObject returns an object, or plumbing.ErrObjectNotFound.
func (f *folder) EncodedObject(id plumbing.Hash) (plumbing.EncodedObject, error) {
	p, err := f.packOf(id)
	switch {
	case err != nil:
		return nil, err
	case p != nil:
		return p.Get(id)
	}
	return f.ObjectStorage.EncodedObject(plumbing.AnyObject, id)
}

// HasEncodedObject returns nil for an object that exists, or plumbing.ErrObjectNotFound.
func (f *folder) HasEncodedObject(id plumbing.Hash) error {
	if p, err := f.packOf(id); p != nil || err != nil {
		return err
	}
	return f.ObjectStorage.HasEncodedObject(id)
}

// packOf returns the pack with an object, or nil.
func (f *folder) packOf(id plumbing.Hash) (*pack, error) {
	if f.packs == nil {
		if err := f.openPacks(); err != nil {
			return nil, err
		}
	}
	for _, p := range f.packs {
		_, err := p.FindOffset(id)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, err
		}
	}
	return nil, nil
}

// openPacks opens all packs. It skips one that is being removed or has no index yet.
func (f *folder) openPacks() error {
	const dir = "objects/pack"
	entries, err := f.files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.packs = []*pack{}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".idx")
		if !is {
			continue
		}
		p, err := f.openPack(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		f.packs = append(f.packs, p)
	}
	return nil
}

// Close closes the packs. The next lookup opens those that exist then.
func (f *folder) Close() error {
	var errs []error
	for _, p := range f.packs {
		errs = append(errs, p.Close(), p.index.file.Close())
	}
	f.packs = nil
	return errors.Join(errs...)
}

// pack reads the objects of a pack.
type pack struct {
	*packfile.Packfile
	index *packIndex
}

func (f *folder) openPack(name string) (_ *pack, err error) {
	content, err := f.files.Open(name + ".pack")
	if err != nil {
		return nil, err
	}
	file, err := f.files.Open(name + ".idx")
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	ix := &packIndex{file: file}
	if err := ix.readFanout(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s.idx: %w", name, err), content.Close(), file.Close())
	}
	return &pack{packfile.NewPackfileWithCache(ix, f.files, content, f.cache, largeObject), ix}, nil
}

// packIndex finds objects in the index file of a pack (gitformat-pack(5), version 2). It reads only
// the entries that a search touches.
type packIndex struct {
	idxfile.Index // nil; go-git calls no other method to get an object
	file          billy.File
	fanout        [256]uint32 // number of objects whose id starts with at most this byte
	offsets       []int64     // of all objects, in the order of ids; nil before the first FindHash
	byOffset      []uint32    // positions in offsets, sorted by offset
}

const (
	fanoutAt = 8
	namesAt  = fanoutAt + 256*4
	idSize   = int64(len(plumbing.ZeroHash))
)

// count returns the number of objects.
func (x *packIndex) count() int64 { return int64(x.fanout[255]) }

// readFanout reads the beginning of the file, and checks its size.
func (x *packIndex) readFanout() error {
	var head [namesAt]byte
	if _, err := x.file.ReadAt(head[:], 0); err != nil {
		return err
	}
	if string(head[:fanoutAt]) != "\xfftOc\x00\x00\x00\x02" {
		return idxfile.ErrUnsupportedVersion
	}
	for i := range x.fanout {
		x.fanout[i] = binary.BigEndian.Uint32(head[fanoutAt+4*i:])
		if i > 0 && x.fanout[i] < x.fanout[i-1] {
			return idxfile.ErrMalformedIdxFile
		}
	}
	_, err := x.file.ReadAt(make([]byte, idSize), x.largeAt()+idSize) // each file ends with two checksums
	return err
}

// offsetsAt returns where the offsets begin, after ids and CRCs.
func (x *packIndex) offsetsAt() int64 { return namesAt + x.count()*(idSize+4) }

// largeAt returns where the offsets of 8 bytes begin.
func (x *packIndex) largeAt() int64 { return x.offsetsAt() + x.count()*4 }

func (x *packIndex) name(i int64) (id plumbing.Hash, err error) {
	_, err = x.file.ReadAt(id[:], namesAt+i*idSize)
	return id, err
}

// FindOffset returns the place of an object in the pack.
func (x *packIndex) FindOffset(id plumbing.Hash) (int64, error) {
	lo := int64(0)
	if id[0] > 0 {
		lo = int64(x.fanout[id[0]-1])
	}
	var err error
	i, found := sort.Find(int(int64(x.fanout[id[0]])-lo), func(i int) int {
		name, readErr := x.name(lo + int64(i))
		err = cmp.Or(err, readErr)
		return bytes.Compare(id[:], name[:])
	})
	if err == nil && !found {
		err = plumbing.ErrObjectNotFound
	}
	if err != nil {
		return 0, err
	}
	var short [4]byte
	if _, err := x.file.ReadAt(short[:], x.offsetsAt()+4*(lo+int64(i))); err != nil {
		return 0, err
	}
	return x.offset(short[:])
}

// offset decodes an offset. If it has more than 31 bits, the entry is a position in another table.
func (x *packIndex) offset(short []byte) (int64, error) {
	at := binary.BigEndian.Uint32(short)
	if at < 1<<31 {
		return int64(at), nil
	}
	var long [8]byte
	_, err := x.file.ReadAt(long[:], x.largeAt()+8*int64(at&(1<<31-1)))
	return int64(binary.BigEndian.Uint64(long[:])), err
}

// FindHash returns the id of the object at an offset, which the base of a delta is named by.
func (x *packIndex) FindHash(offset int64) (plumbing.Hash, error) {
	if x.offsets == nil {
		if err := x.readOffsets(); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	i, found := sort.Find(len(x.byOffset), func(i int) int { return cmp.Compare(offset, x.offsets[x.byOffset[i]]) })
	if !found {
		return plumbing.ZeroHash, plumbing.ErrObjectNotFound
	}
	return x.name(int64(x.byOffset[i]))
}

// readOffsets reads and sorts the offsets of all objects.
func (x *packIndex) readOffsets() error {
	table := make([]byte, 4*x.count())
	if _, err := x.file.ReadAt(table, x.offsetsAt()); err != nil {
		return err
	}
	offsets, byOffset := make([]int64, x.count()), make([]uint32, x.count())
	for i := range offsets {
		var err error
		if offsets[i], err = x.offset(table[4*i:]); err != nil {
			return err
		}
		byOffset[i] = uint32(i)
	}
	sort.Slice(byOffset, func(a, b int) bool { return offsets[byOffset[a]] < offsets[byOffset[b]] }) // slices.SortFunc would be one more copy of its code
	x.offsets, x.byOffset = offsets, byOffset
	return nil
}
