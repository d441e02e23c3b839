package objects

import (
	"errors"
	"io/fs"
	"maps"
	"path"
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
	largeObject   = int64(1 << 20) // larger objects are read as a stream, unless a pack stores them as differences
)

// folder finds the objects of one git folder, without those of its alternates. go-git finds the loose ones and
// decodes the packed ones. It does not search the packs: it would read their whole indexes and keep them.
type folder struct {
	files  billy.Filesystem
	cache  cache.Object
	loose  *filesystem.ObjectStorage
	packs  map[string]*pack // by the name of the index
	listed bool             // packs has all packs
}

// pack is a pack whose file is opened when an object is read.
type pack struct {
	index *packIndex
	file  billy.File // nil until then
	// whole reads objects into memory. streamed reads large ones as a stream.
	whole, streamed *packfile.Packfile
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
	_, err := f.packOf(id)
	return err
}

// object returns an object, or plumbing.ErrObjectNotFound.
func (f *folder) object(id plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := f.loose.EncodedObject(plumbing.AnyObject, id)
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return o, err
	}
	if o, cached := f.cache.Get(id); cached {
		return o, nil
	}
	p, err := f.packOf(id)
	if err != nil {
		return nil, err
	}
	if p.file == nil {
		p.file, err = f.files.Open(strings.TrimSuffix(p.index.path, ".idx") + ".pack")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, plumbing.ErrObjectNotFound // git gc removed it
		}
		if err != nil {
			return nil, err
		}
		p.whole = packfile.NewPackfileWithCache(p.index, f.files, p.file, f.cache, 0)
		p.streamed = packfile.NewPackfileWithCache(p.index, f.files, p.file, f.cache, largeObject)
	}
	return p.object(id)
}

// object returns an object of an open pack.
func (p *pack) object(id plumbing.Hash) (plumbing.EncodedObject, error) {
	at, err := p.index.FindOffset(id)
	if err != nil {
		return nil, err
	}
	header, err := p.whole.Scanner().SeekObjectHeader(at)
	if err != nil {
		return nil, err
	}
	if header.Type.IsDelta() {
		return p.whole.Get(id) // go-git's stream is wrong after a difference copies from before the last copied part
	}
	return p.streamed.Get(id)
}

// packOf returns the pack that has an object, or plumbing.ErrObjectNotFound.
func (f *folder) packOf(id plumbing.Hash) (*pack, error) {
	if err := f.listPacks(); err != nil {
		return nil, err
	}
	for _, p := range f.packs {
		_, err := p.index.FindOffset(id)
		isGone := errors.Is(err, fs.ErrNotExist) // git gc removed it
		if !isGone && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return p, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// listPacks reads the beginning of the indexes of all packs.
func (f *folder) listPacks() error {
	if f.listed {
		return nil
	}
	const dir = "objects/pack"
	entries, err := f.files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if path.Ext(name) != ".idx" || f.packs[name] != nil {
			continue
		}
		index, err := readPackIndex(f.files, path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // git gc removed it
		}
		if err != nil {
			return err
		}
		f.packs[name] = &pack{index: index}
	}
	f.listed = true
	return nil
}
