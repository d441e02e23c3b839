package lfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Store stores the contents of pointers. It verifies the hash of a content when it opens it.
type Store struct {
	OwnFolder string   // folder for new contents, created when needed; "" stores none
	Shared    []string // folders of the repository, which are only read
}

// ErrNoStore reports that content cannot be stored because OwnFolder is "".
var ErrNoStore = errors.New("no folder for the content of Git LFS files")

// PathOf returns the path at which git-lfs stores an object below a folder.
func PathOf(folder, oid string) string {
	return filepath.Join(folder, "objects", oid[:2], oid[2:4], oid)
}

// ObjectFolders returns the folders of git-lfs in git folders.
func ObjectFolders(gitFolders []string) []string {
	var folders []string
	for _, dir := range gitFolders {
		folders = append(folders, filepath.Join(dir, "lfs"))
	}
	return folders
}

// Clean writes the pointer of content to out. If keep is set, it also stores the content. A pointer
// or empty content is written unchanged.
func (s Store) Clean(ctx context.Context, content io.Reader, keep bool, out io.Writer) error {
	content = regularfile.Until(ctx, content)
	start, err := io.ReadAll(io.LimitReader(content, MaxPointer))
	if err != nil {
		return err
	}
	if _, _, isPointer := Parse(start); isPointer || len(start) == 0 {
		_, err := out.Write(start)
		return err
	}
	p, err := s.take(io.MultiReader(bytes.NewReader(start), content), keep)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, p.String())
	return err
}

// take returns the pointer of content, and stores the content if keep is set.
func (s Store) take(content io.Reader, keep bool) (p Pointer, err error) {
	if !keep {
		return hash(content, io.Discard)
	}
	return s.store(content, func(Pointer) error { return nil })
}

// hash returns the pointer of content, which it also copies to copied.
func hash(content io.Reader, copied io.Writer) (p Pointer, err error) {
	sum := sha256.New()
	p.Size, err = io.Copy(io.MultiWriter(sum, copied), content)
	p.OID = hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// store stores content under its hash, if check accepts the pointer. It writes through the parent
// of OwnFolder, because a link in a copied checkout could lead elsewhere.
func (s Store) store(content io.Reader, check func(Pointer) error) (p Pointer, err error) {
	if s.OwnFolder == "" {
		return p, ErrNoStore
	}
	root, err := os.OpenRoot(filepath.Dir(s.OwnFolder))
	if err != nil {
		return p, err
	}
	defer root.Close()
	own := filepath.Base(s.OwnFolder)
	if err := root.MkdirAll(own, 0o755); err != nil {
		return p, s.leadsOut(err)
	}
	name := filepath.Join(own, "new-"+rand.Text())
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return p, err
	}
	defer func() { _ = root.Remove(name) }() // does nothing after the rename
	p, err = hash(content, f)
	if err == nil {
		err = check(p)
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return p, err
	}
	if s.Has(p) {
		return p, nil
	}
	to := PathOf(own, p.OID)
	if err := root.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return p, s.leadsOut(err)
	}
	return p, root.Rename(name, to)
}

// LinkError reports that a link in the store leads out of it.
type LinkError struct{ Path string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("a link in %s leads elsewhere: replace it by a folder", e.Path)
}

// leadsOut returns a *LinkError for an error about a path out of its root. It returns system errors
// unchanged.
func (s Store) leadsOut(err error) error {
	if errors.As(err, new(syscall.Errno)) {
		return err
	}
	return &LinkError{s.OwnFolder}
}

// OtherError reports content that does not fit its pointer.
type OtherError struct{ Want, Got Pointer }

func (e *OtherError) Error() string {
	switch {
	case e.Got.Size > e.Want.Size:
		return fmt.Sprintf("the content has more than %d bytes", e.Want.Size)
	case e.Got.Size < e.Want.Size:
		return fmt.Sprintf("the content has %d bytes, not %d", e.Got.Size, e.Want.Size)
	}
	return fmt.Sprintf("the content has the SHA-256 %.12s, not %.12s", e.Got.OID, e.Want.OID)
}

// Store stores the content of a pointer. It reads at most one byte more than the pointer's size. It
// returns an *OtherError for content that does not fit.
func (s Store) Store(ctx context.Context, p Pointer, content io.Reader) error {
	_, err := s.store(io.LimitReader(regularfile.Until(ctx, content), p.Size+1), func(got Pointer) error {
		if got != p {
			return &OtherError{p, got}
		}
		return nil
	})
	return err
}

// Take stores the content of an object, unless the store has it.
func (s Store) Take(ctx context.Context, o Object) error {
	if s.Has(o.Pointer) {
		return nil
	}
	content, err := o.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.Store(ctx, o.Pointer, content), content.Close())
}

func (s Store) folders() []string {
	if s.OwnFolder == "" {
		return s.Shared
	}
	return append([]string{s.OwnFolder}, s.Shared...)
}

// Has reports whether the store has a file for the content with the right size. It does not verify
// the hash.
func (s Store) Has(p Pointer) bool {
	for _, folder := range s.folders() {
		if info, err := os.Stat(PathOf(folder, p.OID)); err == nil && info.Mode().IsRegular() && info.Size() == p.Size {
			return true
		}
	}
	return false
}

// DamagedError reports a stored content whose hash differs from its name.
type DamagedError struct{ Path string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the Git LFS object %s is damaged: remove it and run `git lfs fetch`", e.Path)
}

// Open opens the content of a pointer after verifying its hash. It returns fs.ErrNotExist if no folder
// of the store has a readable file for it, and a *DamagedError if the first such file has other content.
func (s Store) Open(ctx context.Context, p Pointer) (*os.File, error) {
	for _, folder := range s.folders() {
		path := PathOf(folder, p.OID)
		f, err := regularfile.Open(path)
		if err != nil {
			continue
		}
		found, err := hash(regularfile.Until(ctx, f), io.Discard)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil && found != p {
			err = &DamagedError{path}
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	return nil, fs.ErrNotExist
}

// Smudge writes the content of a pointer to out. If content is no pointer, or the store does not
// have its content, Smudge writes it unchanged.
func (s Store) Smudge(ctx context.Context, content io.Reader, out io.Writer) error {
	content = regularfile.Until(ctx, content)
	start, err := io.ReadAll(io.LimitReader(content, MaxPointer))
	if err != nil {
		return err
	}
	if p, plain, isPointer := Parse(start); isPointer && plain {
		f, err := s.Open(ctx, p)
		if err == nil {
			_, err = io.Copy(out, regularfile.Until(ctx, f))
			return errors.Join(err, f.Close())
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err = io.Copy(out, io.MultiReader(bytes.NewReader(start), content))
	return err
}
