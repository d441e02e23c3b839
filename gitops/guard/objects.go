package guard

import (
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pjbgf/sha1cd"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// object is the recorded state of one of git's object files. git never modifies these files. The
// content must fit the name of a loose object, or the checksum at the end of a pack or its index.
type object struct {
	stat    string    // while it stays equal, nobody wrote the file
	changed time.Time // time of the last change
	link    string    // target of a symbolic link
	sum     string    // checksum at the end of the file, or its digest; "" for a loose object
}

// coarsestTime is longer than the resolution of any file system's times.
const coarsestTime = 2 * time.Second

var (
	looseName = lazyregexp.New(`^[0-9a-f]{2}/([0-9a-f]{38}|[0-9a-f]{62})$`)
	// errNotFolder matches the folders in the objects folder. A file or link with such a name is in
	// place of a folder.
	errNotFolder = lazyregexp.New(`^([0-9a-f]{2}|pack)$`)
	// unfinishedName matches files that a killed git leaves. git would use one ending in .idx, so
	// those are not matched.
	unfinishedName = lazyregexp.New(`(/tmp_[^./]*|\.lock)$`)
	summedName     = lazyregexp.New(`\.(pack|idx|rev|bitmap|mtimes|midx)$|/multi-pack-index$`)
)

// markObjects records the objects of the workspace's repository.
func (m *Mark) markObjects(ctx context.Context) error {
	if info, err := os.Lstat(filepath.Join(m.workspace, ".git")); err != nil || !info.IsDir() {
		return nil
	}
	m.objects = make(map[string]object)
	now := time.Now()
	return m.eachObject(ctx, func(path, below string) error {
		o, err := recordObject(path, below)
		if now.Sub(o.changed) < coarsestTime {
			o.stat = "" // a further change might not change it
		}
		m.objects[path] = o
		return err
	})
}

// objectsFolder returns the objects folder of the workspace's repository.
func (m *Mark) objectsFolder() string { return filepath.Join(m.workspace, ".git", "objects") }

// ChangedObjects lists object files that were changed or are invalid. New files must be loose
// objects whose content fits their name.
func (m *Mark) ChangedObjects(ctx context.Context) ([]string, error) {
	if m.objects == nil {
		return nil, nil
	}
	c := objectComparison{mark: m, seen: make(map[string]bool), left: maxInflated}
	err := m.eachObject(ctx, func(path, below string) error { return c.compareObject(ctx, path, below) })
	if errors.Is(err, fs.ErrPermission) { // it was readable when the run began
		c.addChange(m.objectsFolder(), "can't be read")
		return c.changed, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at git's objects: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(m.objects)) {
		if !c.seen[path] {
			c.addChange(path, "is gone")
		}
	}
	return c.changed, nil
}

// maxInflated is the largest number of uncompressed bytes in one comparison. Objects can be far
// larger than their files.
const maxInflated = 4 << 30

type objectComparison struct {
	mark    *Mark
	seen    map[string]bool
	left    int64
	changed []string
}

func (c *objectComparison) addChange(path, how string) {
	c.changed = append(c.changed, c.mark.formatPath(path)+" "+how)
}

// compareObject records whether the object file at path changed since the mark. below is its path in
// the objects folder. A new loose object or a rewritten file is no change, if its content fits its
// name or checksum.
func (c *objectComparison) compareObject(ctx context.Context, path, below string) error {
	c.seen[path] = true
	now, err := recordObject(path, below)
	if err != nil {
		return err
	}
	was, known := c.mark.objects[path]
	switch {
	case !known && !looseName().MatchString(below):
		c.addChange(path, "is new")
		return nil
	case known && (now.link != was.link || now.sum != was.sum):
		c.addChange(path, "was changed")
		return nil
	case known && was.stat != "" && now.stat == was.stat: // nobody wrote it
		return nil
	}
	err = c.checkObjectFile(ctx, path, below, now.sum)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*fs.PathError)):
		return err
	case err != nil:
		c.addChange(path, "was changed: "+err.Error())
	}
	return nil
}

// checkObjectFile returns an error unless the content of an object file fits its name or checksum.
func (c *objectComparison) checkObjectFile(ctx context.Context, path, below, sum string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case looseName().MatchString(below):
		return c.checkLooseObject(ctx, f, strings.ReplaceAll(below, "/", ""))
	case summedName().MatchString(path):
		return checkSum(ctx, f, sum)
	}
	return nil // recordObject compared its digest
}

// checkLooseObject returns an error unless the content of the loose object in f has the id name. The error
// is written for people. It reads at most c.left bytes of uncompressed content, and subtracts them
// from c.left.
func (c *objectComparison) checkLooseObject(ctx context.Context, f io.Reader, id string) error {
	content, err := zlib.NewReader(f)
	if err != nil {
		return errors.New("it is no object")
	}
	sum := sha1cd.New()
	n, err := io.Copy(sum, io.LimitReader(regularfile.Until(ctx, content), c.left))
	c.left -= n
	switch {
	case err != nil:
		return errors.New("it is no object")
	case c.left <= 0:
		return errors.New("there is too much to compare")
	case hex.EncodeToString(sum.Sum(nil)) != id:
		return errors.New("it is another object than its name says")
	}
	return nil
}

// checkSum returns an error unless sum is the SHA-1 of a file's content, without the checksum at
// its end.
func checkSum(ctx context.Context, f *os.File, sum string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	found := sha1cd.New()
	if _, err := io.Copy(found, io.LimitReader(regularfile.Until(ctx, f), info.Size()-sha1cd.Size)); err != nil {
		return err
	}
	if hex.EncodeToString(found.Sum(nil)) != sum {
		return errors.New("its content has another sum")
	}
	return nil
}

// eachObject calls visit for the files that git reads objects from. Alternates are not among them:
// they are compared like the rest of .git.
func (m *Mark) eachObject(ctx context.Context, visit func(path, below string) error) error {
	folder := m.objectsFolder()
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		below := filepath.ToSlash(strings.TrimPrefix(path, folder+string(filepath.Separator)))
		switch {
		case regularfile.Absent(err):
			return nil
		case errors.Is(err, fs.ErrPermission):
			return visit(path, below)
		case err != nil:
			return err
		case below == "info":
			return skip(entry)
		case entry.IsDir() || unfinishedName().MatchString(below):
			return nil
		case looseName().MatchString(below) || strings.HasPrefix(below, "pack/") || errNotFolder().MatchString(below):
			return visit(path, below)
		}
		return nil
	})
}

// recordObject records a file below the objects folder. A loose object needs no checksum, because
// its name is one.
func recordObject(path, below string) (o object, err error) {
	o.link, _ = os.Readlink(path) // "" if it is no link
	if o.stat, o.changed, err = statOf(path); err != nil {
		return o, err
	}
	if !looseName().MatchString(below) {
		o.sum, err = sumOf(path)
	}
	return o, err
}

// sumOf returns the checksum at the end of a file, or the digest of a file without one.
func sumOf(path string) (string, error) {
	f, err := openRegular(path)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return "", err
	case err != nil:
		return "none: " + err.Error(), nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if summedName().MatchString(path) && info.Size() >= sha1cd.Size {
		end := make([]byte, sha1cd.Size)
		_, err := f.ReadAt(end, info.Size()-sha1cd.Size)
		return hex.EncodeToString(end), err
	}
	return digestOf(f)
}

// openRegular opens a regular file. For an unreadable or special file it returns an error that is
// no fs.PathError, so the caller reports the file instead of failing.
func openRegular(path string) (*os.File, error) {
	f, err := regularfile.Open(path)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("it can't be read")
	case errors.As(err, new(*fs.PathError)):
		return nil, err
	}
	return nil, errors.New("it is no regular file")
}

// statOf returns a text that changes with every write to a file, and the time of the last change.
// The text is "" for a dangling link.
func statOf(path string) (stat string, changed time.Time, err error) {
	var s unix.Stat_t
	err = unix.Stat(path, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return "", changed, nil
	}
	if err != nil {
		return "", changed, fmt.Errorf("look at %s: %w", path, err)
	}
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()), time.Unix(0, s.Ctim.Nano()), nil
}
