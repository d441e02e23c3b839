package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Limits of a pack from an untrusted sender.
const (
	packBytes   = 256 << 20 // total size of the uncompressed objects
	packObjects = 200_000
	packDepth   = pathname.Deepest
	packEntries = 500_000 // files and folders of the tree that differ from the base
	packUnfolds = 1 << 30 // total size of these files in bytes; a blob counts at each path
)

// Receive reads a pack from an untrusted sender. It must contain exactly the blobs and trees that
// tree needs beyond base, with valid names and modes. After a *PackError, no object of the pack is
// stored.
func (s *Store) Receive(ctx context.Context, r io.Reader, base, tree plumbing.Hash) error {
	dir, err := os.MkdirTemp(s.dir, "incoming-")
	if err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	incoming := Open(dir)
	return errors.Join(s.receive(ctx, incoming, r, base, tree), incoming.Close())
}

// receive unpacks the pack into incoming and checks it there. It copies the objects to s if the
// pack has all new objects of the tree, and no others.
func (s *Store) receive(ctx context.Context, incoming *Store, r io.Reader, base, tree plumbing.Hash) error {
	objects, err := incoming.unpack(ctx, r)
	if err != nil {
		return err
	}
	check := packCheck{
		base: s, incoming: incoming, objects: objects,
		used: map[plumbing.Hash]bool{}, checked: map[[2]plumbing.Hash]unfoldedSize{},
	}
	if _, err := check.checkFolder(ctx, base, tree, ""); err != nil {
		return err
	}
	for id := range objects {
		if !check.used[id] {
			return &PackError{Reason: fmt.Sprintf("object %s is not part of the tree", id)}
		}
	}
	return incoming.CopyTo(ctx, s, slices.Collect(maps.Keys(objects)))
}

// packedObject is an unpacked object of a pack.
type packedObject struct {
	kind plumbing.ObjectType
	size int64
}

// unpack stores the objects of a pack and returns their kinds and sizes by id.
func (s *Store) unpack(ctx context.Context, r io.Reader) (map[plumbing.Hash]packedObject, error) {
	scanner := packfile.NewScanner(struct{ io.Reader }{r})
	_, count, err := scanner.Header()
	if err != nil {
		return nil, malformedError(err)
	}
	if count > packObjects {
		return nil, &PackError{Reason: fmt.Sprintf("it has %d objects, more than %d", count, packObjects)}
	}
	objects := map[plumbing.Hash]packedObject{}
	left := int64(packBytes)
	for range count {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		id, object, err := s.unpackOne(scanner, left)
		if err != nil {
			return nil, err
		}
		if _, twice := objects[id]; twice {
			return nil, &PackError{Reason: fmt.Sprintf("object %s is there twice", id)}
		}
		objects[id] = object
		left -= object.size
	}
	if _, err := scanner.Checksum(); err != nil {
		return nil, malformedError(err)
	}
	return objects, nil
}

func malformedError(err error) error { return &PackError{Reason: err.Error()} }

// unpackOne stores the next object of a pack. left is the number of bytes that the remaining
// objects may have.
func (s *Store) unpackOne(scanner *packfile.Scanner, left int64) (id plumbing.Hash, object packedObject, err error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return id, object, malformedError(err)
	}
	if header.Type != plumbing.BlobObject && header.Type != plumbing.TreeObject {
		return id, object, &PackError{Reason: fmt.Sprintf("it has an object of type %s", header.Type)}
	}
	if header.Length > left || header.Type == plumbing.TreeObject && header.Length > maxTree {
		return id, object, &PackError{Reason: "its objects are too large"}
	}
	content, err := scanner.ReadObject()
	if err != nil {
		return id, object, malformedError(err)
	}
	// Read one byte more than announced, to detect a wrong length.
	id, err = s.Write(header.Type, header.Length, io.LimitReader(content, header.Length+1))
	if err = errors.Join(err, content.Close()); err != nil {
		return id, object, malformedError(err)
	}
	return id, packedObject{header.Type, header.Length}, nil
}

// packCheck checks the tree of a pack against the base. What differs from the base must be in the
// pack. It reads each folder once, but counts it at each path, because a small pack may contain a
// huge tree.
type packCheck struct {
	base, incoming *Store
	objects        map[plumbing.Hash]packedObject
	used           map[plumbing.Hash]bool
	checked        map[[2]plumbing.Hash]unfoldedSize // results by base folder and folder
}

// unfoldedSize is the size of a folder with everything below it. For a file, only bytes is set.
type unfoldedSize struct {
	entries, depth int
	bytes          int64
}

// checkFolder checks the folder tree, which has the folder base as its counterpart. It returns the
// size of the part that differs.
func (p *packCheck) checkFolder(ctx context.Context, base, tree plumbing.Hash, prefix string) (unfoldedSize, error) {
	if ctx.Err() != nil {
		return unfoldedSize{}, context.Cause(ctx)
	}
	if base == tree {
		return unfoldedSize{}, nil
	}
	if known, ok := p.checked[[2]plumbing.Hash{base, tree}]; ok {
		return known, nil
	}
	if strings.Count(prefix, "/") > packDepth {
		return unfoldedSize{}, tooDeep()
	}
	entries, err := p.readEntries(tree, prefix)
	if err != nil {
		return unfoldedSize{}, err
	}
	old, err := p.base.Tree(base)
	if err != nil {
		return unfoldedSize{}, err
	}
	size, err := p.checkEntries(ctx, old, entries, prefix)
	p.checked[[2]plumbing.Hash{base, tree}] = size
	return size, err
}

func tooDeep() error { return &PackError{Reason: "its folders are nested too deep"} }

// readEntries returns the entries of a tree, which must be in the pack.
func (p *packCheck) readEntries(tree plumbing.Hash, prefix string) ([]Entry, error) {
	if p.objects[tree].kind != plumbing.TreeObject {
		return nil, &PackError{Reason: fmt.Sprintf("the tree of %q is missing", prefix)}
	}
	p.used[tree] = true
	entries, err := p.incoming.Tree(tree)
	if err != nil {
		return nil, malformedError(err)
	}
	return entries, validTree(tree, entries, prefix)
}

// checkEntries checks the entries of a folder against those of the base, and returns their total
// size.
func (p *packCheck) checkEntries(ctx context.Context, old, entries []Entry, prefix string) (unfoldedSize, error) {
	byName := make(map[string]Entry, len(old))
	for _, e := range old {
		byName[e.Name] = e
	}
	size := unfoldedSize{entries: len(entries)}
	for _, e := range entries {
		below, err := p.checkEntry(ctx, byName[e.Name], e, prefix)
		if err != nil {
			return unfoldedSize{}, err
		}
		size.entries += below.entries
		size.bytes += below.bytes
		size.depth = max(size.depth, below.depth+1)
		if size.entries > packEntries || size.bytes > packUnfolds {
			return unfoldedSize{}, &PackError{Reason: "its tree has too many files, or too large ones"}
		}
		if size.depth > packDepth {
			return unfoldedSize{}, tooDeep()
		}
	}
	return size, nil
}

// checkEntry checks that the pack has the content of an entry, unless the base's entry old has the
// same content. A submodule has no content.
func (p *packCheck) checkEntry(ctx context.Context, old, e Entry, prefix string) (unfoldedSize, error) {
	if e.IsTree() {
		base := plumbing.ZeroHash
		if old.IsTree() {
			base = old.ID
		}
		return p.checkFolder(ctx, base, e.ID, prefix+e.Name+"/")
	}
	isUnchanged := e.ID == old.ID && !old.IsTree()
	if isUnchanged || e.Mode == index.Gitlink {
		return unfoldedSize{}, nil
	}
	blob := p.objects[e.ID]
	if blob.kind != plumbing.BlobObject {
		return unfoldedSize{}, &PackError{Reason: fmt.Sprintf("the content of %q is missing", prefix+e.Name)}
	}
	p.used[e.ID] = true
	return unfoldedSize{bytes: blob.size}, nil
}

// validTree checks order, names and modes of a tree's entries, like git fsck.
func validTree(id plumbing.Hash, entries []Entry, prefix string) error {
	if plumbing.ComputeHash(plumbing.TreeObject, encodeTree(entries)) != id {
		return &PackError{Reason: fmt.Sprintf("the tree of %q is not written as git writes it", prefix)}
	}
	names := map[string]bool{}
	for i, e := range entries {
		switch {
		case !ValidName(e.Name):
			return &PackError{Reason: fmt.Sprintf("the name %q is not allowed", prefix+e.Name)}
		case names[e.Name]:
			return &PackError{Reason: fmt.Sprintf("the name %q is there twice", prefix+e.Name)}
		case i > 0 && strings.Compare(entries[i-1].Key(), e.Key()) >= 0:
			return &PackError{Reason: fmt.Sprintf("the tree of %q is not sorted", prefix)}
		case e.Mode != TreeMode && e.Mode != index.Regular && e.Mode != index.Executable && e.Mode != index.Symlink && e.Mode != index.Gitlink:
			return &PackError{Reason: fmt.Sprintf("%q has the mode %o", prefix+e.Name, e.Mode)}
		}
		names[e.Name] = true
	}
	return nil
}
