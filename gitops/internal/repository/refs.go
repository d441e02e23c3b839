package repository

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

var ErrNoRef = errors.New("no such reference")

// Refs is the references of a repository, in files and in packed-refs
// (gitrepository-layout(5)).
type Refs struct {
	dir string
}

func (l Layout) Refs() Refs { return Refs{l.CommonDir} }

const deepestRef = 5 // symbolic references that name one another

// Read returns what the reference name points to; errNoRef when there is none.
func (r Refs) Read(name string) (plumbing.Hash, error) {
	for range deepestRef {
		if err := plumbing.ReferenceName(name).Validate(); err != nil {
			return plumbing.ZeroHash, fmt.Errorf("read reference %q: %w", name, err)
		}
		value, err := readSmall(filepath.Join(r.dir, filepath.FromSlash(name)))
		if err != nil {
			return r.packed(name)
		}
		target, symbolic := strings.CutPrefix(value, "ref: ")
		if !symbolic {
			return ParseID(value)
		}
		name = strings.TrimSpace(target)
	}
	return plumbing.ZeroHash, fmt.Errorf("read reference %q: it leads nowhere", name)
}

func ParseID(text string) (plumbing.Hash, error) {
	if !plumbing.IsHash(text) || len(text) != 40 {
		return plumbing.ZeroHash, fmt.Errorf("%.60q is no object id", text)
	}
	return plumbing.NewHash(text), nil
}

// packed looks the name up in packed-refs.
func (r Refs) packed(name string) (plumbing.Hash, error) {
	id := plumbing.ZeroHash
	err := r.eachPacked(func(found, value string) (err error) {
		if found == name {
			id, err = ParseID(value)
		}
		return err
	})
	if err == nil && id.IsZero() {
		err = ErrNoRef
	}
	return id, err
}

func (r Refs) eachPacked(visit func(name, id string) error) error {
	f, err := regularfile.Open(filepath.Join(r.dir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read references: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		id, name, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(id, "#") {
			continue
		}
		if err := visit(name, id); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read references: %w", err)
	}
	return nil
}

// fits says whether a reference may be called name beside the packed ones: "a"
// and "a/b" cannot both be. Those in files show it by themselves.
func (r Refs) fits(name string) error {
	return r.eachPacked(func(other, _ string) error {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return fmt.Errorf("there is a reference %s: delete it, or give another branch", other)
		}
		return nil
	})
}

// write points the reference name to id.
func (r Refs) write(name string, id plumbing.Hash) error {
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write reference %s: a branch stands where its folder has to be: %w", name, err)
	}
	if err := removeEmptyFolders(path); err != nil {
		return fmt.Errorf("write reference %s: %w", name, err)
	}
	if err := replaceLocked(path, []byte(id.String()+"\n")); err != nil {
		return fmt.Errorf("write reference %s: %w", name, err)
	}
	return nil
}

// removeEmptyFolders makes room where references below path have been deleted.
func removeEmptyFolders(path string) error {
	if !isDir(path) {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := removeEmptyFolders(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// readHead returns the content of HEAD: "ref: NAME" or an id.
func readHead(gitDir string) (string, error) {
	text, err := readSmall(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	if name, ok := strings.CutPrefix(text, "ref: "); ok {
		return "ref: " + strings.TrimSpace(name), nil
	}
	if _, err := ParseID(text); err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	return text, nil
}

// readSmall reads a file of one line.
func readSmall(path string) (string, error) {
	data, err := regularfile.Read(path, 4<<10)
	return strings.TrimSpace(string(data)), err
}
