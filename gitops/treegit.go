package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// TreeForCommands describes a tree for commands, and its .git, which has the checkout's references
// and borrows its objects.
type TreeForCommands struct {
	Tree Tree // the files: the base's, or a change set's
	Base Base // the zero Base means the checkout's base
	// Head makes HEAD point to a commit with exactly these files, as in the CI of a pull request.
	// If it is nil, HEAD stays on the base commit, and the differences are staged.
	Head *Head
	// Snapshot lists the files that were untracked before the run, for the tree's info/exclude. It
	// may be nil, except for MakeGitFolder.
	Snapshot *Snapshot
}

// Head decides which branch HEAD points to. If the files are the base's, HEAD is the base's branch
// at the base commit. Otherwise it is Branch, at a new commit of the files on top of the base.
type Head struct {
	Branch string
	Commit func() (CommitOptions, error) // returns the options of the new commit
}

// newGitDir makes a git folder at gitDir.
func (c *Checkout) newGitDir(ctx context.Context, gitDir string, s TreeForCommands) error {
	err := c.prepareGitDir(gitDir, gitDir, s)
	if err == nil {
		err = c.fillGitDir(ctx, gitDir, s)
	}
	return err
}

// prepareGitDir makes a git folder at gitDir that borrows objects, and has none and no references of its own. seenAt is
// the path at which commands see it, if it is mounted elsewhere.
func (c *Checkout) prepareGitDir(gitDir, seenAt string, s TreeForCommands) error {
	if err := os.MkdirAll(gitDir, 0o777); err != nil {
		return err
	}
	folder := repository.TreeFolder{Dir: gitDir, SeenAt: seenAt}
	if s.Snapshot != nil {
		folder.Excluded = s.Snapshot.excludedPaths()
	}
	if err := c.repo.FillGitDir(folder); err != nil {
		return err
	}
	lenders := c.lenders()
	for _, l := range lenders[1:] { // the submodules
		if err := c.repo.FillModule(folder, l.module); err != nil {
			return fmt.Errorf("make the git folder of the submodule %q: %w", l.module.Path, err)
		}
	}
	for _, l := range lenders {
		if err := l.borrow(gitDir, seenAt); err != nil {
			return err
		}
	}
	return nil
}

// fillGitDir adds objects and references to a git folder of prepareGitDir.
func (c *Checkout) fillGitDir(ctx context.Context, gitDir string, s TreeForCommands) error {
	if s.Base == (Base{}) {
		s.Base = c.Base()
	}
	if err := c.copyFetchedPacks(gitDir); err != nil {
		return err
	}
	if err := c.copyLFSForCommands(ctx, gitDir, s); err != nil {
		return err
	}
	own := objects.Open(gitDir)
	err := c.addObjects(ctx, own, s)
	if err == nil {
		err = c.setHead(gitDir, own, s)
	}
	return errors.Join(err, own.Close())
}

// addObjects copies the objects of a tree that are not in the base to own.
func (c *Checkout) addObjects(ctx context.Context, own *objects.Store, s TreeForCommands) error {
	ids, err := c.objects.AddedObjects(ctx, s.Base.Tree.Hash(), s.Tree.Hash())
	if err != nil {
		return err
	}
	return c.objects.CopyTo(ctx, own, ids)
}

// setHead writes HEAD and the references. The base branch points to the base. If the checkout has
// another base, origin's branch of that name points to s.Base too. If s.Tree is not the base's
// tree, HEAD points to a new commit of it. Without s.Head, HEAD is the base commit, and no branch changes.
func (c *Checkout) setHead(gitDir string, own *objects.Store, s TreeForCommands) error {
	base := plumbing.NewHash(s.Base.SHA)
	if s.Head == nil {
		return c.repo.CopyRefs(gitDir, base.String(), nil)
	}
	refs := map[string]plumbing.Hash{}
	set := func(prefix, branch string, id plumbing.Hash) {
		if name := prefix + branch; branch != "" && plumbing.ReferenceName(name).Validate() == nil {
			refs[name] = id
		}
	}
	set("refs/heads/", s.Base.Branch, base)
	if s.Base.SHA != c.Base().SHA {
		if _, err := c.repo.ReadRef("refs/remotes/origin/" + s.Base.Branch); err == nil {
			set("refs/remotes/origin/", s.Base.Branch, base)
		}
	}
	branch, tip := s.Base.Branch, base
	if s.Tree != s.Base.Tree {
		o, err := s.Head.Commit()
		if err != nil {
			return err
		}
		text, err := o.Encode(s.Tree, s.Base)
		if err != nil {
			return err
		}
		if tip, err = own.WriteBytes(plumbing.CommitObject, text); err != nil {
			return fmt.Errorf("write the commit: %w", err)
		}
		branch = s.Head.Branch
		set("refs/heads/", branch, tip)
	}
	head := "ref: refs/heads/" + branch
	if _, is := refs["refs/heads/"+branch]; !is { // without a valid branch, HEAD is detached
		head = tip.String()
	}
	return c.repo.CopyRefs(gitDir, head, refs)
}

// RefsDigest returns the SHA-256 of the checkout's tags and remote references.
func (c *Checkout) RefsDigest() (string, error) { return c.repo.RefsDigest() }

// objectLender is a git folder that lends objects to commands: the checkout's own or a submodule's.
type objectLender struct {
	module      repository.Module // its Name is empty for the checkout's own
	mountPoints []string          // empty folders in the borrowing git folder, one for each of the module's Folders
	lfs         bool              // also lends Git LFS objects
}

// lfsMountPoint returns the folder in which git-lfs looks for borrowed contents, beside the object folder
// place.
func lfsMountPoint(place string) string { return filepath.Join(filepath.Dir(place), "lfs", "objects") }

// lenders lists the git folders that lend objects: first the checkout's own, then those of its submodules.
func (c *Checkout) lenders() []objectLender {
	all := []objectLender{{module: repository.Module{ObjectFolders: c.repo.ObjectFolders}, lfs: c.usesLFS()}}
	for _, m := range c.repo.Modules() {
		all = append(all, objectLender{module: m})
	}
	n := 0
	for i := range all {
		for range all[i].module.ObjectFolders {
			all[i].mountPoints = append(all[i].mountPoints, filepath.Join("lent", strconv.Itoa(n), "objects"))
			n++
		}
	}
	return all
}

// borrow writes the alternates of a git folder: the mount points of LentObjects, then the real path
// of the first object folder. If git-lfs is in use, each mount point is also listed as an absolute
// path, because git-lfs does not support relative ones.
func (l objectLender) borrow(gitDir, seenAt string) error {
	own := filepath.Join(gitDir, filepath.FromSlash(l.module.Name), "objects")
	var alternates strings.Builder
	for _, below := range l.mountPoints {
		place := filepath.Join(gitDir, below)
		if err := os.MkdirAll(place, 0o700); err != nil {
			return err
		}
		relative, err := filepath.Rel(own, place)
		if err != nil {
			return err
		}
		fmt.Fprintln(&alternates, relative)
		if !l.lfs {
			continue
		}
		if err := os.MkdirAll(filepath.Join(gitDir, lfsMountPoint(below)), 0o700); err != nil {
			return err
		}
		fmt.Fprintln(&alternates, repository.QuoteAlternate(filepath.Join(seenAt, below)))
	}
	fmt.Fprintln(&alternates, repository.QuoteAlternate(filepath.Join(l.module.ObjectFolders[0], "objects")))
	return os.WriteFile(filepath.Join(own, "info", "alternates"), []byte(alternates.String()), 0o666)
}

// LentObjects returns the checkout's object folders, keyed by the mount points of a tree that
// commands see at dir.
func (c *Checkout) LentObjects(dir string) map[string]string {
	lent := map[string]string{}
	for _, l := range c.lenders() {
		for i, place := range l.mountPoints {
			lent[filepath.Join(dir, ".git", place)] = filepath.Join(l.module.ObjectFolders[i], "objects")
			if l.lfs {
				lent[filepath.Join(dir, ".git", lfsMountPoint(place))] = filepath.Join(l.module.ObjectFolders[i], "lfs", "objects")
			}
		}
	}
	return lent
}
