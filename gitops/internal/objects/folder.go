package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

const (
	cachedObjects = 4 * cache.MiByte
	largeObject   = int64(1 << 20) // larger objects are read as a stream, unless a pack stores them as deltas
)

// folder finds the objects of one git folder, without those of its alternates. go-git finds the loose ones. It does
// not search the packs: it would read their whole indexes and keep them.
type folder struct {
	files  billy.Filesystem
	cache  cache.Object
	loose  *filesystem.ObjectStorage
	packs  map[string]*pack // by name
	listed bool             // packs has all packs
}

// pack is a pack whose file is opened when an object is read.
type pack struct {
	index   *packIndex
	file    billy.File // nil until then
	scanner *packfile.Scanner
}

func openFolder(dir string) *folder {
	files := osfs.New(dir)
	objects := cache.NewObjectLRU(cachedObjects)
	return &folder{
		files: files,
		cache: objects,
		loose: filesystem.NewObjectStorageWithOptions(dotgit.New(withoutPacks{files}), objects, filesystem.Options{LargeObjectThreshold: largeObject}),
		packs: map[string]*pack{},
	}
}

// withoutPacks is a git folder that has only loose objects.
type withoutPacks struct{ billy.Filesystem }

// ReadDir lists no pack. go-git lists no other folder to find an object.
func (withoutPacks) ReadDir(string) ([]fs.FileInfo, error) { return nil, nil }

// Open opens loose objects. There are no alternates, in which go-git would look for other objects. It would follow a
// ring of them without end.
func (f withoutPacks) Open(name string) (billy.File, error) {
	if path.Base(name) == "alternates" {
		return nil, fs.ErrNotExist
	}
	return f.Filesystem.Open(name)
}

// close closes the packs that are open.
func (f *folder) close() error {
	var errs []error
	for _, p := range f.packs {
		if p.file != nil {
			errs = append(errs, p.file.Close())
		}
	}
	return errors.Join(errs...)
}

// reindex has the next search list the packs again. A pack that is open stays so, since its objects are read later.
func (f *folder) reindex() {
	f.listed = false
	maps.DeleteFunc(f.packs, func(_ string, p *pack) bool { return p.file == nil })
}

// has returns plumbing.ErrObjectNotFound if the folder does not have an object.
func (f *folder) has(id plumbing.Hash) error {
	if err := f.loose.HasEncodedObject(id); !errors.Is(err, plumbing.ErrObjectNotFound) {
		return err
	}
	_, _, err := f.find(id)
	return err
}

// object returns an object, or plumbing.ErrObjectNotFound. A pack may have an object whose loose file is damaged.
// The cache has loose objects by the hash of their content, so one that it has needs no file.
func (f *folder) object(id plumbing.Hash) (plumbing.EncodedObject, error) {
	if o, cached := f.cache.Get(id); cached {
		return o, nil
	}
	o, looseErr := f.loose.EncodedObject(plumbing.AnyObject, id)
	if looseErr == nil {
		return o, nil
	}
	o, err := f.packedObject(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = looseErr
	}
	return o, err
}

// packedObject returns an object of a pack, or plumbing.ErrObjectNotFound.
func (f *folder) packedObject(id plumbing.Hash) (plumbing.EncodedObject, error) {
	p, at, err := f.find(id)
	if err != nil {
		return nil, err
	}
	if p.file == nil {
		file, err := f.files.Open(strings.TrimSuffix(p.index.path, ".idx") + ".pack")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, plumbing.ErrObjectNotFound // git gc removed it
		}
		if err != nil {
			return nil, err
		}
		p.file, p.scanner = file, packfile.NewScanner(file)
	}
	var o *plumbing.MemoryObject
	header, err := p.scanner.SeekObjectHeader(at)
	if err == nil {
		if !header.Type.IsDelta() && header.Length > largeObject {
			return packfile.NewFSObject(id, header.Type, at, header.Length, nil, f.files, p.file.Name(), f.cache, largeObject), nil
		}
		o, err = f.unpack(p, header, maxDeltas)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.file.Name(), err)
	}
	return o, nil
}

// maxDeltas is more than the depth that git allows, 4095. A hostile pack may have a ring of deltas.
const maxDeltas = 10_000

var errNoBase = errors.New("the base of a delta is missing")

// unpack reads an object of an open pack into memory. The pack's scanner has just read its header. left is how many
// deltas may follow each other. go-git can apply deltas, too, but it asks an index for the id of each base, which takes
// reading all of it.
func (f *folder) unpack(p *pack, header *packfile.ObjectHeader, left int) (*plumbing.MemoryObject, error) {
	key := p.index.key(header.Offset)
	if o, cached := f.cache.Get(key); cached {
		return o.(unpacked).MemoryObject, nil
	}
	o, content := &plumbing.MemoryObject{}, &bytes.Buffer{}
	if _, _, err := p.scanner.NextObject(content); err != nil {
		return nil, err
	}
	if header.Type.IsDelta() {
		base, err := f.baseOf(p, header, left)
		if err != nil {
			return nil, err
		}
		o.SetType(base.Type())
		if err := packfile.ApplyDelta(o, base, content.Bytes()); err != nil {
			return nil, err
		}
	} else {
		o.SetType(header.Type)
		o.Write(content.Bytes()) // never fails
	}
	f.cache.Put(unpacked{o, key})
	return o, nil
}

// baseOf returns the object on which a delta is based.
func (f *folder) baseOf(p *pack, delta *packfile.ObjectHeader, left int) (base *plumbing.MemoryObject, err error) {
	at := delta.OffsetReference
	if delta.Type == plumbing.REFDeltaObject {
		at, err = p.index.find(delta.Reference)
	}
	if err != nil || left == 0 {
		return nil, errNoBase
	}
	header, err := p.scanner.SeekObjectHeader(at)
	if err != nil {
		return nil, err
	}
	return f.unpack(p, header, left-1)
}

// unpacked is an object in a cache by its place in a pack, so that nothing computes its hash.
type unpacked struct {
	*plumbing.MemoryObject
	key plumbing.Hash
}

func (u unpacked) Hash() plumbing.Hash { return u.key }

// find returns the pack that has an object and where, or plumbing.ErrObjectNotFound.
func (f *folder) find(id plumbing.Hash) (p *pack, at int64, err error) {
	if err := f.listPacks(); err != nil {
		return nil, 0, err
	}
	for _, p := range f.packs {
		at, err := p.index.find(id)
		isGone := errors.Is(err, fs.ErrNotExist) // git gc removed it
		if !isGone && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, at, err
		}
	}
	return nil, 0, plumbing.ErrObjectNotFound
}

// listPacks reads the beginning of the indexes of all packs. An index without a pack does not count.
func (f *folder) listPacks() error {
	if f.listed {
		return nil
	}
	const dir = "objects/pack"
	entries, err := os.ReadDir(filepath.Join(f.files.Root(), dir)) // f.files fails if one is deleted meanwhile
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		name, isPack := strings.CutSuffix(e.Name(), ".pack")
		if !isPack || f.packs[name] != nil {
			continue
		}
		index, err := readPackIndex(f.files, path.Join(dir, name+".idx"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // git writes the index last, and gc removes it first
		}
		if err != nil {
			return err
		}
		f.packs[name] = &pack{index: index}
	}
	f.listed = true
	return nil
}
