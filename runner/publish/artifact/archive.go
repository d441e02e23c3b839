package artifact

import (
	"archive/zip"
	"cmp"
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
	// Largest accepted archive, and all its extracted files together, in bytes.
	maxArchiveBytes  = 512 << 20
	maxUnpackedBytes = 2 << 30
	// Most files in an archive, and the longest list of them in bytes. The list is held in memory.
	maxEntries      = 20_000
	maxListingBytes = 8 << 20
	// Longest file name in an archive, in bytes.
	maxNameBytes = 1 << 10
)

// archive is an untrusted zip file. Names, kinds and sizes of its entries are checked. Contents are not.
type archive struct {
	root           string               // folder of the run directory in the archive
	files          map[string]*zip.File // by their names below root
	remainingBytes int64                // how many more bytes may be extracted
}

// refusedError returns an error for an archive that is not used.
func refusedError(format string, args ...any) error {
	return fmt.Errorf("the artifact is not used: %s", fmt.Sprintf(format, args...))
}

// openArchive reads the list of an archive's files. It refuses an archive with an unsafe entry or too many.
func openArchive(file io.ReaderAt, size int64) (*archive, error) {
	bounded := &limitedListing{ReaderAt: file, remaining: maxListingBytes}
	r, err := zip.NewReader(bounded, size)
	switch {
	case errors.Is(err, errListingTooLong):
		return nil, refusedError("the list of its files has more than %d MiB", maxListingBytes>>20)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // checkEntry judges names
		return nil, refusedError("it is no whole zip archive (%v)", err)
	case len(r.File) > maxEntries:
		return nil, refusedError("it has %d files, more than %d", len(r.File), maxEntries)
	}
	bounded.complete = true
	a := &archive{files: map[string]*zip.File{}, remainingBytes: maxUnpackedBytes}
	for _, f := range r.File {
		if err := checkEntry(f); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Name, "/")
		if _, twice := a.files[name]; twice {
			return nil, refusedError("it has %q twice", name)
		}
		a.files[name] = f
	}
	return a, a.findRoot()
}

// limitedListing limits the bytes read before the list of entries is complete, because memory holds the list.
type limitedListing struct {
	io.ReaderAt
	remaining int
	complete  bool // the list is complete; reads are no longer limited
}

var errListingTooLong = errors.New("the list of files is too long")

func (l *limitedListing) ReadAt(p []byte, offset int64) (int, error) {
	l.remaining -= len(p)
	if l.remaining < 0 && !l.complete {
		return 0, errListingTooLong
	}
	return l.ReaderAt.ReadAt(p, offset)
}

// checkEntry returns an error for an entry that an upload of a run directory never has.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	isStrange := func(c rune) bool { return c == '\\' || !unicode.IsPrint(c) }
	isEncrypted, isKnownMethod := f.Flags&1 != 0, f.Method == zip.Store || f.Method == zip.Deflate
	switch {
	case len(f.Name) > maxNameBytes:
		return refusedError("a name in it has %d bytes, more than %d", len(f.Name), maxNameBytes)
	case !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, isStrange):
		return refusedError("the name %q in it has characters that names of files do not have", f.Name)
	case !fs.ValidPath(name) || name == "." || !filepath.IsLocal(name):
		return refusedError("the name %q in it leads elsewhere", f.Name)
	case !f.Mode().IsRegular() && !f.Mode().IsDir():
		return refusedError("%q in it is no plain file", f.Name)
	case isEncrypted || !isKnownMethod:
		return refusedError("%q in it is encrypted, or packed in an unknown way", f.Name)
	}
	return nil
}

// findRoot finds the highest folder with a transcript. Its depth varies, because an upload of several paths omits
// their common folders.
func (a *archive) findRoot() error {
	var roots []string
	for name, f := range a.files {
		if path.Base(name) == record.TranscriptFile && f.Mode().IsRegular() {
			roots = append(roots, path.Dir(name))
		}
	}
	slices.SortFunc(roots, func(x, y string) int { return cmp.Or(folderDepth(x)-folderDepth(y), strings.Compare(x, y)) })
	switch {
	case len(roots) == 0:
		return refusedError("it has no %s; name an artifact that has a run of agent-ci with --artifact", record.TranscriptFile)
	case len(roots) > 1 && folderDepth(roots[0]) == folderDepth(roots[1]):
		return refusedError("it has several runs, %q and %q", roots[0], roots[1])
	}
	a.root = roots[0]
	return nil
}

// folderDepth returns the number of elements in a folder's path.
func folderDepth(folder string) int {
	if folder == "." {
		return 0
	}
	return strings.Count(folder, "/") + 1
}

// fileNamed returns a regular file in the run directory, or nil.
func (a *archive) fileNamed(name string) *zip.File {
	if f := a.files[path.Join(a.root, name)]; f != nil && f.Mode().IsRegular() {
		return f
	}
	return nil
}

// unusedFiles returns the sorted names of files that are not in taken.
func (a *archive) unusedFiles(taken map[string]bool) (names []string) {
	for name, f := range a.files {
		inRun, _ := filepath.Rel(a.root, name) // no error: both are local paths
		if f.Mode().IsRegular() && !taken[inRun] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// extract copies a file of up to maxBytes to a run directory. It returns the file's digest.
func (a *archive) extract(ctx context.Context, name string, maxBytes int64, to *record.Directory) (transcript.FileDigest, error) {
	extracted := transcript.FileDigest{Path: name}
	f := a.fileNamed(name)
	if f == nil {
		return extracted, refusedError("it has no %s", name)
	}
	maxBytes = min(max(maxBytes, 0), a.remainingBytes) // it may come from a transcript, whose sizes may be false
	if f.UncompressedSize64 > uint64(maxBytes) {
		return extracted, refusedError("%s in it has %d bytes, more than %d", name, f.UncompressedSize64, maxBytes)
	}
	a.remainingBytes -= int64(f.UncompressedSize64)
	packed, err := f.Open()
	if err != nil {
		return extracted, refusedError("%s in it cannot be read (%v)", name, err)
	}
	defer packed.Close()
	file, err := to.Create(name)
	if err != nil {
		return extracted, err
	}
	sum := sha256.New()
	zipReader := &errorReader{Reader: packed}
	extracted.Bytes, err = io.Copy(io.MultiWriter(file, sum), boundedfile.WithContext(ctx, io.LimitReader(zipReader, int64(f.UncompressedSize64)+1)))
	err = errors.Join(err, file.Close())
	extracted.SHA256 = hex.EncodeToString(sum.Sum(nil))
	switch {
	case ctx.Err() != nil:
		return extracted, context.Cause(ctx)
	case zipReader.err != nil:
		return extracted, refusedError("%s in it is not what the archive says of it (%v)", name, zipReader.err)
	case err != nil:
		return extracted, err
	case uint64(extracted.Bytes) != f.UncompressedSize64:
		return extracted, refusedError("%s in it has another size than the archive says", name)
	}
	return extracted, nil
}

// errorReader keeps the last read error. It distinguishes a damaged archive from a full disk.
type errorReader struct {
	io.Reader
	err error
}

func (r *errorReader) Read(p []byte) (int, error) {
	read, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return read, err
}
