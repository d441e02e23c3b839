package artifact

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

const (
	// maxArchiveBytes bounds an archive in bytes, maxUnpackedBytes the extracted bytes.
	maxArchiveBytes  = 512 << 20
	maxUnpackedBytes = 2 << 30
	// maxEntries bounds an archive's files, maxListingBytes the bytes of their list, which is held in
	// memory.
	maxEntries      = 20_000
	maxListingBytes = 8 << 20
	// maxNameBytes is how long the name of one may be, in bytes.
	maxNameBytes = 1 << 10
)

// archive is an untrusted zip file. Names, kinds and sizes of entries were checked; contents were not
// read.
type archive struct {
	root           string               // folder of the run directory in the archive
	files          map[string]*zip.File // by their names below root
	remainingBytes int64                // bytes that may still be taken out
}

func refused(format string, args ...any) error {
	return fmt.Errorf("the artifact is not used: %s", fmt.Sprintf(format, args...))
}

// openArchive reads the list of an archive's files and refuses the archive if one of them is unsafe or if
// there are too many.
func openArchive(file io.ReaderAt, size int64) (*archive, error) {
	bounded := &listing{ReaderAt: file, left: maxListingBytes}
	r, err := zip.NewReader(bounded, size)
	switch {
	case errors.Is(err, errListing):
		return nil, refused("the list of its files has more than %d MiB", maxListingBytes>>20)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // a name is judged below
		return nil, refused("it is no whole zip archive (%v)", err)
	case len(r.File) > maxEntries:
		return nil, refused("it has %d files, more than %d", len(r.File), maxEntries)
	}
	bounded.read = true
	a := &archive{files: map[string]*zip.File{}, remainingBytes: maxUnpackedBytes}
	for _, f := range r.File {
		if err := checkEntry(f); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Name, "/")
		if _, twice := a.files[name]; twice {
			return nil, refused("it has %q twice", name)
		}
		a.files[name] = f
	}
	return a, a.findRoot()
}

// listing bounds reads before the entries are known, because the list is held in memory.
type listing struct {
	io.ReaderAt
	left int
	read bool // the list is
}

var errListing = errors.New("the list of files is too long")

func (l *listing) ReadAt(p []byte, offset int64) (int, error) {
	if l.left -= len(p); l.left < 0 && !l.read {
		return 0, errListing
	}
	return l.ReaderAt.ReadAt(p, offset)
}

// checkEntry refuses entries that no upload of a run directory has.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	strange := func(c rune) bool { return c == '\\' || !unicode.IsPrint(c) }
	switch {
	case len(f.Name) > maxNameBytes:
		return refused("a name in it has %d bytes, more than %d", len(f.Name), maxNameBytes)
	case !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, strange):
		return refused("the name %q in it has characters that names of files do not have", f.Name)
	case !fs.ValidPath(name) || name == "." || !filepath.IsLocal(name):
		return refused("the name %q in it leads elsewhere", f.Name)
	case !f.Mode().IsRegular() && !f.Mode().IsDir():
		return refused("%q in it is no plain file", f.Name)
	case f.Flags&1 != 0 || f.Method != zip.Store && f.Method != zip.Deflate:
		return refused("%q in it is encrypted, or packed in an unknown way", f.Name)
	}
	return nil
}

// findRoot finds the transcript's folder: uploads of several paths omit their common folders,
// uploads of one folder do not.
func (a *archive) findRoot() error {
	var roots []string
	for name, f := range a.files {
		if path.Base(name) == record.TranscriptFile && f.Mode().IsRegular() {
			roots = append(roots, path.Dir(name))
		}
	}
	slices.SortFunc(roots, func(x, y string) int { return depth(x) - depth(y) })
	switch {
	case len(roots) == 0:
		return refused("it has no %s; name an artifact that has a run of agent-ci with --artifact", record.TranscriptFile)
	case len(roots) > 1 && depth(roots[0]) == depth(roots[1]):
		return refused("it has several runs, %q and %q", min(roots[0], roots[1]), max(roots[0], roots[1]))
	}
	a.root = roots[0]
	return nil
}

func depth(folder string) int {
	if folder == "." {
		return 0
	}
	return strings.Count(folder, "/") + 1
}

// entry returns a file below the run directory, or nil.
func (a *archive) entry(name string) *zip.File {
	if f := a.files[path.Join(a.root, name)]; f != nil && f.Mode().IsRegular() {
		return f
	}
	return nil
}

func (a *archive) unusedFiles(taken map[string]bool) []string {
	var names []string
	for name, f := range a.files {
		below, err := filepath.Rel(a.root, name)
		if f.Mode().IsRegular() && (err != nil || !taken[below]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// extract extracts a file up to most bytes and returns its digest.
func (a *archive) extract(ctx context.Context, name string, most int64, to *record.Directory) (transcript.FileDigest, error) {
	put := transcript.FileDigest{Path: name}
	f := a.entry(name)
	if f == nil {
		return put, refused("it has no %s", name)
	}
	if most = min(max(most, 0), a.remainingBytes); f.UncompressedSize64 > uint64(most) { // the size in a transcript may be a lie
		return put, refused("%s in it has %d bytes, more than %d", name, f.UncompressedSize64, most)
	}
	a.remainingBytes -= int64(f.UncompressedSize64)
	packed, err := f.Open()
	if err != nil {
		return put, refused("%s in it cannot be read (%v)", name, err)
	}
	defer packed.Close()
	file, err := to.Create(name)
	if err != nil {
		return put, err
	}
	sum := sha256.New()
	inside := &errorReader{Reader: packed}
	put.Bytes, err = io.Copy(io.MultiWriter(file, sum), boundedfile.Until(ctx, io.LimitReader(inside, int64(f.UncompressedSize64)+1)))
	err = errors.Join(err, file.Close())
	put.SHA256 = hex.EncodeToString(sum.Sum(nil))
	switch {
	case ctx.Err() != nil:
		return put, context.Cause(ctx)
	case inside.err != nil:
		return put, refused("%s in it is not what the archive says of it (%v)", name, inside.err)
	case err != nil:
		return put, err
	case uint64(put.Bytes) != f.UncompressedSize64:
		return put, refused("%s in it has another size than the archive says", name)
	}
	return put, nil
}

// errorReader keeps the read error, to distinguish a bad archive from a full disk.
type errorReader struct {
	io.Reader
	err error
}

func (n *errorReader) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return read, err
}
