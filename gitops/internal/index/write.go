package index

import (
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Update is what Write changes at one path: Entry takes its place, or the
// path goes when Entry is nil.
type Update struct {
	Path  string
	Entry *Entry
}

// Write writes f with updates, which name each path once and are sorted by
// this, as an index of f's version. Of the extensions only what is known of
// tree objects is kept, as far as it still holds: git makes the others again
// when it needs them. The errors are w's.
func Write(w io.Writer, f *File, updates []Update) error {
	slices.SortFunc(updates, func(a, b Update) int { return strings.Compare(a.Path, b.Path) })
	enc := newEncoder(w, f.version, count(f, updates))
	if err := merge(f, updates, enc.entry); err != nil {
		return err
	}
	enc.extension("TREE", f.cacheAfter(updates))
	return enc.finish()
}

// WriteFile writes f with updates to the file at path, as Write does.
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

// WriteNew writes an index of entries, one for each path, to the file at path.
func WriteNew(path string, entries []Entry) error {
	updates := make([]Update, len(entries))
	for i := range entries {
		updates[i] = Update{Path: entries[i].Path, Entry: &entries[i]}
	}
	return WriteFile(path, &File{version: 2}, updates)
}

// merge calls emit for every entry that f has after updates, in order.
func merge(f *File, updates []Update, emit func(Entry) error) error {
	i := 0
	for _, u := range updates {
		for i < f.Len() && string(f.Path(i)) < u.Path {
			if err := emit(f.Entry(i)); err != nil {
				return err
			}
			i++
		}
		for i < f.Len() && string(f.Path(i)) == u.Path {
			i++
		}
		if u.Entry == nil {
			continue
		}
		if err := emit(*u.Entry); err != nil {
			return err
		}
	}
	for ; i < f.Len(); i++ {
		if err := emit(f.Entry(i)); err != nil {
			return err
		}
	}
	return nil
}

func count(f *File, updates []Update) uint32 {
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

type encoder struct {
	out     io.Writer
	sum     interface{ Sum([]byte) []byte }
	w       io.Writer
	version uint32
	before  string
	buf     []byte
}

func newEncoder(out io.Writer, version, entries uint32) *encoder {
	sum := sha1.New()
	e := &encoder{out: out, sum: sum, w: io.MultiWriter(out, sum), version: version}
	if version == 2 {
		e.version = 3 // an entry without extended flags looks the same in both
	}
	e.buf = append(e.buf, "DIRC"...)
	e.buf = binary.BigEndian.AppendUint32(e.buf, e.version)
	e.buf = binary.BigEndian.AppendUint32(e.buf, entries)
	return e
}

func (e *encoder) entry(entry Entry) error {
	if len(e.buf) > 32<<10 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	start := len(e.buf)
	b := e.buf
	s := entry.Stat
	for _, word := range [...]uint32{
		s.CtimeSec, s.CtimeNsec, s.MtimeSec, s.MtimeNsec, s.Dev, s.Ino, entry.Mode, s.UID, s.GID, s.Size,
	} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	b = append(b, entry.ID[:]...)
	b = appendFlags(b, entry)
	if e.version == 4 {
		e.buf = e.appendCompressed(b, entry.Path)
		return nil
	}
	b = append(b, entry.Path...)
	size := len(b) - start
	e.buf = append(b, make([]byte, (size+8)&^7-size)...)
	return nil
}

func appendFlags(b []byte, entry Entry) []byte {
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

func (e *encoder) appendCompressed(b []byte, path string) []byte {
	common := 0
	for common < len(path) && common < len(e.before) && path[common] == e.before[common] {
		common++
	}
	b = appendVarint(b, uint64(len(e.before)-common))
	b = append(b, path[common:]...)
	e.before = path
	return append(b, 0)
}

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

func (e *encoder) extension(name string, data []byte) {
	if data == nil {
		return
	}
	e.buf = append(e.buf, name...)
	e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(len(data)))
	e.buf = append(e.buf, data...)
}

func (e *encoder) flush() error {
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	return err
}

func (e *encoder) finish() error {
	if err := e.flush(); err != nil {
		return err
	}
	_, err := e.out.Write(e.sum.Sum(nil))
	return err
}
