package index

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
)

// Write writes f with updates, which must have different paths and get sorted. An update replaces the
// entry of its path; one with mode 0 removes it. Write drops all extensions, except for the valid part
// of TREE: git can rebuild the others. It returns the errors of w.
func Write(w io.Writer, f *File, updates []Entry) error {
	sort.Slice(updates, func(a, b int) bool { return updates[a].Path < updates[b].Path })
	sum := sha1.New()
	enc := newEncoder(io.MultiWriter(w, sum), f.version, countAfter(f, updates))
	enc.mergeUpdates(f, updates)
	if cache := f.cacheAfter(updates); cache != nil {
		_, _ = enc.Write(binary.BigEndian.AppendUint32([]byte("TREE"), uint32(len(cache))))
		_, _ = enc.Write(cache)
	}
	if err := enc.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// WriteFile writes f with updates to the file at path.
func WriteFile(path string, f *File, updates []Entry) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = errors.Join(Write(to, f, updates), to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteNew writes an index of entries to the file at path, and sorts entries by path. Their paths must be different.
func WriteNew(path string, entries []Entry) error {
	return WriteFile(path, &File{version: 2}, entries)
}

// mergeUpdates writes the entries of f, changed by updates. Both are sorted by path. An update replaces all
// entries of its path, or is inserted if there are none. An update with mode 0 only removes them.
func (e *encoder) mergeUpdates(f *File, updates []Entry) {
	next := 0 // the first entry of f that is neither written nor replaced
	for _, u := range updates {
		first, end := f.EntriesOf(u.Path, next, f.Len())
		e.copyEntries(f, next, first)
		next = end
		if u.Mode != 0 {
			e.writeEntry(u)
		}
	}
	e.copyEntries(f, next, f.Len())
}

// copyEntries writes the entries lo to hi of f. Before version 4, entries do not depend on each
// other, so their bytes are copied. The last one is encoded, because its padding may be missing.
func (e *encoder) copyEntries(f *File, lo, hi int) {
	if e.version != 4 && lo < hi {
		_, _ = e.Write(f.data[f.offsets[lo]:f.offsets[hi-1]])
		lo = hi - 1
	}
	for ; lo < hi; lo++ {
		e.writeEntry(f.Entry(lo))
	}
}

// countAfter returns the number of entries of the updated index.
func countAfter(f *File, updates []Entry) uint32 {
	n := f.Len()
	for _, u := range updates {
		first, end := f.EntriesOf(u.Path, 0, f.Len())
		n -= end - first
		if u.Mode != 0 {
			n++
		}
	}
	return uint32(n)
}

// encoder writes an index. Its writer remembers the first error, which Flush returns.
type encoder struct {
	*bufio.Writer
	version uint32
	before  string // path of the previous entry
}

// newEncoder returns an encoder that has written the header of an index.
func newEncoder(w io.Writer, version, entries uint32) *encoder {
	e := &encoder{Writer: bufio.NewWriterSize(w, 32<<10), version: version}
	if version == 2 {
		e.version = 3 // both versions are equal for entries without extended flags
	}
	header := binary.BigEndian.AppendUint32([]byte("DIRC"), e.version)
	_, _ = e.Write(binary.BigEndian.AppendUint32(header, entries))
	return e
}

// writeEntry writes an entry. Entries must come in the order of their paths.
func (e *encoder) writeEntry(entry Entry) {
	b := entry.Stat.appendTo(e.AvailableBuffer(), entry.Mode)
	b = append(b, entry.ID[:]...)
	b = appendFlagWords(b, entry)
	if e.version == 4 {
		b = e.appendCompressedPath(b, entry.Path)
	} else {
		b = append(b, entry.Path...)
		b = append(b, make([]byte, (len(b)+8)&^7-len(b))...) // 1 to 8 zeros, up to a multiple of 8 (gitformat-index(5))
	}
	_, _ = e.Write(b)
}

// appendFlagWords appends an entry's flags: one 16-bit word, and a second one if the entry is
// marked skip-worktree or intent-to-add.
func appendFlagWords(b []byte, entry Entry) []byte {
	flags := uint16(min(len(entry.Path), flagNameLen)) | uint16(entry.Stage)<<12
	if entry.AssumeValid {
		flags |= flagAssumeValid
	}
	if !entry.SkipWorktree && !entry.IntentToAdd {
		return binary.BigEndian.AppendUint16(b, flags)
	}
	extended := uint16(0)
	if entry.SkipWorktree {
		extended |= flagSkipWorktree
	}
	if entry.IntentToAdd {
		extended |= flagIntentToAdd
	}
	b = binary.BigEndian.AppendUint16(b, flags|flagExtended)
	return binary.BigEndian.AppendUint16(b, extended)
}

// appendCompressedPath appends a path in the form of version 4: the number of bytes to remove from
// the end of the previous path, then a suffix.
func (e *encoder) appendCompressedPath(b []byte, path string) []byte {
	common := 0
	for common < len(path) && common < len(e.before) && path[common] == e.before[common] {
		common++
	}
	b = appendVarint(b, uint64(len(e.before)-common))
	b = append(b, path[common:]...)
	e.before = path
	return append(b, 0)
}

// appendVarint encodes a number for decodeVarint.
func appendVarint(b []byte, value uint64) []byte {
	var groups [10]byte
	at := len(groups) - 1
	groups[at] = byte(value & 0x7f)
	for value >>= 7; value != 0; value >>= 7 {
		value--
		at--
		groups[at] = 0x80 | byte(value&0x7f)
	}
	return append(b, groups[at:]...)
}
