package objects

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// packIndex finds the objects of a pack in its index, of which it reads only the parts that a search needs: the
// index of a large repository has hundreds of megabytes. Its form is version 2 of
// https://git-scm.com/docs/gitformat-pack#_version_2_pack_idx_files_support_packs_larger_than_4_gib_and.
type packIndex struct {
	idxfile.Index // nil: go-git calls no other method to read an object
	file          billy.File
	upTo          [256]int64    // how many ids begin with at most this byte
	key           plumbing.Hash // distinguishes the packs of a cache
}

// Where the tables of an index are, and how many bytes an entry has.
const (
	fanoutAt   = 8 // after the signature and the version
	idsAt      = fanoutAt + 256*4
	checksum   = 4
	offset     = 4
	longOffset = 8
)

// openPackIndex opens an index. The caller closes its file.
func openPackIndex(files billy.Filesystem, path string) (*packIndex, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	x := &packIndex{file: file, key: plumbing.ComputeHash(plumbing.BlobObject, []byte(path))}
	if err := x.readFanout(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), file.Close())
	}
	return x, nil
}

func (x *packIndex) readFanout() error {
	var header [idsAt]byte
	if _, err := x.file.ReadAt(header[:], 0); err != nil {
		return unlessShort(err)
	}
	if !bytes.HasPrefix(header[:], []byte("\xfftOc\x00\x00\x00\x02")) {
		return errors.New("it is no index of version 2")
	}
	before := int64(0)
	for i := range x.upTo {
		x.upTo[i] = int64(binary.BigEndian.Uint32(header[fanoutAt+4*i:]))
		if x.upTo[i] < before {
			return errDamagedIndex
		}
		before = x.upTo[i]
	}
	return nil
}

var errDamagedIndex = errors.New("the index of the pack is damaged")

// unlessShort returns errDamagedIndex for a file that is too short.
func unlessShort(err error) error {
	if errors.Is(err, io.EOF) {
		return errDamagedIndex
	}
	return err
}

// FindOffset returns where the pack has an object, or plumbing.ErrObjectNotFound.
func (x *packIndex) FindOffset(id plumbing.Hash) (int64, error) {
	low, high := int64(0), x.upTo[id[0]]
	if id[0] > 0 {
		low = x.upTo[id[0]-1]
	}
	for low < high {
		middle := (low + high) / 2
		var found plumbing.Hash
		if _, err := x.file.ReadAt(found[:], idsAt+middle*int64(len(found))); err != nil {
			return 0, unlessShort(err)
		}
		switch bytes.Compare(id[:], found[:]) {
		case 0:
			return x.offsetOf(middle)
		case -1:
			high = middle
		case 1:
			low = middle + 1
		}
	}
	return 0, plumbing.ErrObjectNotFound
}

// offsetOf returns where the pack has the object of entry i.
func (x *packIndex) offsetOf(i int64) (int64, error) {
	const isLong = 1 << 31
	entries := x.upTo[255]
	offsets := idsAt + entries*int64(len(plumbing.Hash{})+checksum)
	var b [longOffset]byte
	if _, err := x.file.ReadAt(b[:offset], offsets+i*offset); err != nil {
		return 0, unlessShort(err)
	}
	at := int64(binary.BigEndian.Uint32(b[:]))
	if at&isLong == 0 {
		return at, nil
	}
	if _, err := x.file.ReadAt(b[:], offsets+entries*offset+(at&^isLong)*longOffset); err != nil {
		return 0, unlessShort(err)
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// FindHash returns a key for the object at an offset of the pack. go-git asks for its id, with which it looks in its
// cache for the object that a difference is based on. To find the id, it would read the whole index.
func (x *packIndex) FindHash(at int64) (plumbing.Hash, error) {
	key := x.key
	binary.BigEndian.PutUint64(key[:], uint64(at))
	return key, nil
}
