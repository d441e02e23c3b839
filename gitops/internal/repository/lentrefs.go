package repository

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// unlentPrefixes lists prefixes of references that are not copied for commands: they belong to a
// person's work in one work tree, or replace objects.
var unlentPrefixes = []string{"refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/replace/"}

// packedRef is a reference in packed-refs. peeled is the commit of an annotated tag, or "".
type packedRef struct{ id, peeled string }

// references are a repository's references that may be copied to another.
type references struct {
	direct   map[string]packedRef
	symbolic map[string]string // target of a symbolic reference, by name
	peeled   bool              // every annotated tag in direct has its commit
}

// CopyRefs writes HEAD and the references of this repository to the git folder dir. own adds
// references, and replaces those with the same or a conflicting name.
func (l Layout) CopyRefs(dir, head string, own map[string]plumbing.Hash) error {
	refs, err := l.references()
	if err != nil {
		return err
	}
	for name, id := range own {
		refs.set(name, id)
	}
	for name, target := range refs.symbolic {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("copy references: %w", err)
		}
		if err := os.WriteFile(file, []byte("ref: "+target+"\n"), 0o600); err != nil {
			return fmt.Errorf("copy references: %w", err)
		}
	}
	if err := refs.write(filepath.Join(dir, "packed-refs")); err != nil {
		return fmt.Errorf("copy references: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "HEAD"), []byte(head+"\n"), 0o600)
}

// references reads the loose and the packed references.
func (l Layout) references() (references, error) {
	refs := references{direct: map[string]packedRef{}, symbolic: map[string]string{}, peeled: true}
	if err := l.readPacked(&refs); err != nil {
		return refs, err
	}
	root := filepath.Join(l.CommonDir, "refs")
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile; the other references count
		}
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(file, ".lock") {
			return nil
		}
		below, err := filepath.Rel(l.CommonDir, file)
		if err != nil {
			return err
		}
		refs.readFile(filepath.ToSlash(below), file)
		return nil
	})
	if err != nil {
		return refs, fmt.Errorf("read references: %w", err)
	}
	return refs, nil
}

// readFile adds the reference in a file. It ignores an invalid file, and a reference that may not be copied.
func (r *references) readFile(name, file string) {
	value, err := readSmall(file)
	if err != nil || plumbing.ReferenceName(name).Validate() != nil || !isLent(name) {
		return
	}
	if target, symbolic := strings.CutPrefix(value, "ref: "); symbolic {
		if target = strings.TrimSpace(target); plumbing.ReferenceName(target).Validate() == nil {
			delete(r.direct, name)
			r.symbolic[name] = target
		}
		return
	}
	if id, err := ParseID(value); err == nil {
		r.direct[name] = packedRef{id: id.String()}
		r.peeled = r.peeled && (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/remotes/"))
	}
}

// isLent reports whether a reference may be copied for commands.
func isLent(name string) bool {
	return !slices.ContainsFunc(unlentPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// readPacked adds the references of packed-refs that may be copied. A line ^ID has the commit of
// the annotated tag in the line before.
func (l Layout) readPacked(refs *references) error {
	first, last := true, "" // last is the name in the line before, if it was added
	return l.packedLines(func(line string) error {
		if first {
			refs.peeled = strings.HasPrefix(line, "# pack-refs with:") && strings.Contains(line, " fully-peeled ")
			first = false
		}
		if to, peeled := strings.CutPrefix(line, "^"); peeled && plumbing.IsHash(to) {
			if tag, ok := refs.direct[last]; ok {
				tag.peeled = to
				refs.direct[last] = tag
			}
			return nil
		}
		last = ""
		id, name, ok := strings.Cut(line, " ")
		if ok && plumbing.IsHash(id) && strings.HasPrefix(name, "refs/") && isLent(name) {
			refs.direct[name] = packedRef{id: id}
			last = name
		}
		return nil
	})
}

// set points a reference at a commit. It deletes references that cannot exist beside it, such as
// "a" for "a/b".
func (r *references) set(name string, id plumbing.Hash) {
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		delete(r.direct, above)
		delete(r.symbolic, above)
	}
	maps.DeleteFunc(r.direct, func(other string, _ packedRef) bool { return pathname.IsInAny(other, name) })
	maps.DeleteFunc(r.symbolic, func(other, _ string) bool { return pathname.IsInAny(other, name) })
	r.direct[name] = packedRef{id: id.String()}
}

// RefsDigest returns the SHA-256, in hex, of the tags and remote references.
func (l Layout) RefsDigest() (string, error) {
	refs, err := l.references()
	if err != nil {
		return "", err
	}
	private := func(name string) bool {
		return !strings.HasPrefix(name, "refs/tags/") && !strings.HasPrefix(name, "refs/remotes/")
	}
	maps.DeleteFunc(refs.direct, func(name string, _ packedRef) bool { return private(name) })
	maps.DeleteFunc(refs.symbolic, func(name, _ string) bool { return private(name) })
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(refs.direct)) {
		fmt.Fprintln(sum, refs.direct[name].id, name)
	}
	for _, name := range slices.Sorted(maps.Keys(refs.symbolic)) {
		fmt.Fprintln(sum, refs.symbolic[name], name)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// write writes the direct references as a new packed-refs file.
func (r *references) write(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(f)
	if r.peeled {
		_, _ = to.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	} else {
		_, _ = to.WriteString("# pack-refs with: sorted \n")
	}
	for _, name := range slices.Sorted(maps.Keys(r.direct)) {
		one := r.direct[name]
		_, _ = to.WriteString(one.id + " " + name + "\n")
		if one.peeled != "" {
			_, _ = to.WriteString("^" + one.peeled + "\n")
		}
	}
	err = to.Flush()
	return errors.Join(err, f.Close())
}
