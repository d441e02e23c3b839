package worktree

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

// Found is a difference from the index seen by a scan.
type Found struct {
	Kind Kind
	Path string      // folders without a slash at the end
	Dir  bool        // a folder, with all that is in it
	info fs.FileInfo // of a file or link that is untracked
	stat index.Stat  // of one that is untracked or ignored
}

// Stat returns the metadata of an untracked file or an ignored name, without the fields that change
// while the content does not. It is zero for all others.
func (f Found) Stat() index.Stat { return stableStat(f.stat) }

type Kind uint8

const (
	Deleted     Kind = iota // tracked and gone, or something git cannot record stands there
	Submodule               // tracked, a submodule that is on another commit
	Untracked               // a file or link that is neither tracked nor ignored
	Ignored                 // a file, link or whole folder that is ignored
	Repository              // an untracked folder that is a repository of its own
	InvalidName             // a name that must never get into a tree
	TooDeep                 // untracked, and nothing that git could check out
	Unreadable              // a folder with tracked files that may not be read
)

type Extent uint8

const (
	OnlyTracked   Extent = iota // tracked files that changed
	WithUntracked               // and what is neither tracked nor ignored
	WithIgnored                 // and what is ignored
)

// Scan compares a work tree with an index by stat data and lists untracked files. It reads folders
// and ignore files only, one folder at a time.
type Scan struct {
	work     *Worktree
	settings *repository.Settings
	index    *index.File
	skip     map[string]bool
	extent   Extent
	report   func(Found) // never called twice at a time; in no order

	mu         sync.Mutex
	failed     error           // of folders that were gone into aside
	Suspects   []Suspect       // tracked files whose content has to be compared
	attributes map[string]bool // folders with attributes: "" or ending with a slash
	helpers    chan struct{}   // one place for each folder that may be gone into aside
}

func (w *Worktree) Scan(ix *index.File, e Extent, report func(Found)) *Scan {
	return &Scan{
		work: w, settings: &w.repo.Settings, index: ix, skip: w.skippedPaths(), extent: e, report: report,
		attributes: map[string]bool{},
		helpers:    make(chan struct{}, runtime.GOMAXPROCS(0)-1),
	}
}

func (s *Scan) Run(ctx context.Context) error {
	err := s.folder(ctx, s.work.dir, place{hi: s.index.Len(), ignores: s.work.ignores, upper: s.changedFolder()})
	return errors.Join(err, s.failed)
}

// locked serialises reports of folders visited in parallel.
func (s *Scan) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *Scan) reportFound(f Found) { s.locked(func() { s.report(f) }) }

// place is a visited folder: its path ("" or with a final slash), index range and ignore patterns.
type place struct {
	path    string
	lo, hi  int
	ignores []rules.Ignore
	ignored bool     // the folder itself is ignored, and with it all that is not tracked
	upper   *os.Root // has the only names that are looked at; nil: all are
}

func (s *Scan) folder(ctx context.Context, dir *os.Root, at place) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	names, changed, err := s.list(ctx, dir, at)
	if err != nil {
		return err
	}
	if _, has := find(names, ".gitattributes", s.settings.IgnoreCase); has || at.upper != nil {
		s.locked(func() { s.attributes[at.path] = true })
	}
	if s.extent != OnlyTracked && !at.ignored {
		at.ignores = s.withIgnoreFile(dir, names, at)
	}
	seen, err := s.tracked(ctx, dir, names, changed, at)
	if err != nil || s.extent == OnlyTracked {
		return err
	}
	return s.untrackedIn(ctx, dir, names, seen, at)
}

// name is a folder's entry with its name in the index and on disk.
type name struct {
	git  string
	disk string
	lstat
}

// listedAtOnce is how many entries of a folder are read between two looks at the
// context.
const listedAtOnce = 4096

// list returns a folder's relevant names, sorted. In a layer, changed has all names of the upper
// folder, including removed ones.
func (s *Scan) list(ctx context.Context, dir *os.Root, at place) (names []name, changed []string, err error) {
	if at.upper != nil {
		return s.listChanged(ctx, dir, at)
	}
	names, err = s.listAll(ctx, dir, at)
	return names, nil, err
}

func (s *Scan) listAll(ctx context.Context, dir *os.Root, at place) ([]name, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", at.path, err)
	}
	defer f.Close()
	var names []name
	for {
		listed, err := f.Readdirnames(listedAtOnce)
		if err == nil {
			names, err = s.named(dir, int(f.Fd()), names, listed, at)
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.git, b.git) })
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("list %q: %w", at.path, err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// named adds listed names of a folder to its names. dir and folder are the same open folder.
func (s *Scan) named(dir *os.Root, folder int, names []name, listed []string, at place) ([]name, error) {
	names = slices.Grow(names, len(listed))
	for _, disk := range listed {
		n := name{git: disk, disk: disk}
		if s.settings.Precompose {
			if composed := norm.NFC.String(disk); composed != disk && findsOnDisk(dir, composed) {
				n.git = composed
			}
		}
		if len(s.skip) > 0 && s.skip[s.settings.SameName(at.path+n.git)] {
			continue
		}
		var err error
		if n.lstat, err = lstatIn(folder, disk); errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at %q: %w", at.path+disk, err)
		}
		names = append(names, n)
	}
	return names, nil
}

func (s *Scan) withIgnoreFile(dir *os.Root, names []name, at place) []rules.Ignore {
	if _, ok := find(names, ".gitignore", false); !ok && at.upper == nil {
		return at.ignores
	}
	data, err := regularfile.ReadIn(dir, ".gitignore")
	if err != nil {
		return at.ignores // git does not follow a link here either
	}
	list := rules.ParseIgnore(data, at.path)
	if list.Empty() {
		return at.ignores
	}
	return append(slices.Clip(at.ignores), list)
}

// find looks name up in names. With fold another case will do when there is
// no exact match.
func find(names []name, git string, fold bool) (int, bool) {
	i, ok := slices.BinarySearchFunc(names, git, func(n name, git string) int { return strings.Compare(n.git, git) })
	if ok || !fold {
		return i, ok
	}
	i = slices.IndexFunc(names, func(n name) bool { return strings.EqualFold(n.git, git) })
	return i, i >= 0
}

// findsOnDisk reports whether the file system finds a name. The settings about equal names may come from
// another machine.
func findsOnDisk(dir *os.Root, name string) bool {
	_, err := dir.Lstat(name)
	return err == nil
}

// tracked visits the index entries in this folder and marks their names in seen.
func (s *Scan) tracked(ctx context.Context, dir *os.Root, names []name, changed []string, at place) (seen []bool, err error) {
	seen = make([]bool, len(names))
	var aside sync.WaitGroup
	defer aside.Wait()
	for _, part := range s.spans(at, changed) {
		at.lo, at.hi = part.lo, part.hi
		if err := s.trackedIn(ctx, &aside, dir, names, seen, at); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// trackedIn compares the index entries of a folder with the names in it, and enters the folders below. It
// marks in seen the names that the index has.
func (s *Scan) trackedIn(ctx context.Context, aside *sync.WaitGroup, dir *os.Root, names []name, seen []bool, at place) (err error) {
	next := 0 // index of the name that is probably the next entry's, as both are sorted
	for i := at.lo; i < at.hi; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rest := s.index.Path(i)[len(at.path):]
		if next < len(names) && names[next].git == string(rest) && s.provenUnchanged(names[next], i) {
			seen[next] = true
			next++
			i++
			continue
		}
		part, _, deeper := strings.Cut(string(rest), "/")
		n, there := find(names, part, s.settings.IgnoreCase)
		if there {
			next = n + 1
		}
		there = there && (names[n].git == part || findsOnDisk(dir, part)) // else it is renamed, in its case alone
		if !deeper {
			if there {
				seen[n] = !names[n].mode.IsDir() || s.index.Mode(i) == index.Gitlink
			}
			if err := s.trackedFile(dir, names, n, there, i); err != nil {
				return err
			}
			i++
			continue
		}
		below := at
		below.path = at.path + part + "/"
		below.lo, below.hi = s.index.Folder(below.path, i, at.hi)
		if there && names[n].mode.IsDir() {
			seen[n] = true
			err = s.enterSoon(ctx, aside, dir, names[n], below)
		} else {
			s.deletedRange(below.lo, below.hi)
		}
		if err != nil {
			return err
		}
		i = below.hi
	}
	return nil
}

// enterSoon enters a folder aside when a processor is to spare, else at once.
func (s *Scan) enterSoon(ctx context.Context, aside *sync.WaitGroup, dir *os.Root, n name, below place) error {
	select {
	case s.helpers <- struct{}{}:
		aside.Go(func() {
			defer func() { <-s.helpers }()
			err := s.enter(ctx, dir, n, below)
			s.locked(func() { s.failed = errors.Join(s.failed, err) })
		})
		return nil
	default:
		return s.enter(ctx, dir, n, below)
	}
}

// enter visits a folder with tracked files. An unreadable one is unknown.
func (s *Scan) enter(ctx context.Context, dir *os.Root, n name, below place) error {
	path := strings.TrimSuffix(below.path, "/")
	below.ignored = below.ignored || ignores(below.ignores, path, true, s.settings.IgnoreCase)
	err := s.into(ctx, dir, n, below)
	if errors.Is(err, fs.ErrPermission) {
		s.reportFound(Found{Kind: Unreadable, Path: path, Dir: true})
		return nil
	}
	return err
}

func (s *Scan) into(ctx context.Context, dir *os.Root, n name, below place) error {
	sub, err := regularfile.OpenFolder(dir, n.disk)
	if absent(err) { // removed meanwhile
		s.deletedRange(below.lo, below.hi)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", below.path, err)
	}
	defer sub.Close()
	below.upper = enterUpper(below.upper, n.disk)
	defer closeUpper(below.upper)
	return s.folder(ctx, sub, below)
}

func (s *Scan) deletedRange(lo, hi int) {
	for i := lo; i < hi; i++ {
		s.deletedEntry(s.index.Entry(i))
	}
}

func (s *Scan) deletedEntry(e index.Entry) {
	if !e.SkipWorktree && !e.AssumeValid && !s.settings.Covers(s.skip, e.Path) {
		s.reportFound(Found{Kind: Deleted, Path: e.Path})
	}
}

// trackedFile compares the index entry i with names[n], its file if there is one. It reports a deleted
// file, and adds a file that may have changed to the suspects.
func (s *Scan) trackedFile(dir *os.Root, names []name, n int, there bool, i int) error {
	e := s.index.Entry(i)
	if !there {
		s.deletedEntry(e)
		return nil
	}
	if e.SkipWorktree || e.AssumeValid {
		return nil
	}
	if e.Mode == index.Gitlink && names[n].mode.IsDir() {
		s.submodule(dir, names[n], e)
		return nil
	}
	if s.provenUnchanged(names[n], i) {
		return nil
	}
	return s.suspectEntry(dir, names[n], i)
}

// provenUnchanged reports whether a file's metadata proves that it is as entry i of the index has it.
func (s *Scan) provenUnchanged(n name, i int) bool {
	e := s.index.Metadata(i)
	return e.Stage == 0 && !e.IntentToAdd && modeOf(s.settings, n.mode, e.Mode) == e.Mode &&
		unchanged(s.settings, e.Stat, n.lstat, s.index.Modified)
}

// suspectEntry adds a file to the suspects, or reports that entry i of the index was deleted.
func (s *Scan) suspectEntry(dir *os.Root, n name, i int) error {
	e := s.index.Entry(i)
	info, err := dir.Lstat(n.disk)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at %q: %w", e.Path, err)
	}
	// The scan entered no folder here, so the new one's files would be missing without a word.
	if err == nil && info.IsDir() && !n.mode.IsDir() {
		return fmt.Errorf("%q became a folder while the work tree was read; run again when nothing else writes there", e.Path)
	}
	mode := uint32(0)
	if err == nil {
		mode = modeOf(s.settings, info.Mode(), e.Mode)
	}
	if mode == 0 {
		s.deletedEntry(e)
		return nil
	}
	one := Suspect{Path: e.Path, Info: info, Mode: mode, entry: i}
	if e.Mode != index.Gitlink {
		one.old = e.ID
	}
	s.locked(func() { s.Suspects = append(s.Suspects, one) })
	return nil
}

// submodule reports a submodule checked out at another commit.
func (s *Scan) submodule(dir *os.Root, n name, e index.Entry) {
	if _, err := dir.Lstat(n.disk + "/.git"); err != nil {
		return // not checked out: nothing in it can have changed
	}
	if !s.work.submoduleAt(e.Path, e.ID) {
		s.reportFound(Found{Kind: Submodule, Path: e.Path})
	}
}

// submoduleAt reports whether a checked out submodule is at a commit.
func (w *Worktree) submoduleAt(path string, id plumbing.Hash) bool {
	if named, is := pathname.Below(w.repo.GitDir, w.repo.NamedBy(w.dir, path+"/.git")); is && w.git != "" {
		dir := filepath.Join(w.git, named)
		if _, now, err := (repository.Layout{GitDir: dir, CommonDir: dir}).Head(); err == nil {
			return now == id
		}
	}
	root, done, err := w.path()
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

// ignores asks the strongest list first.
func ignores(lists []rules.Ignore, path string, isDir, fold bool) bool {
	for _, list := range slices.Backward(lists) {
		if ignored, decided := list.Decide(path, isDir, fold); decided {
			return ignored
		}
	}
	return false
}

// unchanged reports whether times and numbers prove an unchanged file. written is the index's time:
// a file not older may have changed within one clock tick.
func unchanged(s *repository.Settings, known index.Stat, file lstat, written time.Time) bool {
	now := file.stat
	if known.MtimeSec != now.MtimeSec || known.Size != now.Size {
		return false
	}
	if !s.MinimalStat && !sameDetails(s, known, now) {
		return false
	}
	return file.modifiedAt().Before(written)
}

// sameDetails compares the fields omitted by core.checkStat=minimal. A time stored without
// nanoseconds is compared by seconds.
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

// modeOf returns git's mode for a file, or 0 for folders, sockets, devices and pipes. known is the
// index's mode, 0 for none.
func modeOf(s *repository.Settings, mode fs.FileMode, known uint32) uint32 {
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
