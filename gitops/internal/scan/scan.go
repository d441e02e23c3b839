// Package scan compares the files of a work tree with an index by their metadata, and finds untracked
// files. It reads folders and ignore files, but no other file. It follows no links.
package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/text/unicode/norm"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Tree is the work tree to scan: a checkout itself, a layer above it, or a copy.
type Tree struct {
	Repo    *repository.Repository
	Dir     *os.Root
	Upper   *os.Root        // the upper folder of the layer that Dir shows, with the only names to look at; nil to look at all
	GitDir  string          // in an overlay, the folder that commands see as .git; "" if it is in Dir
	Ignores []rules.Ignore  // rules from outside the tree; later ones have priority
	Skip    map[string]bool // paths to leave out, with everything below them
}

// openPath returns a path of the work tree that is valid in this process, and a function that releases
// it. An overlay may be mounted where this process cannot reach it by name, so the path goes through
// an open file.
func (t Tree) openPath() (path string, release func() error, err error) {
	if t.GitDir == "" { // no overlay
		return t.Dir.Name(), func() error { return nil }, nil
	}
	f, err := t.Dir.Open(".")
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())), f.Close, nil
}

// Found is a difference from the index that a scan found.
type Found struct {
	Kind Kind
	Path string      // without a final slash, also for a folder
	Dir  bool        // a folder, and stands for everything in it
	info fs.FileInfo // of an untracked file or link
	stat index.Stat  // of an untracked or ignored name
}

// Stat returns the metadata of an untracked file or an ignored name, without the fields that can
// change while the content stays the same. Zero otherwise.
func (f Found) Stat() index.Stat { return stableStat(f.stat) }

// Tracked reports whether the index has the path, or files below it.
func (f Found) Tracked() bool {
	return f.Kind == Deleted || f.Kind == Submodule || f.Kind == Unreadable
}

type Kind uint8

const (
	Deleted     Kind = iota // tracked, but deleted or replaced by something git cannot record
	Submodule               // a submodule that is on another commit than in the index
	Untracked               // a file or link that is neither tracked nor ignored
	Ignored                 // a file, link or whole folder that is ignored
	Repository              // an untracked folder that is a repository of its own
	InvalidName             // a name that must never be in a tree, like .git
	TooDeep                 // untracked, with a path that is too long or too deep
	Unreadable              // a folder with tracked files that this process may not read
)

// Scan compares a work tree with an index by stat data, and finds untracked files. It reads folders
// and ignore files, but no other file. Several folders are scanned in parallel.
type Scan struct {
	tree     Tree
	settings *repository.Settings
	index    *index.File
	report   func(Found) // called by one goroutine at a time, in no particular order

	mu               sync.Mutex
	parallelErr      error           // errors of folders that other goroutines scanned
	Suspects         []Suspect       // tracked files whose content must be compared
	AttributeFolders map[string]bool // folders that may have a .gitattributes file; keys are "" or end with a slash
	folders          Folders         // all that Run opened, or tried to open
	goroutineSlots   chan struct{}   // one slot for each folder that another goroutine may scan
	spare            [][]listedName  // lists of scanned folders, for reuse
}

// New prepares a scan of a tree against ix. Run starts it and calls report for what it finds.
func New(t Tree, ix *index.File, report func(Found)) *Scan {
	return &Scan{
		tree: t, settings: &t.Repo.Settings, index: ix, report: report,
		AttributeFolders: map[string]bool{}, folders: Folders{},
		goroutineSlots: make(chan struct{}, runtime.GOMAXPROCS(0)-1),
	}
}

// Run scans the work tree. Afterwards, Suspects lists the tracked files whose content must be
// compared.
func (s *Scan) Run(ctx context.Context) error {
	root, err := s.tree.Dir.Lstat(".")
	if err != nil {
		return fmt.Errorf("list the work tree: %w", err)
	}
	s.folders[""] = index.StatOf(root)
	err = s.scanFolder(ctx, s.tree.Dir, folderRange{hi: s.index.Len(), ignores: s.tree.Ignores, upper: s.changedFolder()})
	return errors.Join(err, s.parallelErr)
}

// withLock runs do while no other goroutine of the scan runs such a function.
func (s *Scan) withLock(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *Scan) reportFound(f Found) { s.withLock(func() { s.report(f) }) }

// folderRange is a folder during a scan: its path ("" or with a final slash), its range of index entries,
// and the ignore rules for it.
type folderRange struct {
	path    string
	lo, hi  int
	ignores []rules.Ignore
	ignored bool     // the folder is ignored, so all untracked files in it are, too
	upper   *os.Root // the layer's folder, which has the only names to look at; nil to look at all
}

// scanFolder scans one open folder and the folders below it.
func (s *Scan) scanFolder(ctx context.Context, dir *os.Root, at folderRange) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	names, changed, err := s.listNames(ctx, dir, at)
	if err != nil {
		return err
	}
	defer s.withLock(func() { s.spare = append(s.spare, names[:0]) })
	if _, has := s.findName(names, ".gitattributes"); has || at.upper != nil {
		s.withLock(func() { s.AttributeFolders[at.path] = true })
	}
	if !at.ignored {
		at.ignores = s.withIgnoreFile(dir, names, at)
	}
	seen, err := s.compareTracked(ctx, dir, names, changed, at)
	if err != nil {
		return err
	}
	return s.reportUntrackedNames(ctx, dir, names, seen, at)
}

// listedName is a folder's entry with its name in the index and on disk.
type listedName struct {
	inGit  string
	onDisk string
	Lstat
}

// listedAtOnce is the number of entries read from a folder before the context is checked again.
const listedAtOnce = 4096

// listNames returns the names in a folder to look at, sorted. In a layer, changed has all names of the
// upper folder, including deleted ones; otherwise it is nil.
func (s *Scan) listNames(ctx context.Context, dir *os.Root, at folderRange) (names []listedName, changed []string, err error) {
	if at.upper != nil {
		return s.listChanged(ctx, dir, at)
	}
	names, err = s.listAll(ctx, dir, at)
	return names, nil, err
}

// listAll returns all names in a folder, sorted, without skipped ones.
func (s *Scan) listAll(ctx context.Context, dir *os.Root, at folderRange) ([]listedName, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", at.path, err)
	}
	defer f.Close()
	var names []listedName
	s.withLock(func() {
		if last := len(s.spare) - 1; last >= 0 {
			names, s.spare = s.spare[last], s.spare[:last]
		}
	})
	for {
		listed, err := f.Readdirnames(listedAtOnce)
		if err == nil {
			names, err = s.addNames(dir, int(f.Fd()), names, listed, at)
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(names, func(a, b listedName) int { return strings.Compare(a.inGit, b.inGit) })
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("list %q: %w", at.path, err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// addNames adds the listed names to names, with their metadata. dir and folder are the same open
// folder.
func (s *Scan) addNames(dir *os.Root, folder int, names []listedName, listed []string, at folderRange) ([]listedName, error) {
	names = slices.Grow(names, len(listed))
	for _, disk := range listed {
		n := listedName{inGit: disk, onDisk: disk}
		if s.settings.Precompose {
			if composed := norm.NFC.String(disk); composed != disk && findsOnDisk(dir, composed) {
				n.inGit = composed
			}
		}
		if len(s.tree.Skip) > 0 && s.tree.Skip[s.settings.SameName(at.path+n.inGit)] {
			continue
		}
		var err error
		if n.Lstat, err = lstatIn(folder, disk); errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at %q: %w", at.path+disk, err)
		}
		names = append(names, n)
	}
	return names, nil
}

// withIgnoreFile returns the ignore rules for a folder: those of at, and those of its own
// .gitignore.
func (s *Scan) withIgnoreFile(dir *os.Root, names []listedName, at folderRange) []rules.Ignore {
	if _, ok := findExactName(names, ".gitignore"); !ok && at.upper == nil {
		return at.ignores
	}
	data, err := regularfile.ReadIn(dir, ".gitignore")
	if err != nil {
		return at.ignores // unreadable, or a link: git does not follow a link to ignore rules either
	}
	list := rules.ParseIgnore(data, at.path)
	if list.Empty() {
		return at.ignores
	}
	return append(slices.Clip(at.ignores), list)
}

// findExactName returns the position of a name in the sorted names.
func findExactName(names []listedName, git string) (int, bool) {
	return slices.BinarySearchFunc(names, git, func(n listedName, git string) int { return strings.Compare(n.inGit, git) })
}

// findName is findExactName, but also accepts a match in another case if the repository ignores case.
func (s *Scan) findName(names []listedName, git string) (int, bool) {
	i, ok := findExactName(names, git)
	if ok || !s.settings.IgnoreCase {
		return i, ok
	}
	i = slices.IndexFunc(names, func(n listedName) bool { return strings.EqualFold(n.inGit, git) })
	return i, i >= 0
}

// findsOnDisk reports whether the file system finds a name. It asks the file system, because
// core.ignoreCase and core.precomposeUnicode may have been set on another machine.
func findsOnDisk(dir *os.Root, name string) bool {
	_, err := dir.Lstat(name)
	return err == nil
}

// compareTracked compares the folder's index entries with its names. seen marks the names that are in the
// index. It returns after all folders below were scanned.
func (s *Scan) compareTracked(ctx context.Context, dir *os.Root, names []listedName, changed []string, at folderRange) (seen []bool, err error) {
	seen = make([]bool, len(names))
	var aside sync.WaitGroup
	defer aside.Wait()
	for _, part := range s.changedRanges(at, changed) {
		at.lo, at.hi = part.lo, part.hi
		if err := s.compareRange(ctx, &aside, dir, names, seen, at); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// compareRange compares a range of a folder's index entries with its names, and scans the folders
// below. It marks indexed names in seen.
func (s *Scan) compareRange(ctx context.Context, aside *sync.WaitGroup, dir *os.Root, names []listedName, seen []bool, at folderRange) (err error) {
	next := 0 // both lists are sorted, so the next entry probably has this name
	for i := at.lo; i < at.hi; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rest := s.index.Path(i)[len(at.path):]
		if next < len(names) && names[next].inGit == string(rest) && s.provenUnchanged(names[next].Lstat, i) {
			seen[next] = true
			next++
			i++
			continue
		}
		part, _, deeper := strings.Cut(string(rest), "/")
		n, isSimilar := s.findName(names, part)
		if isSimilar {
			next = n + 1
		}
		there := isSimilar && (names[n].inGit == part || findsOnDisk(dir, part)) // otherwise only its case was changed, so the old name counts as deleted
		if !deeper {
			if there {
				seen[n] = !names[n].mode.IsDir() || s.index.Mode(i) == index.Gitlink
			}
			if err := s.compareFile(dir, names, n, there, i); err != nil {
				return err
			}
			i++
			continue
		}
		below := at
		below.path = at.path + part + "/"
		below.lo, below.hi = s.index.EntriesBelow(below.path, i, at.hi)
		if there && names[n].mode.IsDir() {
			seen[n] = true
			err = s.enterInParallel(ctx, aside, dir, names[n], below)
		} else {
			s.reportAllDeleted(below)
		}
		if err != nil {
			return err
		}
		i = below.hi
	}
	return nil
}

// enterInParallel scans a folder in another goroutine if one is free, or else in this one.
func (s *Scan) enterInParallel(ctx context.Context, aside *sync.WaitGroup, dir *os.Root, n listedName, below folderRange) error {
	select {
	case s.goroutineSlots <- struct{}{}:
		aside.Go(func() {
			defer func() { <-s.goroutineSlots }()
			err := s.enterTracked(ctx, dir, n, below)
			s.withLock(func() { s.parallelErr = errors.Join(s.parallelErr, err) })
		})
		return nil
	default:
		return s.enterTracked(ctx, dir, n, below)
	}
}

// enterTracked scans a folder with tracked files. If the folder may not be read, it reports that instead.
func (s *Scan) enterTracked(ctx context.Context, dir *os.Root, n listedName, below folderRange) error {
	path := strings.TrimSuffix(below.path, "/")
	below.ignored = below.ignored || s.ignores(below.ignores, path, true)
	s.recordFolder(below.path, n)
	err := s.openAndScan(ctx, dir, n, below)
	if errors.Is(err, fs.ErrPermission) {
		s.reportFound(Found{Kind: Unreadable, Path: path, Dir: true})
		return nil
	}
	return err
}

// openAndScan opens a folder and its upper folder, if any, and scans it. If the folder was removed meanwhile, it
// reports the files as deleted.
func (s *Scan) openAndScan(ctx context.Context, dir *os.Root, n listedName, below folderRange) error {
	sub, err := regularfile.OpenFolder(dir, n.onDisk)
	if regularfile.Absent(err) { // removed meanwhile
		s.reportAllDeleted(below)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", below.path, err)
	}
	defer sub.Close()
	below.upper = openUpperSubfolder(below.upper, n.onDisk)
	defer closeUpper(below.upper)
	return s.scanFolder(ctx, sub, below)
}

// reportAllDeleted reports the index entries below a folder as deleted.
func (s *Scan) reportAllDeleted(at folderRange) {
	for i := at.lo; i < at.hi; i++ {
		s.reportDeleted(s.index.Entry(i))
	}
}

// reportDeleted reports a deleted file, unless git was told to ignore its state or the path is
// skipped.
func (s *Scan) reportDeleted(e index.Entry) {
	isIgnored := e.SkipWorktree || e.AssumeValid
	if isIgnored || s.settings.Covers(s.tree.Skip, e.Path) {
		return
	}
	s.reportFound(Found{Kind: Deleted, Path: e.Path})
}

// compareFile compares the index entry i with the file names[n]. there is false if there is no such file. It
// reports a missing file as deleted. It adds a file that may have changed to the suspects.
func (s *Scan) compareFile(dir *os.Root, names []listedName, n int, there bool, i int) error {
	e := s.index.Entry(i)
	if !there {
		s.reportDeleted(e)
		return nil
	}
	if e.SkipWorktree || e.AssumeValid {
		return nil
	}
	if e.Mode == index.Gitlink && names[n].mode.IsDir() {
		s.compareSubmodule(dir, names[n], e)
		return nil
	}
	if s.provenUnchanged(names[n].Lstat, i) {
		return nil
	}
	return s.suspectEntry(dir, names[n], i)
}

// provenUnchanged reports whether a file's metadata proves that it equals entry i of the index.
func (s *Scan) provenUnchanged(now Lstat, i int) bool {
	e := s.index.Metadata(i)
	return e.Stage == 0 && !e.IntentToAdd && ModeOf(s.settings, now.mode, e.Mode) == e.Mode &&
		Unchanged(s.settings, e.Stat, now, s.index.Modified)
}

// suspectEntry adds a file to the suspects, or reports it as deleted if git could not record what
// is in its place.
func (s *Scan) suspectEntry(dir *os.Root, n listedName, i int) error {
	e := s.index.Entry(i)
	info, err := dir.Lstat(n.onDisk)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at %q: %w", e.Path, err)
	}
	// The scan did not enter a folder here. A new folder's files would be missing in the result.
	if err == nil && info.IsDir() && !n.mode.IsDir() {
		return fmt.Errorf("%q became a folder while the work tree was read; run again when nothing else writes there", e.Path)
	}
	mode := uint32(0)
	if err == nil {
		mode = ModeOf(s.settings, info.Mode(), e.Mode)
	}
	if mode == 0 {
		s.reportDeleted(e)
		return nil
	}
	one := Suspect{Path: e.Path, Info: info, Mode: mode, Entry: i}
	if e.Mode != index.Gitlink {
		one.Old = e.ID
	}
	s.withLock(func() { s.Suspects = append(s.Suspects, one) })
	return nil
}

// compareSubmodule reports a submodule that is checked out at another commit.
func (s *Scan) compareSubmodule(dir *os.Root, n listedName, e index.Entry) {
	if _, err := dir.Lstat(n.onDisk + "/.git"); err != nil {
		return // not checked out: nothing in it can have changed
	}
	if !s.tree.submoduleAt(e.Path, e.ID) {
		s.reportFound(Found{Kind: Submodule, Path: e.Path})
	}
}

// submoduleAt reports whether the submodule at path is checked out at commit id. It looks for the
// repository first in the layer's git folder, then in the work tree.
func (t Tree) submoduleAt(path string, id plumbing.Hash) bool {
	if named, is := pathname.Below(t.Repo.GitDir, t.Repo.NamedBy(t.Dir, path+"/.git")); is && t.GitDir != "" {
		dir := filepath.Join(t.GitDir, named)
		if _, now, err := (repository.Layout{GitDir: dir, CommonDir: dir}).Head(); err == nil {
			return now == id
		}
	}
	root, done, err := t.openPath()
	if err != nil {
		return false
	}
	defer done()
	gitDir, ok := repository.GitDirOf(filepath.Join(root, filepath.FromSlash(path)))
	if !ok {
		return false
	}
	_, now, err := repository.Layout{GitDir: gitDir, CommonDir: gitDir}.Head()
	return err == nil && now == id
}

// ignores reports whether the rules ignore a path. The last list has priority, as in git.
func (s *Scan) ignores(lists []rules.Ignore, path string, isDir bool) bool {
	for _, list := range slices.Backward(lists) {
		if ignored, decided := list.Decide(path, isDir, s.settings.IgnoreCase); decided {
			return ignored
		}
	}
	return false
}

// Unchanged reports whether stat data proves that a file did not change. written is the time of the
// index: a file that is not older may have been changed again within the same clock tick.
func Unchanged(s *repository.Settings, known index.Stat, file Lstat, written time.Time) bool {
	now := file.stat
	if known.MtimeSec != now.MtimeSec || known.Size != now.Size {
		return false
	}
	if !s.MinimalStat && !sameDetails(s, known, now) {
		return false
	}
	return file.modifiedAt().Before(written)
}

// sameDetails compares the stat fields that core.checkStat=minimal ignores. A time that was stored
// without nanoseconds is compared in seconds.
func sameDetails(s *repository.Settings, known, now index.Stat) bool {
	if known.UID != now.UID || known.GID != now.GID || known.Ino != now.Ino {
		return false
	}
	if known.MtimeNsec != 0 && known.MtimeNsec != now.MtimeNsec {
		return false
	}
	if !s.TrustCtime {
		return true
	}
	return known.CtimeSec == now.CtimeSec && (known.CtimeNsec == 0 || known.CtimeNsec == now.CtimeNsec)
}

// ModeOf returns git's mode for a file, or 0 for folders, sockets, devices and pipes. known is the
// mode in the index, or 0. It is used where the file system cannot show links or permissions.
func ModeOf(s *repository.Settings, mode fs.FileMode, known uint32) uint32 {
	switch {
	case mode&fs.ModeSymlink != 0:
		return index.Symlink
	case !mode.IsRegular():
		return 0
	case !s.Symlinks && known == index.Symlink:
		return known
	case !s.FileMode && (known == index.Regular || known == index.Executable):
		return known
	case s.FileMode && mode&0o100 != 0:
		return index.Executable
	}
	return index.Regular
}
