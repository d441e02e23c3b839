package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// treePath is the path of a checkout's private trees if there are no mount namespaces. One run has
// the path at a time; its setup, agent and checks use it in turn. So installed software that
// contains the path leads to the tree in use.
type treePath struct {
	dir      string   // contains the tree, the owner file, and a folder for each tree that was moved aside
	runDir   string   // the run directory
	lockFile *os.File // the open folder dir, locked
}

const (
	treesFolder = "trees" // next to the run directories
	ownerFile   = "owner" // names the run directory that a folder's tree belongs to
	idBytes     = 6       // bytes of a digest in names; the path should be short

	maxLockRetries = 100 // how often other runs may remove the folder while this one locks it
	foldersOfPath  = 3   // folders that a run may have made: of the checkout, of all trees, of all runs
)

// ClaimPath claims the private tree's path, which all runs of the checkout share. It moves another run's resumable
// tree aside and restores this run's own. It does nothing if the run has no private tree, if runs do not share
// the path, or if this run has it already.
func (s *Sandboxes) ClaimPath() error {
	if !s.Private() || s.AllowsConcurrent() || s.private.path != nil {
		return nil
	}
	runs, err := record.RunsPath(s.Environ.Get, "set HOME")
	if err != nil {
		return err
	}
	p := &treePath{dir: filepath.Join(runs, treesFolder, shortDigest(s.Root)), runDir: withoutLinks(s.Record.Path())}
	err = p.lock()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) { // the folder is read-only, full, or does not support locks
		if runs, err = record.TemporaryPath("set HOME"); err != nil {
			return err
		}
		p.dir = filepath.Join(runs, treesFolder, shortDigest(s.Root))
		err = p.lock()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return outcome.Stopf(outcome.InvalidInput, "checkout_in_use",
			"The checkout %s is in use: another run works in it, and without mount namespaces one run works at a time; wait until that has ended, or give each run a checkout of its own.", s.Root).Because(err)
	}
	if err != nil {
		return fmt.Errorf("take the path of the work tree: %w", err)
	}
	if err := p.takeOwnership(); err != nil {
		p.unlock()
		return fmt.Errorf("take the path of the work tree: %w", err)
	}
	s.private.path = p
	_ = DropAbandonedTrees(runs) // an error does not matter: the trees of checkouts no longer used, such as clones, stay a little longer
	return nil
}

// ReleaseTreePath lets other runs use the private tree's path.
func (s *Sandboxes) ReleaseTreePath() {
	if s.private.path == nil {
		return
	}
	s.private.path.unlock()
	s.private.path = nil
}

// unlock removes the path's folders if they are empty, and unlocks the path.
func (p *treePath) unlock() {
	if gate, err := p.lockAllPaths(); err == nil {
		defer gate.Close() // after the path is unlocked
		p.removeEmptyFolders()
	}
	_ = p.lockFile.Close()
}

// removeEmptyFolders removes the path's folders, innermost first, as long as they are empty.
func (p *treePath) removeEmptyFolders() {
	if p.owner() != "" {
		return
	}
	dir := p.dir
	for range foldersOfPath {
		if syscall.Rmdir(dir) != nil { // it has content, or is a link
			return
		}
		dir = filepath.Dir(dir)
	}
}

// shortDigest returns a short name for a path.
func shortDigest(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:idBytes])
}

// lock locks the path for a run. It returns EWOULDBLOCK while another run has it. It waits for
// other holders, which only rename a tree.
func (p *treePath) lock() error {
	gate, err := p.lockAllPaths()
	if err != nil {
		return err
	}
	p.lockFile, err = lockFolder(p.dir, syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Join(err, gate.Close())
}

// lockAllPaths locks the folder of all paths. The caller must close the file soon.
func (p *treePath) lockAllPaths() (*os.File, error) {
	return lockFolder(filepath.Dir(p.dir), syscall.LOCK_EX)
}

// ifUnlocked runs do if no run has the path, and does nothing otherwise. Runs that want the path
// wait meanwhile.
func (p *treePath) ifUnlocked(do func() error) error {
	gate, err := p.lockAllPaths()
	if err != nil {
		return err
	}
	defer gate.Close()
	folder, err := lockFolder(p.dir, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	return do()
}

// lockFolder makes and locks a folder, with a mode of flock(2). It tries again if another run removes the
// folder meanwhile.
func lockFolder(dir string, flockMode int) (*os.File, error) {
	for range maxLockRetries {
		if err := os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		folder, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(folder.Fd()), flockMode); err != nil {
			return nil, errors.Join(err, folder.Close())
		}
		lockedInfo, lockedErr := folder.Stat()
		currentInfo, err := os.Stat(dir)
		if lockedErr == nil && err == nil && os.SameFile(lockedInfo, currentInfo) {
			return folder, nil
		}
		folder.Close()
		if err := errors.Join(lockedErr, ignoreMissing(err)); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is removed each time that it is made", dir)
}

func (p *treePath) treeFolder() string { return filepath.Join(p.dir, "tree") }

// asidePath returns where a run's tree is while another run has the path.
func (p *treePath) asidePath(run string) string {
	return filepath.Join(p.dir, shortDigest(run), "tree")
}

// owner returns the directory of the run that the tree at the path belongs to, or "".
func (p *treePath) owner() string {
	raw, _ := os.ReadFile(filepath.Join(p.dir, ownerFile))
	return string(raw)
}

// takeOwnership makes this run the owner of the path. It moves a former owner's tree aside and restores
// this run's own.
func (p *treePath) takeOwnership() error {
	if owner := p.owner(); owner != "" && owner != p.runDir {
		killLeftProcesses(filepath.Join(owner, ProgramsFolder)) // the owner was killed, and its commands know the path
		if err := ignoreMissing(p.moveAside(owner)); err != nil {
			return err
		}
	}
	_ = p.removeAbandonedFolders() // what can't be removed is in nobody's way
	if err := os.WriteFile(filepath.Join(p.dir, ownerFile), []byte(p.runDir), 0o600); err != nil {
		return err
	}
	return p.restoreTree()
}

// moveAside moves a run's tree from the path to the run's own folder. If the run was removed or has a tree
// there already, it only frees the path.
func (p *treePath) moveAside(run string) error {
	to := p.asidePath(run)
	if _, err := os.Lstat(to); err == nil || isMissing(run) {
		return p.freePath()
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(to), ownerFile), []byte(run), 0o600); err != nil {
		return err
	}
	return os.Rename(p.treeFolder(), to)
}

// restoreTree moves this run's tree back to the path, if it was moved aside.
func (p *treePath) restoreTree() error {
	from := p.asidePath(p.runDir)
	if isMissing(from) {
		return nil
	}
	if err := p.freePath(); err != nil {
		return err
	}
	if err := os.Rename(from, p.treeFolder()); err != nil {
		return err
	}
	return sandbox.RemoveScratch(filepath.Dir(from))
}

// removeAbandonedFolders removes the trees of removed runs.
func (p *treePath) removeAbandonedFolders() (err error) {
	for _, folder := range p.abandonedFolders() {
		err = errors.Join(err, sandbox.RemoveScratch(folder))
	}
	return err
}

// abandonedFolders returns the folders of moved trees whose runs were removed.
func (p *treePath) abandonedFolders() (folders []string) {
	owners, _ := filepath.Glob(filepath.Join(p.dir, "*", ownerFile)) // the pattern is valid, so there is no error
	for _, name := range owners {
		if run, err := os.ReadFile(name); err == nil && isMissing(string(run)) { // an empty name belongs to nobody
			folders = append(folders, filepath.Dir(name))
		}
	}
	return folders
}

// ownerWasRemoved reports whether the tree at the path belongs to a removed run.
func (p *treePath) ownerWasRemoved() bool {
	owner := p.owner()
	return owner != "" && isMissing(owner)
}

// DropAbandonedTrees removes the work trees of removed runs. These trees are next to the run
// directories in runs. It skips checkouts that a run uses.
func DropAbandonedTrees(runs string) error {
	folders, err := filepath.Glob(filepath.Join(runs, treesFolder, "*"))
	for _, dir := range folders {
		p := &treePath{dir: dir}
		if len(p.abandonedFolders()) > 0 || p.ownerWasRemoved() {
			err = errors.Join(err, p.removeOwnerless(p.ownerWasRemoved))
		}
	}
	return err
}

// removeOwnerless removes trees of removed runs, and the tree at the path if isOwnerless returns true. It
// holds no lock while it deletes files: a starting run would find its checkout in use.
func (p *treePath) removeOwnerless(isOwnerless func() bool) error {
	err := p.ifUnlocked(func() error {
		if !isOwnerless() {
			return nil
		}
		if err := p.detachTree(); err != nil {
			return err
		}
		return ignoreMissing(os.Remove(filepath.Join(p.dir, ownerFile)))
	})
	return errors.Join(err, p.removeAbandonedFolders(), p.ifUnlocked(func() error {
		p.removeEmptyFolders()
		return nil
	}))
}

// hasTree reports whether this run's tree exists, at the path or aside.
func (p *treePath) hasTree() bool {
	return !isMissing(p.asidePath(p.runDir)) || p.owner() == p.runDir && !isMissing(p.treeFolder())
}

// removeTree removes this run's tree.
func (p *treePath) removeTree() error {
	err := sandbox.RemoveScratch(filepath.Dir(p.asidePath(p.runDir)))
	if p.owner() == p.runDir {
		err = errors.Join(err, p.freePath())
	}
	return err
}

// freePath removes the tree at the path. If that is impossible, such as for files of another user, the tree
// stays in an abandoned folder.
func (p *treePath) freePath() error {
	if err := p.detachTree(); err != nil {
		return err
	}
	_ = p.removeAbandonedFolders()
	return nil
}

// detachTree moves the tree at the path to a new folder that belongs to no run. abandonedFolders returns
// that folder.
func (p *treePath) detachTree() error {
	if isMissing(p.treeFolder()) {
		return nil
	}
	away, err := os.MkdirTemp(p.dir, "away-")
	if err == nil {
		err = os.WriteFile(filepath.Join(away, ownerFile), nil, 0o600)
	}
	if err == nil {
		err = os.Rename(p.treeFolder(), filepath.Join(away, "tree"))
	}
	return err
}

// removeTreeAtEnd removes the tree, and frees its path for other runs.
func (p *treePath) removeTreeAtEnd() error {
	err := p.removeTree()
	if p.owner() == p.runDir {
		err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(p.dir, ownerFile))))
	}
	return err
}

// isMissing reports whether a path does not exist.
func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
