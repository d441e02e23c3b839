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

// treePath is the path of a checkout's private trees without mounts. One run has it at a time;
// setup, agent and checks use it in turn. So software installed by that path leads to the tree in
// use.
type treePath struct {
	dir      string   // has the tree, the file with its owner, and a folder for each tree that was moved away
	runDir   string   // the run directory
	lockFile *os.File // dir, locked
}

const (
	treesFolder = "trees" // beside the run directories
	ownerFile   = "owner" // of a folder with a tree: the directory of the run that the tree belongs to
	idBytes     = 6       // of the digests in names: the path is to be short

	maxLockRetries = 100 // times that other runs may remove the folder while this one locks it
	foldersOfPath  = 3   // that a run may have made: of the checkout, of all trees, of all runs
)

// claimTreePath takes the private tree's path, shared by all runs of the checkout, for this run. It
// moves another run's resumable tree away and restores this run's own.
func (s *Sandboxes) claimTreePath() error {
	if !s.Private() || s.AllowsConcurrent() || s.treePath != nil {
		return nil
	}
	runs, err := record.RunsPath(s.Environ.Get)
	if err != nil {
		return err
	}
	p := &treePath{dir: filepath.Join(runs, treesFolder, digest(s.Root)), runDir: resolved(s.Record.Path())}
	err = p.lock()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) { // it is read-only, full, or knows no locks
		if runs, err = record.TemporaryPath(); err != nil {
			return err
		}
		p.dir = filepath.Join(runs, treesFolder, digest(s.Root))
		err = p.lock()
	}
	if err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return outcome.Stopf(outcome.InvalidInput, "checkout_in_use",
				"The checkout %s is in use: another run works in it, and without mount namespaces one run works at a time; wait until that has ended, or give each run a checkout of its own.", s.Root).Because(err)
		}
		return fmt.Errorf("take the path of the work tree: %w", err)
	}
	if err := p.claim(); err != nil {
		p.release()
		return fmt.Errorf("take the path of the work tree: %w", err)
	}
	s.treePath = p
	_ = DropAbandonedTrees(runs) // of checkouts that nobody works in again, such as clones
	return nil
}

// ReleaseTreePath lets other runs have the path of the private tree.
func (s *Sandboxes) ReleaseTreePath() {
	if s.treePath == nil {
		return
	}
	s.treePath.release()
	s.treePath = nil
}

// release removes the path's empty folders and unlocks it.
func (p *treePath) release() {
	if gate, err := p.lockAllPaths(); err == nil {
		p.removeEmpty()
		defer gate.Close()
	}
	_ = p.lockFile.Close()
}

// removeEmpty removes the folders of the path that are empty.
func (p *treePath) removeEmpty() {
	for dir, n := p.dir, 0; p.owner() == "" && n < foldersOfPath && syscall.Rmdir(dir) == nil; n++ { // it fails where something is in it, and on a link
		dir = filepath.Dir(dir)
	}
}

func digest(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:idBytes])
}

// lock locks the path for a run. It fails with EWOULDBLOCK while a run holds the lock. For others,
// which do no more than rename a tree, it waits.
func (p *treePath) lock() error {
	gate, err := p.lockAllPaths()
	if err != nil {
		return err
	}
	p.lockFile, err = lockFolder(p.dir, syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Join(err, gate.Close())
}

// lockAllPaths locks the folder of all paths, for a moment.
func (p *treePath) lockAllPaths() (*os.File, error) {
	return lockFolder(filepath.Dir(p.dir), syscall.LOCK_EX)
}

// ifUnlocked does something at a path that no run has, and nothing otherwise. Runs wait at the gate meanwhile.
func (p *treePath) ifUnlocked(do func() error) error {
	gate, err := p.lockAllPaths()
	if err != nil {
		return err
	}
	defer gate.Close()
	held, err := lockFolder(p.dir, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	return do()
}

// lockFolder makes and locks a folder, which other runs may remove meanwhile.
func lockFolder(dir string, how int) (*os.File, error) {
	for range maxLockRetries {
		err := os.MkdirAll(dir, 0o700)
		var held *os.File
		if err == nil {
			held, err = os.Open(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(held.Fd()), how); err != nil {
			return nil, errors.Join(err, held.Close())
		}
		mine, failed := held.Stat()
		there, err := os.Stat(dir)
		if failed == nil && err == nil && os.SameFile(mine, there) {
			return held, nil
		}
		held.Close()
		if err := errors.Join(failed, ignoreMissing(err)); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is removed each time that it is made", dir)
}

func (p *treePath) tree() string { return filepath.Join(p.dir, "tree") }

// asidePath returns the place of a run's tree while another one has the path.
func (p *treePath) asidePath(run string) string { return filepath.Join(p.dir, digest(run), "tree") }

// owner returns the directory of the run with the path, or "".
func (p *treePath) owner() string {
	raw, _ := os.ReadFile(filepath.Join(p.dir, ownerFile))
	return string(raw)
}

func (p *treePath) claim() error {
	if owner := p.owner(); owner != "" && owner != p.runDir {
		killLeftProcesses(filepath.Join(owner, ProgramsFolder)) // it was killed, and they know the path
		if err := ignoreMissing(p.moveAside(owner)); err != nil {
			return err
		}
	}
	_ = p.dropAbandoned() // what cannot be removed is in nobody's way
	if err := os.WriteFile(filepath.Join(p.dir, ownerFile), []byte(p.runDir), 0o600); err != nil {
		return err
	}
	return p.restoreTree()
}

// moveAside moves a run's tree away. If it has moved already, it removes a check's tree from the
// path.
func (p *treePath) moveAside(run string) error {
	to := p.asidePath(run)
	if _, err := os.Lstat(to); err == nil || missing(run) {
		return p.freePath()
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(to), ownerFile), []byte(run), 0o600); err != nil {
		return err
	}
	return os.Rename(p.tree(), to)
}

// restoreTree moves the tree of the run back to the path, if it was moved away.
func (p *treePath) restoreTree() error {
	from := p.asidePath(p.runDir)
	if missing(from) {
		return nil
	}
	if err := p.freePath(); err != nil {
		return err
	}
	if err := os.Rename(from, p.tree()); err != nil {
		return err
	}
	return sandbox.RemoveScratch(filepath.Dir(from))
}

// dropAbandoned removes trees of removed runs.
func (p *treePath) dropAbandoned() (err error) {
	for _, folder := range p.abandoned() {
		err = errors.Join(err, sandbox.RemoveScratch(folder))
	}
	return err
}

// abandoned returns the folders of moved trees of removed runs.
func (p *treePath) abandoned() (folders []string) {
	owners, _ := filepath.Glob(filepath.Join(p.dir, "*", ownerFile)) // the pattern is a good one
	for _, name := range owners {
		if run, err := os.ReadFile(name); err == nil && missing(string(run)) { // or nobody's
			folders = append(folders, filepath.Dir(name))
		}
	}
	return folders
}

// ownerIsGone reports whether the tree at the path belongs to a removed run.
func (p *treePath) ownerIsGone() bool {
	owner := p.owner()
	return owner != "" && missing(owner)
}

// DropAbandonedTrees removes work trees beside the run directories below runs whose runs were
// removed. It skips checkouts in use by a run.
func DropAbandonedTrees(runs string) error {
	folders, err := filepath.Glob(filepath.Join(runs, treesFolder, "*"))
	for _, dir := range folders {
		p := &treePath{dir: dir}
		if len(p.abandoned()) > 0 || p.ownerIsGone() {
			err = errors.Join(err, p.removeOwnerless(p.ownerIsGone))
		}
	}
	return err
}

// removeOwnerless removes trees without an owner, also one at the path. It holds no lock while it removes
// files, so no run finds its checkout in use because of it.
func (p *treePath) removeOwnerless(nobodys func() bool) error {
	err := p.ifUnlocked(func() error {
		if !nobodys() {
			return nil
		}
		if err := p.moveAway(); err != nil {
			return err
		}
		return ignoreMissing(os.Remove(filepath.Join(p.dir, ownerFile)))
	})
	return errors.Join(err, p.dropAbandoned(), p.ifUnlocked(func() error {
		p.removeEmpty()
		return nil
	}))
}

// hasTree reports whether the run's tree exists.
func (p *treePath) hasTree() bool {
	return !missing(p.asidePath(p.runDir)) || p.owner() == p.runDir && !missing(p.tree())
}

// removeTree removes the tree of the run.
func (p *treePath) removeTree() error {
	err := sandbox.RemoveScratch(filepath.Dir(p.asidePath(p.runDir)))
	if p.owner() == p.runDir {
		err = errors.Join(err, p.freePath())
	}
	return err
}

// freePath makes the path free. A tree that cannot be removed, since it has files of another user, stays moved away.
func (p *treePath) freePath() error {
	if err := p.moveAway(); err != nil {
		return err
	}
	_ = p.dropAbandoned()
	return nil
}

// moveAway moves the tree at the path to where abandoned finds it.
func (p *treePath) moveAway() error {
	if missing(p.tree()) {
		return nil
	}
	away, err := os.MkdirTemp(p.dir, "away-")
	if err == nil {
		err = os.WriteFile(filepath.Join(away, ownerFile), nil, 0o600)
	}
	if err == nil {
		err = os.Rename(p.tree(), filepath.Join(away, "tree"))
	}
	return err
}

// removeTreeAtEnd is drop at the end of a run.
func (p *treePath) removeTreeAtEnd() error {
	err := p.removeTree()
	if p.owner() == p.runDir {
		err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(p.dir, ownerFile))))
	}
	return err
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
