package objects

import (
	"errors"
	"io/fs"
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
	largeObject   = int64(1 << 20) // larger objects are read as a stream
)

// folder finds the objects of one git folder, without those of its alternates. go-git finds the loose ones and
// decodes the packed ones. It does not search the packs: it would read their whole indexes and keep them.
type folder struct {
	files  billy.Filesystem
	cache  cache.Object
	loose  *filesystem.ObjectStorage
	packs  map[string]*pack // by the name without its extension
	listed bool             // packs has all packs
}

// pack is a pack whose file is opened when an object is read.
type pack struct {
	index *packIndex
	*packfile.Packfile // nil until then
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

// close closes the packs.
func (f *folder) close() error {
	var errs []error
	for _, p := range f.packs {
		errs = append(errs, p.index.file.Close())
		if p.Packfile != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// reindex has the next search list the packs again. A pack that is open stays so, since its objects are read later.
func (f *folder) reindex() {
	f.listed = false
	for name, p := range f.packs {
		if p.Packfile == nil {
			p.index.file.Close() // it was only read
			delete(f.packs, name)
		}
	}
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
	name, err := f.packOf(id)
	if err != nil {
		return nil, err
	}
	p := f.packs[name]
	if p.Packfile == nil {
		file, err := f.files.Open(packPath(name + ".pack"))
		if errors.Is(err, fs.ErrNotExist) {
			err = plumbing.ErrObjectNotFound // git gc removed it
		}
		if err != nil {
			return nil, err
		}
		p.Packfile = packfile.NewPackfileWithCache(p.index, f.files, file, f.cache, largeObject)
	}
	return p.Get(id)
}

// packOf returns the name of the pack that has an object, or plumbing.ErrObjectNotFound.
func (f *folder) packOf(id plumbing.Hash) (string, error) {
	if err := f.listPacks(); err != nil {
		return "", err
	}
	for name, p := range f.packs {
		if _, err := p.index.FindOffset(id); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return name, err
		}
	}
	return "", plumbing.ErrObjectNotFound
}

// listPacks opens the indexes of all packs.
func (f *folder) listPacks() error {
	if f.listed {
		return nil
	}
	entries, err := f.files.ReadDir(packPath(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		name, isIndex := strings.CutSuffix(e.Name(), ".idx")
		if !isIndex || f.packs[name] != nil {
			continue
		}
		index, err := openPackIndex(f.files, packPath(e.Name()))
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

func packPath(name string) string { return path.Join("objects", "pack", name) }
