package lessons

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// AddTo adds those lessons to the file of a checkout that it does not have yet, and gives these. The
// file is replaced whole. Links are not followed.
func AddTo(checkout string, more []memory.Lesson) (added []memory.Lesson, err error) {
	root, err := os.OpenRoot(checkout)
	if err != nil {
		return nil, fmt.Errorf("open the checkout: %w", err)
	}
	defer root.Close()
	before, err := readPlain(root)
	if err != nil {
		return nil, err
	}
	known, problems := Parse(Path, before)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w", problems)
	}
	if added = New(known, more); len(added) == 0 {
		return nil, nil
	}
	after, err := Append(before, added)
	if err != nil {
		return nil, err
	}
	return added, replace(root, after)
}

// readPlain reads the file, whose folder it makes. It is nil where there is none.
func readPlain(root *os.Root) ([]byte, error) {
	folder := path.Dir(Path)
	if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", folder, err)
	}
	if info, err := root.Lstat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder (%v); put it right by hand", folder, err)
	}
	info, err := root.Lstat(Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file (%v); put it right by hand", Path, err)
	}
	return given.ReadIn(root, Path, MaxSize)
}

func replace(root *os.Root, content []byte) error {
	const fresh = Path + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier one that was killed
		return fmt.Errorf("write %s: %w", Path, err)
	}
	f, err := root.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", Path, err)
	}
	_, err = f.Write(content)
	if info, none := root.Lstat(Path); none == nil {
		err = errors.Join(err, f.Chmod(info.Mode().Perm()))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(fresh, Path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", Path, errors.Join(err, root.Remove(fresh)))
	}
	return nil
}
