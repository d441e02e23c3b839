package v4a

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/go-git/go-billy/v5"
)

// OnBilly is the tree of a billy file system, as a go-git worktree has one.
// Billy names files by path and holds no directory open: that a link which
// another process sets up in the middle of a write leads nowhere else is for
// the file system to see to, as osfs with WithBoundOS does for its root. Where
// other processes run, prefer [OnRoot].
func OnBilly(fsys billy.Filesystem) Dir { return billyDir{fs: fsys} }

type billyDir struct {
	fs  billy.Filesystem
	dir string
}

func (d billyDir) at(name string) string { return path.Join(d.dir, name) }

func (d billyDir) Lstat(name string) (fs.FileInfo, error) { return d.fs.Lstat(d.at(name)) }
func (d billyDir) Readlink(name string) (string, error)   { return d.fs.Readlink(d.at(name)) }
func (d billyDir) Mkdir(name string) error                { return d.fs.MkdirAll(d.at(name), 0o777) }
func (d billyDir) Link(_, _ string) error                 { return errors.ErrUnsupported }
func (d billyDir) Rename(name, to string) error           { return d.fs.Rename(d.at(name), d.at(to)) }
func (d billyDir) Remove(name string) error               { return d.fs.Remove(d.at(name)) }
func (d billyDir) Close() error                           { return nil }

func (d billyDir) Open(name string) (io.ReadCloser, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: d.at(name), Err: errNotRegular}
	}
	return d.fs.Open(d.at(name))
}

func (d billyDir) Sub(name string) (Dir, error) {
	return billyDir{fs: d.fs, dir: d.at(name)}, nil
}

func (d billyDir) Create(name string, like fs.FileInfo) (io.WriteCloser, error) {
	perm := fs.FileMode(0o666)
	if like != nil {
		perm = like.Mode() & fs.ModePerm
	}
	f, err := d.fs.OpenFile(d.at(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	if changer, ok := d.fs.(billy.Chmod); ok && like != nil {
		if err := changer.Chmod(d.at(name), like.Mode()&keptMode); err != nil {
			return nil, errors.Join(err, f.Close(), d.Remove(name))
		}
	}
	return f, nil
}
