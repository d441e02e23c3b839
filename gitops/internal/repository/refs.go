package repository

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// ErrNoRef is the error for a reference that does not exist.
var ErrNoRef = errors.New("no such reference")

const deepestRef = 5 // the longest chain of symbolic references

// ReadRef returns the id that a reference points to, from its file or packed-refs
// (gitrepository-layout(5)). It returns ErrNoRef for a missing reference, and an *UnsupportedError for
// one with a name that is not safe to use.
func (l Layout) ReadRef(name string) (plumbing.Hash, error) {
	for range deepestRef {
		if plumbing.ReferenceName(name).Validate() != nil { // such as refs/heads/-x, which programs take for a flag
			return plumbing.ZeroHash, &UnsupportedError{Feature: fmt.Sprintf("a reference with the name %q", name), Remedy: "check out a branch with another name"}
		}
		value, err := readSmall(filepath.Join(l.CommonDir, filepath.FromSlash(name)))
		if err != nil {
			return l.readPackedRef(name)
		}
		target, symbolic := strings.CutPrefix(value, "ref: ")
		if !symbolic {
			return ParseID(value)
		}
		name = strings.TrimSpace(target)
	}
	return plumbing.ZeroHash, fmt.Errorf("read reference %q: it leads nowhere", name)
}

// ParseID parses a full SHA-1 object id in hex.
func ParseID(text string) (plumbing.Hash, error) {
	if !plumbing.IsHash(text) || len(text) != 40 {
		return plumbing.ZeroHash, fmt.Errorf("%.60q is no object id", text)
	}
	return plumbing.NewHash(text), nil
}

// readPackedRef returns the id of a packed reference, or ErrNoRef.
func (l Layout) readPackedRef(name string) (plumbing.Hash, error) {
	id := plumbing.ZeroHash
	err := l.eachPacked(func(found, value string) (err error) {
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

// eachPacked calls visit for each reference in packed-refs.
func (l Layout) eachPacked(visit func(name, id string) error) error {
	return l.packedLines(func(line string) error {
		id, name, ok := strings.Cut(line, " ")
		if !ok || strings.HasPrefix(id, "#") {
			return nil
		}
		return visit(name, id)
	})
}

// packedLines calls visit for each line of packed-refs. A missing file has no lines.
func (l Layout) packedLines(visit func(line string) error) error {
	f, err := regularfile.Open(filepath.Join(l.CommonDir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read references: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if err := visit(lines.Text()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read references: %w", err)
	}
	return nil
}

// requireRefFits returns an error if a packed reference prevents one called name: "a" and "a/b" cannot
// both exist. Loose references need no check, because creating their file or folder fails.
func (l Layout) requireRefFits(name string) error {
	return l.eachPacked(func(other, _ string) error {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return fmt.Errorf("there is a reference %s: delete it, or give another branch", other)
		}
		return nil
	})
}

// writeRef points a reference at id. It calls expected while the reference is locked, and writes
// nothing if that fails.
func (r *Repository) writeRef(name string, id plumbing.Hash, expected func() error) error {
	path := filepath.Join(r.CommonDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write reference %s: a branch stands where its folder has to be: %w", name, err)
	}
	if err := removeEmptyFolders(path); err != nil {
		return fmt.Errorf("write reference %s: %w", name, err)
	}
	if err := r.replaceUnderLock(path, expected, lineWriter(id.String())); err != nil {
		return fmt.Errorf("write reference %s: %w", name, err)
	}
	return nil
}

// lineWriter returns a function that writes text as one line.
func lineWriter(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text+"\n")
		return err
	}
}

// removeEmptyFolders removes a folder tree that deleted references left. A file inside makes it
// fail.
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

// readSmall returns the content of a small file without blanks at its ends.
func readSmall(path string) (string, error) {
	data, err := regularfile.Read(path, 4<<10)
	return strings.TrimSpace(string(data)), err
}

// DefaultBranch returns the default branch of origin (refs/remotes/origin/HEAD in gitrevisions(7)),
// or "".
func (r *Repository) DefaultBranch() string {
	text, err := readSmall(filepath.Join(r.CommonDir, "refs", "remotes", "origin", "HEAD"))
	branch, ok := strings.CutPrefix(text, "ref: refs/remotes/origin/")
	if err != nil || !ok {
		return ""
	}
	return branch
}

// BranchesAt returns the sorted names of the local branches at a commit.
func (r *Repository) BranchesAt(sha string) (branches []string, err error) {
	refs, err := r.references()
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	for name := range refs.symbolic {
		if !strings.HasPrefix(name, "refs/heads/") {
			continue
		}
		if id, err := r.ReadRef(name); err == nil {
			refs.direct[name] = packedRef{id: id.String()}
		}
	}
	for name, ref := range refs.direct {
		if branch, is := strings.CutPrefix(name, "refs/heads/"); is && ref.id == sha {
			branches = append(branches, branch)
		}
	}
	slices.Sort(branches)
	return branches, nil
}

// BranchFits returns an error if another branch prevents one called name: "a" and "a/b" cannot both
// exist.
func (r *Repository) BranchFits(name string) error {
	if err := plumbing.NewBranchReferenceName(name).Validate(); err != nil {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	heads := filepath.Join(r.CommonDir, "refs", "heads")
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if info, err := os.Lstat(filepath.Join(heads, filepath.FromSlash(at))); err == nil && !info.IsDir() {
			return fmt.Errorf("there is a branch %s, and %s cannot be beside it: delete it, or give another branch", at, name)
		}
	}
	return r.requireRefFits("refs/heads/" + name)
}

// RequireUnusedElsewhere returns an *InUseError if another work tree has checked the branch out.
func (r *Repository) RequireUnusedElsewhere(branch string) error {
	heads, err := filepath.Glob(filepath.Join(r.CommonDir, "worktrees", "*", "HEAD"))
	if err != nil {
		return err
	}
	for _, head := range append(heads, filepath.Join(r.CommonDir, "HEAD")) {
		dir := filepath.Dir(head)
		if dir == r.GitDir {
			continue
		}
		isBare := dir == r.CommonDir && r.Settings.bare // its HEAD checks nothing out
		if now, err := readHead(dir); err == nil && now == "ref: refs/heads/"+branch && !isBare {
			return &InUseError{r.Root, fmt.Sprintf("%s is checked out in another work tree (%s), and is to move; switch that one to another branch, or remove it", branch, dir)}
		}
	}
	return nil
}

// CheckFree returns an error if the branch is checked out in another work tree, its name conflicts
// with another reference, or git has the index for more than a second. It is an *InUseError in the first and last
// case. Call it before any write.
func (r *Repository) CheckFree(ctx context.Context, branch string) error {
	if err := r.RequireUnusedElsewhere(branch); err != nil {
		return err
	}
	if err := r.requireRefFits("refs/heads/" + branch); err != nil {
		return err
	}
	return r.retryWhileInUse(ctx, func() error {
		if !r.HoldsIndex() && isLocked(r.indexPath()) {
			return r.gitLockError(r.indexPath())
		}
		return nil
	})
}
