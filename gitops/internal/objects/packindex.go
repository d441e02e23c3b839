package objects

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// packIndex finds the objects of a pack in its index. It reads only what a search needs, because the index of a large
// repository has hundreds of megabytes. Its form is version 2 of
// https://git-scm.com/docs/gitformat-pack#_version_2_pack_idx_files_support_packs_larger_than_4_gib_and.
// The file is open only during a search, because a repository may have thousands of packs.
type packIndex struct {
	files billy.Filesystem
	path  string
	upTo  [256]int64 // how many ids begin with at most this byte
}

// Where the first tables of an index are, and how many bytes an entry of the others has.
const (
	fanoutAt       = 8 // after the signature and the version
	idsAt          = fanoutAt + 256*4
	checksumSize   = 4
	offsetSize     = 4
	longOffsetSize = 8
)

// readPackIndex reads the beginning of an index.
func readPackIndex(files billy.Filesystem, path string) (*packIndex, error) {
	x := &packIndex{files: files, path: path}
	if err := x.read(x.readFanout); err != nil {
		return nil, err
	}
	return x, nil
}

// read calls do with the open file.
func (x *packIndex) read(do func(billy.File) error) error {
	file, err := x.files.Open(x.path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = do(file)
	if errors.Is(err, io.EOF) {
		err = errDamagedIndex // it is too short
	}
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		err = fmt.Errorf("read %s: %w", x.path, err)
	}
	return err
}

func (x *packIndex) readFanout(file billy.File) error {
	var header [idsAt]byte
	if _, err := file.ReadAt(header[:], 0); err != nil {
		return err
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

// find returns where the pack has an object, or plumbing.ErrObjectNotFound.
func (x *packIndex) find(id plumbing.Hash) (at int64, err error) {
	low, high := int64(0), x.upTo[id[0]]
	if id[0] > 0 {
		low = x.upTo[id[0]-1]
	}
	if low == high {
		return 0, plumbing.ErrObjectNotFound
	}
	err = x.read(func(file billy.File) error {
		at, err = x.search(file, id, low, high)
		return err
	})
	return at, err
}

// search looks for an id in the entries from low to before high, and returns the offset of its object.
func (x *packIndex) search(file billy.File, id plumbing.Hash, low, high int64) (int64, error) {
	for low < high {
		middle := (low + high) / 2
		var found plumbing.Hash
		if _, err := file.ReadAt(found[:], idsAt+middle*int64(len(found))); err != nil {
			return 0, err
		}
		switch bytes.Compare(id[:], found[:]) {
		case 0:
			return x.offsetOf(file, middle)
		case -1:
			high = middle
		case 1:
			low = middle + 1
		}
	}
	return 0, plumbing.ErrObjectNotFound
}

// offsetOf returns where the pack has the object of entry i.
func (x *packIndex) offsetOf(file billy.File, i int64) (int64, error) {
	const isLong = 1 << 31
	entries := x.upTo[255]
	offsets := idsAt + entries*int64(len(plumbing.Hash{})+checksumSize)
	var b [longOffsetSize]byte
	if _, err := file.ReadAt(b[:offsetSize], offsets+i*offsetSize); err != nil {
		return 0, err
	}
	at := int64(binary.BigEndian.Uint32(b[:]))
	if at&isLong == 0 {
		return at, nil
	}
	if _, err := file.ReadAt(b[:], offsets+entries*offsetSize+(at&^isLong)*longOffsetSize); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// key identifies the object at an offset of the pack among all objects of a cache.
func (x *packIndex) key(at int64) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.AnyObject, fmt.Append(nil, at, x.path))
}
