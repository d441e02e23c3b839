package index

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Update changes the entry of a path, or removes it if Entry is nil.
type Update struct {
	Path  string
	Entry *Entry
}

// Write writes f with updates, which must have different paths and get sorted. It drops all
// extensions, except for the valid part of TREE: git can rebuild the others. It returns the errors
// of w.
func Write(w io.Writer, f *File, updates []Update) error {
	slices.SortFunc(updates, func(a, b Update) int { return strings.Compare(a.Path, b.Path) })
	sum := sha1.New()
	enc := newEncoder(io.MultiWriter(w, sum), f.version, countAfter(f, updates))
	mergeUpdates(f, updates, enc.writeEntry)
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
func WriteFile(path string, f *File, updates []Update) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = errors.Join(Write(to, f, updates), to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteNew writes an index of entries to the file at path. Their paths must be different.
func WriteNew(path string, entries []Entry) error {
	updates := make([]Update, len(entries))
	for i := range entries {
		updates[i] = Update{Path: entries[i].Path, Entry: &entries[i]}
	}
	return WriteFile(path, &File{version: 2}, updates)
}

// mergeUpdates calls emit for every entry of the updated index, in order.
func mergeUpdates(f *File, updates []Update, emit func(Entry)) {
	i := 0
	for _, u := range updates {
		for i < f.Len() && string(f.Path(i)) < u.Path {
			emit(f.Entry(i))
			i++
		}
		for i < f.Len() && string(f.Path(i)) == u.Path {
			i++
		}
		if u.Entry != nil {
			emit(*u.Entry)
		}
	}
	for ; i < f.Len(); i++ {
		emit(f.Entry(i))
	}
}

// countAfter returns the number of entries of the updated index.
func countAfter(f *File, updates []Update) uint32 {
	n := f.Len()
	for _, u := range updates {
		at, found := f.Search(u.Path)
		for found && at < f.Len() && string(f.Path(at)) == u.Path {
			n--
			at++
		}
		if u.Entry != nil {
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
	b := e.AvailableBuffer()
	s := entry.Stat
	for _, word := range [...]uint32{
		s.CtimeSec, s.CtimeNsec, s.MtimeSec, s.MtimeNsec, s.Dev, s.Ino, entry.Mode, s.UID, s.GID, s.Size,
	} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	b = append(b, entry.ID[:]...)
	b = appendFlagWords(b, entry)
	if e.version == 4 {
		b = e.appendCompressedPath(b, entry.Path)
	} else {
		b = append(b, entry.Path...)
		b = append(b, make([]byte, (len(b)+8)&^7-len(b))...)
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
