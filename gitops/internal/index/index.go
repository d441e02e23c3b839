// Package index reads and writes git's index file. It keeps the bytes of the file and decodes
// single entries when needed, so an index of 50,000 paths needs little more memory than its size.
//
// It knows the format (gitformat-index of git's documentation, versions 2 to 4), but no work trees,
// objects or configuration.
package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sort"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of an entry, as in a tree object.
const (
	Regular    uint32 = 0o100644
	Executable uint32 = 0o100755
	Symlink    uint32 = 0o120000
	Gitlink    uint32 = 0o160000
)

// ErrMalformed is wrapped by all errors about the content of an index.
var ErrMalformed = errors.New("malformed index")

// Stat is the metadata of a file in the index. It shows whether a file may have changed. Numbers
// are cut to 32 bits, like git's.
type Stat struct {
	CtimeSec, CtimeNsec uint32
	MtimeSec, MtimeNsec uint32
	Dev, Ino            uint32
	UID, GID            uint32
	Size                uint32
}

// appendTo appends the metadata of a file with a mode, as an entry begins.
func (s Stat) appendTo(b []byte, mode uint32) []byte {
	for _, word := range [...]uint32{s.CtimeSec, s.CtimeNsec, s.MtimeSec, s.MtimeNsec, s.Dev, s.Ino, mode, s.UID, s.GID, s.Size} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

type Entry struct {
	Path         string
	Mode         uint32
	ID           plumbing.Hash
	Stat         Stat
	Stage        uint8 // 0, or the side of an unresolved merge (1 to 3)
	AssumeValid  bool
	SkipWorktree bool
	IntentToAdd  bool
}

const (
	fixedSize = 62 // bytes of an entry before its path
	idAt      = 40
	flagsAt   = 60

	flagAssumeValid  = 0x8000
	flagExtended     = 0x4000
	flagStage        = 0x3000
	flagNameLen      = 0x0fff
	flagSkipWorktree = 0x4000 // in the second flag word
	flagIntentToAdd  = 0x2000
)

// MaxSize is the largest index file in bytes, enough for some ten million paths.
const MaxSize = 1 << 30

// File is an index file in memory.
type File struct {
	// Modified is the modification time of the index file. A file that is not older may have
	// changed since without a new time ("racily clean").
	Modified time.Time

	version  uint32
	data     []byte
	offsets  []uint32 // start of each entry in data
	names    []byte   // version 4 only: all paths, one after the other
	nameEnds []uint32 // version 4 only: end of each path in names
	cache    []byte   // content of the TREE extension
	split    bool
	sparse   bool
}

// Read reads the index at path. A missing file means an empty index.
func Read(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{version: 2}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxSize {
		return nil, fmt.Errorf("%w: %s is not a regular file of at most %d bytes", ErrMalformed, path, int64(MaxSize))
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	f.Modified = info.ModTime()
	return f, nil
}

// parse decodes the bytes of an index file. The File uses data, so do not modify it. The checksum
// is not verified, because git writes none with index.skipHash. Instead, every offset is checked.
func parse(data []byte) (*File, error) {
	if len(data) < 12+20 || string(data[:4]) != "DIRC" {
		return nil, fmt.Errorf("%w: no header", ErrMalformed)
	}
	f := &File{data: data, version: binary.BigEndian.Uint32(data[4:])}
	if f.version < 2 || f.version > 4 {
		return nil, fmt.Errorf("%w: version %d is not known", ErrMalformed, f.version)
	}
	count := binary.BigEndian.Uint32(data[8:])
	if uint64(count)*fixedSize > uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrMalformed, count, len(data))
	}
	end, err := f.locateEntries(int(count))
	if err != nil {
		return nil, err
	}
	if err := f.readExtensions(end); err != nil {
		return nil, err
	}
	if count > 0 && len(f.Path(0)) == 0 && !f.split {
		return nil, fmt.Errorf("%w: an entry has no path", ErrMalformed)
	}
	return f, nil
}

// locateEntries records the start of each entry. It returns where the last one ends.
func (f *File) locateEntries(count int) (int, error) {
	f.offsets = make([]uint32, count)
	if f.version == 4 {
		f.nameEnds = make([]uint32, count)
	}
	at := 12
	limit := len(f.data) - 20
	for i := range count {
		if at+fixedSize > limit {
			return 0, fmt.Errorf("%w: entry %d is cut", ErrMalformed, i)
		}
		f.offsets[i] = uint32(at)
		next, err := f.endOfEntry(i, at, limit)
		if err != nil {
			return 0, err
		}
		at = next
	}
	return at, nil
}

// endOfEntry returns the end of entry i, which starts at at. limit is the end of the data before
// the checksum. Up to version 3, entries are padded to a multiple of 8 bytes.
func (f *File) endOfEntry(i, at, limit int) (int, error) {
	name := at + f.pathOffset(at)
	if name > limit {
		return 0, fmt.Errorf("%w: entry %d is cut", ErrMalformed, i)
	}
	if f.version == 4 {
		return f.expandName(i, name, limit)
	}
	n := int(binary.BigEndian.Uint16(f.data[at+flagsAt:]) & flagNameLen)
	if n == flagNameLen {
		n = bytes.IndexByte(f.data[name:limit], 0)
	}
	if n < 0 || name+n >= limit || f.data[name+n] != 0 {
		return 0, fmt.Errorf("%w: path of entry %d is cut", ErrMalformed, i)
	}
	size := name + n - at
	return min(at+(size+8)&^7, limit), nil
}

const maxNames = 1 << 30 // largest total size of the paths of version 4, in bytes

// expandName appends the path of entry i to names. Version 4 stores the number of bytes to remove
// from the end of the previous path, then a suffix. expandName returns the offset after the suffix.
func (f *File) expandName(i, at, limit int) (int, error) {
	drop, n := decodeVarint(f.data[at:limit])
	length := bytes.IndexByte(f.data[at+n:limit], 0)
	start, end := 0, 0 // the previous path in names
	if i > 0 {
		end = int(f.nameEnds[i-1])
	}
	if i > 1 {
		start = int(f.nameEnds[i-2])
	}
	if n == 0 || length < 0 || drop > uint64(end-start) {
		return 0, fmt.Errorf("%w: path of entry %d is cut", ErrMalformed, i)
	}
	f.names = append(f.names, f.names[start:end-int(drop)]...)
	f.names = append(f.names, f.data[at+n:at+n+length]...)
	if len(f.names) > maxNames {
		return 0, fmt.Errorf("%w: its paths take more than %d bytes", ErrMalformed, maxNames)
	}
	f.nameEnds[i] = uint32(len(f.names))
	return at + n + length + 1, nil
}

// decodeVarint decodes a number in the form of offsets in pack files: groups of 7 bits, the most
// significant first, with 1 added for each further byte. n is the number of bytes, or 0 for
// malformed ones.
func decodeVarint(b []byte) (value uint64, n int) {
	for n < len(b) && n < 9 {
		c := b[n]
		n++
		if n > 1 {
			value++
		}
		value = value<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return value, n
		}
	}
	return 0, 0
}

// pathOffset returns the offset of the path within the entry at an offset. It is larger if the
// entry has a second flag word.
func (f *File) pathOffset(at int) int {
	if binary.BigEndian.Uint16(f.data[at+flagsAt:])&flagExtended != 0 {
		return fixedSize + 2
	}
	return fixedSize
}

// readExtensions reads the extensions from an offset on. It skips unknown ones.
func (f *File) readExtensions(at int) error {
	limit := len(f.data) - 20
	for at+8 <= limit {
		name := string(f.data[at : at+4])
		size := int(binary.BigEndian.Uint32(f.data[at+4:]))
		at += 8
		if size < 0 || size > limit-at {
			return fmt.Errorf("%w: extension %q is cut", ErrMalformed, name)
		}
		switch name {
		case "TREE":
			f.cache = f.data[at : at+size]
		case "link":
			f.split = true
		case "sdir":
			f.sparse = true
		}
		at += size
	}
	return nil
}

// Split reports whether this is a split index, which has most entries in another file.
func (f *File) Split() bool { return f.split }

// Sparse reports whether this is a sparse index, which has entries for whole folders.
func (f *File) Sparse() bool { return f.sparse }

func (f *File) Len() int { return len(f.offsets) }

// Path returns the path of entry i. Do not modify it.
func (f *File) Path(i int) []byte {
	if f.version == 4 {
		start := uint32(0)
		if i > 0 {
			start = f.nameEnds[i-1]
		}
		return f.names[start:f.nameEnds[i]]
	}
	at := int(f.offsets[i])
	name := f.data[at+f.pathOffset(at):]
	if n := int(binary.BigEndian.Uint16(f.data[at+flagsAt:]) & flagNameLen); n < flagNameLen {
		return name[:n]
	}
	return name[:bytes.IndexByte(name, 0)]
}

func (f *File) Mode(i int) uint32 {
	return binary.BigEndian.Uint32(f.data[f.offsets[i]+24:])
}

// Entry returns the entry at position i.
func (f *File) Entry(i int) Entry {
	e := f.Metadata(i)
	e.Path = string(f.Path(i))
	return e
}

// Metadata returns the entry at position i without its path, to save an allocation.
func (f *File) Metadata(i int) Entry {
	b := f.data[f.offsets[i]:]
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	flags := binary.BigEndian.Uint16(b[flagsAt:])
	e := Entry{
		Mode: word(24),
		Stat: Stat{
			CtimeSec: word(0), CtimeNsec: word(4), MtimeSec: word(8), MtimeNsec: word(12),
			Dev: word(16), Ino: word(20), UID: word(28), GID: word(32), Size: word(36),
		},
		Stage:       uint8(flags & flagStage >> 12),
		AssumeValid: flags&flagAssumeValid != 0,
	}
	copy(e.ID[:], b[idAt:flagsAt])
	if flags&flagExtended != 0 {
		extended := binary.BigEndian.Uint16(b[fixedSize:])
		e.SkipWorktree = extended&flagSkipWorktree != 0
		e.IntentToAdd = extended&flagIntentToAdd != 0
	}
	return e
}

// StatUpdate sets the stat data of an entry.
type StatUpdate struct {
	Entry int // its position
	Stat  Stat
}

// WithStats returns an index with other stat data of some entries, and with a modification time.
func (f *File) WithStats(updates []StatUpdate, modified time.Time) *File {
	g := *f
	g.data, g.cache, g.Modified = bytes.Clone(f.data), bytes.Clone(f.cache), modified
	for _, u := range updates {
		at := g.offsets[u.Entry]
		u.Stat.appendTo(g.data[at:at], g.Mode(u.Entry)) // overwrites the old stat data
	}
	return &g
}

// Search returns the position of path and true. If path is missing, it returns the position where
// to insert it and false.
func (f *File) Search(path string) (int, bool) {
	first, end := f.EntriesOf(path, 0, f.Len())
	return first, first < end
}

// EntriesBelow returns the range of the entries below prefix, within lo to hi. prefix is "" or ends
// with a slash.
func (f *File) EntriesBelow(prefix string, lo, hi int) (first, end int) {
	first = lo + sort.Search(hi-lo, func(i int) bool { return string(f.Path(lo+i)) >= prefix })
	end = first + sort.Search(hi-first, func(i int) bool {
		return !bytes.HasPrefix(f.Path(first+i), []byte(prefix))
	})
	return first, end
}

// Tracks reports whether the index has path, or entries below it.
func (f *File) Tracks(path string) bool {
	if _, is := f.Search(path); is {
		return true
	}
	first, end := f.EntriesBelow(path+"/", 0, f.Len())
	return first < end
}

// EntriesOf returns the range of the entries of a path, within lo to hi. An unresolved merge has
// several.
func (f *File) EntriesOf(path string, lo, hi int) (first, end int) {
	first = lo + sort.Search(hi-lo, func(i int) bool { return string(f.Path(lo+i)) >= path })
	for end = first; end < hi && string(f.Path(end)) == path; {
		end++
	}
	return first, end
}

// OfOthers returns the paths whose stat data has another user or group. It skips entries without
// owner and inode, because some programs record none.
func (f *File) OfOthers(uid, gid uint32) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.Len() {
			stat := f.Metadata(i).Stat
			noted := stat.UID != 0 || stat.GID != 0 || stat.Ino != 0
			if noted && (stat.UID != uid || stat.GID != gid) && !yield(string(f.Path(i))) {
				return
			}
		}
	}
}

// AssumedUnchanged returns a path whose changes git ignores, or "" (git-update-index(1),
// --assume-unchanged and --skip-worktree).
func (f *File) AssumedUnchanged() string {
	for i := range f.Len() {
		if e := f.Metadata(i); e.AssumeValid || e.SkipWorktree {
			return string(f.Path(i))
		}
	}
	return ""
}

// SameEntries reports whether both indexes have the same entries, ignoring stat data.
func (f *File) SameEntries(g *File) bool {
	if f.Equal(g) {
		return true
	}
	if f.Len() != g.Len() {
		return false
	}
	for i := range f.Len() {
		a, b := f.Entry(i), g.Entry(i)
		a.Stat, b.Stat = Stat{}, Stat{}
		if a != b {
			return false
		}
	}
	return true
}

// Equal reports whether both index files have the same bytes.
func (f *File) Equal(g *File) bool { return bytes.Equal(f.data, g.data) }
