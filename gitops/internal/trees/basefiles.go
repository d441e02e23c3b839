package trees

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// ReadBase returns a file of the base commit. It returns fs.ErrNotExist for anything but a file,
// and a *TooLargeError above limit bytes.
func (s *Store) ReadBase(path string, limit int64) ([]byte, error) {
	return s.ReadFile(s.base.Tree, path, limit)
}

// HasBase reports whether the base commit has an entry at a path. It does not follow links, but
// returns true for any path below a link.
func (s *Store) HasBase(name string) (bool, error) {
	for at := path.Clean(name); at != "." && at != "/"; at = path.Dir(at) {
		e, err := s.objects.Find(s.base.Tree.Hash(), at)
		if err != nil {
			return false, fmt.Errorf("find %q in the base commit: %w", name, err)
		}
		hasEntry := at == path.Clean(name) && e.Mode != 0
		if hasEntry || e.Mode == index.Symlink {
			return true, nil
		}
	}
	return false, nil
}

// describeTree names a tree in errors.
func (s *Store) describeTree(tree Tree) string {
	if tree == s.base.Tree {
		return "the base commit"
	}
	return "tree " + string(tree)
}

// ReadFile returns a file of a tree, like ReadBase.
func (s *Store) ReadFile(tree Tree, path string, limit int64) ([]byte, error) {
	e, err := s.objects.Find(tree.Hash(), path)
	if err != nil {
		return nil, fmt.Errorf("read %q of %s: %w", path, s.describeTree(tree), err)
	}
	if e.Mode != index.Regular && e.Mode != index.Executable {
		return nil, fmt.Errorf("read %q of %s: %w", path, s.describeTree(tree), fs.ErrNotExist)
	}
	data, err := s.objects.BlobBytes(e.ID, limit)
	if large, ok := errors.AsType[*objects.TooLargeError](err); ok {
		large.Path = path
		return nil, large
	}
	if err != nil {
		return nil, fmt.Errorf("read %q of %s: %w", path, s.describeTree(tree), err)
	}
	return data, nil
}

// BaseKind is the type of a BaseEntry.
type BaseKind int

// The kinds of entries. A submodule has none, because the commit contains nothing of it.
const (
	baseNothing BaseKind = iota
	BaseFile
	BaseFolder
	BaseLink
)

// BaseEntry is the entry of the base commit at a path.
type BaseEntry struct {
	Name   string // the last part of the path
	Kind   BaseKind
	Target string // of a link, as written; empty if it is longer than any path
}

// BaseEntry returns the entry of the base commit at a path. It follows no links.
func (s *Store) BaseEntry(name string) (BaseEntry, error) { return s.EntryIn(s.base.Tree, name) }

// EntryIn returns the entry of a tree at a path, like BaseEntry.
func (s *Store) EntryIn(tree Tree, name string) (BaseEntry, error) {
	e, err := s.objects.Find(tree.Hash(), name)
	if err != nil {
		return BaseEntry{}, fmt.Errorf("look for %q in %s: %w", name, s.describeTree(tree), err)
	}
	entry := BaseEntry{Name: path.Base(name), Kind: kindOf(e)}
	if entry.Kind != BaseLink {
		return entry, nil
	}
	target, err := s.objects.BlobBytes(e.ID, maxTarget)
	if errors.As(err, new(*objects.TooLargeError)) {
		return entry, nil // a link without a Target
	}
	if err != nil {
		return BaseEntry{}, fmt.Errorf("read the link %q of %s: %w", name, s.describeTree(tree), err)
	}
	entry.Target = string(target)
	return entry, nil
}

// kindOf returns the kind of a tree's entry, or baseNothing for a submodule or a missing entry.
func kindOf(e objects.Entry) BaseKind {
	switch e.Mode {
	case index.Regular, index.Executable:
		return BaseFile
	case objects.TreeMode:
		return BaseFolder
	case index.Symlink:
		return BaseLink
	}
	return baseNothing
}

// BaseEntries lists a folder of the base commit in git's order, without the targets of links. "" is
// the root. A missing folder is empty.
func (s *Store) BaseEntries(folder string) ([]BaseEntry, error) {
	return s.entriesIn(s.base.Tree, folder)
}

// entriesIn lists a folder of a tree, like BaseEntries.
func (s *Store) entriesIn(tree Tree, folder string) ([]BaseEntry, error) {
	id := tree.Hash()
	if folder != "" {
		e, err := s.objects.Find(id, folder)
		if err != nil {
			return nil, fmt.Errorf("list %q of %s: %w", folder, s.describeTree(tree), err)
		}
		if !e.IsTree() {
			return nil, nil
		}
		id = e.ID
	}
	found, err := s.objects.Tree(id)
	if err != nil {
		return nil, fmt.Errorf("list %q of %s: %w", folder, s.describeTree(tree), err)
	}
	entries := make([]BaseEntry, len(found))
	for i, e := range found {
		entries[i] = BaseEntry{Name: e.Name, Kind: kindOf(e)}
	}
	return entries, nil
}

// BaseFiles lists the names of the files in a folder of the base commit, in git's order. "" is the
// root. A missing folder is empty.
func (s *Store) BaseFiles(folder string) ([]string, error) { return s.FilesIn(s.base.Tree, folder) }

// FilesIn lists the names of the files in a folder of a tree, like BaseFiles.
func (s *Store) FilesIn(tree Tree, folder string) ([]string, error) {
	entries, err := s.entriesIn(tree, folder)
	var names []string
	for _, e := range entries {
		if e.Kind == BaseFile {
			names = append(names, e.Name)
		}
	}
	return names, err
}

const (
	maxTarget = 4 << 10 // the longest link target, in bytes
	maxLinks  = 40      // links followed for one path, as on Linux (path_resolution(7))
)

// BaseTracks reports whether the base commit contains a path of the work tree. The path may be a
// file, link, submodule, a path in a submodule at its commit, or a folder that contains any of
// these. BaseTracks follows the commit's links, and reads only the folders on the path.
func (s *Store) BaseTracks(name string) (bool, error) {
	name = path.Clean(name)
	if name == "." {
		return true, nil
	}
	f := baseFinder{s.repo, s.objects, s.base.Tree.Hash(), ""}
	return f.contains(strings.Split(name, "/"), maxLinks)
}

// baseFinder looks up paths in the tree of a repository mounted in the work tree.
type baseFinder struct {
	repo      *repository.Repository
	objects   *objects.Store
	rootTree  plumbing.Hash
	mountPath string
}

// contains looks up a path, given as its parts. It follows up to links links.
func (f baseFinder) contains(parts []string, links int) (bool, error) {
	tree := f.rootTree
	for i, part := range parts {
		entries, err := f.objects.Tree(tree)
		if err != nil {
			return false, err
		}
		n := slices.IndexFunc(entries, func(e objects.Entry) bool { return f.repo.Settings.SameName(e.Name) == f.repo.Settings.SameName(part) })
		if n < 0 {
			return false, nil
		}
		rest := parts[i+1:]
		if len(rest) == 0 {
			return true, nil
		}
		switch e := entries[n]; e.Mode {
		case objects.TreeMode:
			tree = e.ID
		case index.Symlink:
			return f.throughLink(e.ID, parts[:i], rest, links-1)
		case index.Gitlink:
			return f.inSubmodule(path.Join(f.mountPath, path.Join(parts[:i+1]...)), e.ID, rest, links)
		default:
			return false, nil
		}
	}
	return false, nil
}

// throughLink looks up the path rest below a link. above is the folder that contains the link,
// links the number of links that may still be followed.
func (f baseFinder) throughLink(link plumbing.Hash, above, rest []string, links int) (bool, error) {
	target, err := f.objects.BlobBytes(link, maxTarget)
	if errors.As(err, new(*objects.TooLargeError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if links < 0 || path.IsAbs(string(target)) {
		return false, nil // not in the tree; the caller asks again with the path that an absolute link resolves to
	}
	name := path.Join(path.Join(above...), string(target), path.Join(rest...))
	if !filepath.IsLocal(name) {
		return false, nil
	}
	return f.contains(strings.Split(name, "/"), links)
}

// inSubmodule looks up a path in a submodule that is checked out. Other submodules have no files in
// the work tree.
func (f baseFinder) inSubmodule(at string, id plumbing.Hash, rest []string, links int) (tracked bool, err error) {
	dir, ok := repository.GitDirOf(filepath.Join(f.repo.Root, filepath.FromSlash(at)))
	if !ok {
		return false, nil
	}
	folders, lost, err := repository.ObjectFolders(dir)
	if err != nil {
		return false, err
	}
	sub := baseFinder{f.repo, objects.Open("", folders...), plumbing.ZeroHash, at}
	sub.objects.Lost = lost
	defer func() { err = errors.Join(err, sub.objects.Close()) }()
	commit, err := sub.objects.Commit(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sub.rootTree = commit.TreeHash
	return sub.contains(rest, links)
}

// BaseContainsText reports whether a file of the base contains the text in one line. It trusts the base's
// objects, so call it before any command could change them.
func (s *Store) BaseContainsText(ctx context.Context, text string) (bool, error) {
	if text == "" || strings.ContainsAny(text, "\n\r\x00") {
		return false, nil
	}
	// Pass the text by standard input, because other users can see the arguments of a program.
	git, err := s.repo.PrivateGit()
	if err != nil {
		return false, fmt.Errorf("search the base: %w", err)
	}
	git = git.With("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + repository.QuoteAlternate(s.repo.CommonDir+"/objects"))
	_, err = git.Run(ctx, s.repo.Root, strings.NewReader(text+"\n"), "grep", "--quiet", "--text", "--fixed-strings", "-f", "-", string(s.base.Tree))
	switch {
	case err == nil:
		return true, nil
	case program.ExitStatus(err) == 1:
		return false, nil
	}
	return false, fmt.Errorf("search the base: %w", err)
}
