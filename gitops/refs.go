package gitops

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

var errNoRef = errors.New("no such reference")

// refFiles is the references of a repository, in files and in packed-refs
// (gitrepository-layout(5)).
type refFiles struct {
	dir string
}

func (c *Checkout) refs() refFiles { return refFiles{c.commonDir} }

const deepestRef = 5 // symbolic references that name one another

// read returns what the reference name points to; errNoRef when there is none.
func (r refFiles) read(name string) (plumbing.Hash, error) {
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
			return parseID(value)
		}
		name = strings.TrimSpace(target)
	}
	return plumbing.ZeroHash, fmt.Errorf("read reference %q: it leads nowhere", name)
}

func parseID(text string) (plumbing.Hash, error) {
	if !plumbing.IsHash(text) || len(text) != 40 {
		return plumbing.ZeroHash, fmt.Errorf("%.60q is no object id", text)
	}
	return plumbing.NewHash(text), nil
}

// packed looks the name up in packed-refs.
func (r refFiles) packed(name string) (plumbing.Hash, error) {
	id := plumbing.ZeroHash
	err := r.eachPacked(func(found, value string) (err error) {
		if found == name {
			id, err = parseID(value)
		}
		return err
	})
	if err == nil && id.IsZero() {
		err = errNoRef
	}
	return id, err
}

func (r refFiles) eachPacked(visit func(name, id string) error) error {
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
func (r refFiles) fits(name string) error {
	return r.eachPacked(func(other, _ string) error {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return fmt.Errorf("there is a reference %s: delete it, or give another branch", other)
		}
		return nil
	})
}

// write points the reference name to id.
func (r refFiles) write(name string, id plumbing.Hash) error {
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

// replaceLocked replaces a file as git does: by way of path.lock, which keeps
// every other git out meanwhile.
func replaceLocked(path string, data []byte) error {
	lock, err := lockFile(path)
	if err != nil {
		return err
	}
	_, err = lock.Write(data)
	return commitLock(lock, path, err)
}

// notLocked says early what lockFile would say.
func notLocked(path string) error {
	if _, err := os.Lstat(path + ".lock"); err == nil {
		return errLocked(path)
	}
	return nil
}

func errLocked(path string) error {
	return fmt.Errorf("%s.lock is there: another git works in this repository, or one has died; remove the file then", path)
}

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked(path)
	}
	return f, err
}

func commitLock(lock *os.File, path string, err error) error {
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(lock.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(lock.Name()))
	}
	return nil
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
	if _, err := parseID(text); err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	return text, nil
}

// readSmall reads a file of one line.
func readSmall(path string) (string, error) {
	data, err := regularfile.Read(path, 4<<10)
	return strings.TrimSpace(string(data)), err
}

// reflog appends what happened to a reference to the log at path, where git
// would: when a log is there or is due by default. The log is no link: who can put
// one there could have any file written to.
func reflog(path string, old, now plumbing.Hash, who, message string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	f, err := regularfile.Append(path)
	if err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	message, _, _ = strings.Cut(message, "\n")
	_, err = fmt.Fprintf(f, "%s %s %s\t%s\n", old, now, who, message)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the log of a reference: %w", err)
	}
	return nil
}
