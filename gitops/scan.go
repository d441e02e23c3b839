package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// found is one thing that a scan saw and that is not as the index has it.
type found struct {
	what  what
	path  string // folders without a slash at the end
	entry int    // in the index; -1 where it has none
	dir   bool   // a folder, with all that is in it
	info  fs.FileInfo
}

type what uint8

const (
	foundDeleted    what = iota // tracked and gone, or something git cannot record stands there
	foundSuspect                // tracked, and its content has to be compared
	foundSubmodule              // tracked, a populated submodule
	foundUntracked              // a file or link that is neither tracked nor ignored
	foundIgnored                // a file, link or whole folder that is ignored
	foundRepository             // an untracked folder that is a repository of its own
	foundInvalid                // a name that must never get into a tree
	foundTooDeep                // untracked, and nothing that git could check out
	foundUnreadable             // a folder with tracked files that may not be read
)

// scan compares a work tree with an index by stat data and lists what is not
// tracked. It reads folders and ignore files, no other content, and holds one
// folder at a time.
type scan struct {
	settings *repository.Settings
	index    *index.File
	root     *os.Root
	outer    []rules.Ignore // patterns from outside of the work tree, the weakest first
	skip     map[string]bool
	tracked  bool              // only look for tracked files
	ignored  bool              // report ignored files too
	report   func(found) error // never called twice at a time; in no order

	mu         sync.Mutex
	attributes map[string]bool // folders with attributes: "" or ending with a slash
	helpers    chan struct{}   // one place for each folder that may be gone into aside
}

func (s *scan) run(ctx context.Context) error {
	s.attributes = map[string]bool{}
	s.helpers = make(chan struct{}, runtime.GOMAXPROCS(0)-1)
	return s.folder(ctx, s.root, place{hi: s.index.Len(), ignores: s.outer})
}

func (s *scan) tell(f found) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report(f)
}

func (s *scan) noteAttributes(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attributes[folder] = true
}

// place is a folder on the way: its path ("" or ending with a slash), its range
// of the index, and what ignore patterns hold in it.
type place struct {
	path    string
	lo, hi  int
	ignores []rules.Ignore
	ignored bool // the folder itself is ignored, and with it all that is not tracked
}

func (s *scan) folder(ctx context.Context, dir *os.Root, at place) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	names, err := s.list(ctx, dir, at)
	if err != nil {
		return err
	}
	if _, has := find(names, ".gitattributes", s.settings.IgnoreCase); has {
		s.noteAttributes(at.path)
	}
	if !s.tracked && !at.ignored {
		at.ignores = s.withIgnoreFile(dir, names, at)
	}
	seen, err := s.trackedIn(ctx, dir, names, at)
	if err != nil || s.tracked {
		return err
	}
	return s.untrackedIn(ctx, dir, names, seen, at)
}

// name is an entry of a folder: what the index would call it, and what the
// file system does.
type name struct {
	git  string
	disk string
	kind fs.FileMode
	// look returns what the folder's listing saw of the entry. In an os.Root
	// that is stat data already, read once for each entry.
	look func() (fs.FileInfo, error)
}

// listedAtOnce is how many entries of a folder are read between two looks at the
// context.
const listedAtOnce = 4096

func (s *scan) list(ctx context.Context, dir *os.Root, at place) ([]name, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", at.path, err)
	}
	defer f.Close()
	var names []name
	for {
		entries, err := f.ReadDir(listedAtOnce)
		names = s.named(names, entries, at)
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

// named adds entries of a folder to its names.
func (s *scan) named(names []name, entries []fs.DirEntry, at place) []name {
	names = slices.Grow(names, len(entries))
	for _, e := range entries {
		n := name{git: e.Name(), disk: e.Name(), kind: e.Type(), look: e.Info}
		if s.settings.Precompose {
			n.git = norm.NFC.String(n.git)
		}
		if len(s.skip) == 0 || !s.skip[s.settings.SameName(at.path+n.git)] {
			names = append(names, n)
		}
	}
	return names
}

func (s *scan) withIgnoreFile(dir *os.Root, names []name, at place) []rules.Ignore {
	if _, ok := find(names, ".gitignore", false); !ok {
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

// trackedIn goes through what the index has in this folder and marks in seen
// the names that it accounts for.
func (s *scan) trackedIn(ctx context.Context, dir *os.Root, names []name, at place) (seen []bool, err error) {
	seen = make([]bool, len(names))
	var aside group
	defer func() { err = errors.Join(err, aside.wait()) }()
	for i := at.lo; i < at.hi; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		rest := string(s.index.Path(i)[len(at.path):])
		part, _, deeper := strings.Cut(rest, "/")
		n, there := find(names, part, s.settings.IgnoreCase)
		if !deeper {
			if there {
				seen[n] = !names[n].kind.IsDir() || s.index.Mode(i) == index.Gitlink
			}
			if err := s.trackedFile(dir, names, n, there, i); err != nil {
				return nil, err
			}
			i++
			continue
		}
		below := at
		below.path = at.path + part + "/"
		below.lo, below.hi = s.index.Folder(below.path, i, at.hi)
		if there && names[n].kind.IsDir() {
			seen[n] = true
			err = s.enterSoon(ctx, &aside, dir, names[n], below)
		} else {
			err = s.gone(below.lo, below.hi)
		}
		if err != nil {
			return nil, err
		}
		i = below.hi
	}
	return seen, nil
}

// enterSoon enters a folder aside when a processor is to spare, else at once.
func (s *scan) enterSoon(ctx context.Context, aside *group, dir *os.Root, n name, below place) error {
	select {
	case s.helpers <- struct{}{}:
		aside.run(func() error {
			defer func() { <-s.helpers }()
			return s.enter(ctx, dir, n, below)
		})
		return nil
	default:
		return s.enter(ctx, dir, n, below)
	}
}

// enter goes into a folder that holds tracked files. Of one that may not be read
// nothing is known.
func (s *scan) enter(ctx context.Context, dir *os.Root, n name, below place) error {
	path := strings.TrimSuffix(below.path, "/")
	below.ignored = below.ignored || ignores(below.ignores, path, true, s.settings.IgnoreCase)
	err := s.into(ctx, dir, n, below)
	if errors.Is(err, fs.ErrPermission) {
		return s.tell(found{what: foundUnreadable, path: path, entry: -1, dir: true})
	}
	return err
}

func (s *scan) into(ctx context.Context, dir *os.Root, n name, below place) error {
	sub, err := regularfile.OpenFolder(dir, n.disk)
	if err != nil {
		return fmt.Errorf("open %q: %w", below.path, err)
	}
	defer sub.Close()
	return s.folder(ctx, sub, below)
}

func (s *scan) gone(lo, hi int) error {
	for i := lo; i < hi; i++ {
		if err := s.missing(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) missing(i int) error {
	if e := s.index.Entry(i); e.SkipWorktree || e.AssumeValid || s.settings.Covers(s.skip, e.Path) {
		return nil
	}
	return s.tell(found{what: foundDeleted, path: string(s.index.Path(i)), entry: i})
}

func (s *scan) trackedFile(dir *os.Root, names []name, n int, there bool, i int) error {
	if !there {
		return s.missing(i)
	}
	e := s.index.Entry(i)
	if e.SkipWorktree || e.AssumeValid {
		return nil
	}
	if e.Mode == index.Gitlink && names[n].kind.IsDir() {
		return s.submodule(dir, names[n], e, i)
	}
	info, err := names[n].look()
	if errors.Is(err, fs.ErrNotExist) {
		return s.missing(i)
	}
	if err != nil {
		return fmt.Errorf("look at %q: %w", e.Path, err)
	}
	mode := modeOf(s.settings, info, e.Mode)
	if mode == 0 {
		return s.missing(i)
	}
	if mode == e.Mode && e.Stage == 0 && !e.IntentToAdd && unchanged(s.settings, e.Stat, info, s.index.Modified) {
		return nil
	}
	return s.tell(found{what: foundSuspect, path: e.Path, entry: i, info: info})
}

func (s *scan) submodule(dir *os.Root, n name, e index.Entry, i int) error {
	if _, err := dir.Lstat(n.disk + "/.git"); err != nil {
		return nil // not checked out: nothing in it can have changed
	}
	return s.tell(found{what: foundSubmodule, path: e.Path, entry: i})
}

// ignores asks the strongest list first.
func ignores(lists []rules.Ignore, path string, isDir, fold bool) bool {
	for i := len(lists) - 1; i >= 0; i-- {
		if ignored, decided := lists[i].Decide(path, isDir, fold); decided {
			return ignored
		}
	}
	return false
}
