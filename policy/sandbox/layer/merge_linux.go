package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// Merge adds the changes of an earlier overlay to a later one, whose own changes win. It is needed
// because the kernel stacks few overlays and rejects layers inside each other.
//
// It links files, so nothing may write to either layer afterwards.
func Merge(ctx context.Context, earlier, later string) error {
	from, err := os.Open(grants.Upper(earlier))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Open(grants.Upper(later))
	if err != nil {
		return err
	}
	defer to.Close()
	m := merge{layerCopy{ctx: ctx, buffer: make([]byte, maxAttribute)}}
	if err := m.mergeEntries(from, to); err != nil {
		return fmt.Errorf("merge %s into %s: %w", earlier, later, err)
	}
	return nil
}

// merge uses open folders and follows no links, like layerCopy.
type merge struct{ layerCopy }

// mergeEntries merges all entries of the folder from into the folder to.
func (m *merge) mergeEntries(from, to *os.File) error {
	names, err := from.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.mergeEntry(from, to, name); err != nil {
			return err
		}
	}
	return nil
}

// mergeEntry adds a file or folder of the earlier layer to the later one, unless that has its own.
func (m *merge) mergeEntry(from, to *os.File, name string) error {
	earlier, err := m.lstat(from, name)
	if err != nil {
		return err
	}
	later, err := m.lstat(to, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := m.addEntry(from, to, name, earlier); err != nil {
			return &fs.PathError{Op: "merge", Path: filepath.Join(from.Name(), name), Err: err}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if isDir(earlier) && isDir(later) {
		return m.mergeFolders(from, to, name, later)
	}
	return nil
}

// addEntry adds a file or folder that the later layer lacks.
func (m *merge) addEntry(from, to *os.File, name string, status unix.Stat_t) error {
	if !isDir(status) {
		return unix.Linkat(int(from.Fd()), name, int(to.Fd()), name, 0)
	}
	if err := unix.Mkdirat(int(to.Fd()), name, 0o700); err != nil {
		return err
	}
	return m.mergeInto(from, to, name, status, m.copyAttributes)
}

// mergeFolders merges a folder that both layers have. It keeps the later one if that is opaque, because
// an opaque folder hides the earlier one.
func (m *merge) mergeFolders(from, to *os.File, name string, later unix.Stat_t) error {
	isOpaque := func(folder *os.File) bool {
		n, err := unix.Fgetxattr(int(folder.Fd()), grants.Opaque, m.buffer)
		return err == nil && n == 1 && m.buffer[0] == 'y'
	}
	folder, err := openAt(to, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer folder.Close()
	if isOpaque(folder) {
		return nil
	}
	return m.mergeInto(from, to, name, later, func(in, out *os.File) error {
		if !isOpaque(in) {
			return nil
		}
		return unix.Fsetxattr(int(out.Fd()), grants.Opaque, []byte{'y'}, 0)
	})
}

// mergeInto merges the entries of a folder, and then calls finish and sets owner, mode and times.
func (m *merge) mergeInto(from, to *os.File, name string, status unix.Stat_t, finish func(in, out *os.File) error) error {
	in, err := openAt(from, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := openAt(to, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := unix.Fchmod(int(out.Fd()), 0o700); err != nil { // commands may have removed its write permission
		return err
	}
	if err := m.mergeEntries(in, out); err != nil {
		return err
	}
	if err := finish(in, out); err != nil {
		return err
	}
	return copyStatus(to, name, status)
}

func isDir(stat unix.Stat_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFDIR }
