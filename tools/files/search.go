package files

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/tools/files/internal/match"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// search finds the first q.limit matching files. With an error it returns those found so far.
func (g grepFiles) search(ctx context.Context, at spot, q query) (matches, error) {
	if info, err := at.root.Stat(at.inside); err == nil && !info.IsDir() {
		return g.searchFile(ctx, at, q)
	}
	tree, err := g.tree(at)
	if err != nil {
		return matches{}, err
	}
	defer tree.close()
	files, err := tree.Files(ctx, g.Since, func(path string) bool { return q.include.includes(path, at.shown) })
	if err != nil {
		return matches{}, err
	}
	s := &search{tree: tree.Tree, query: q, files: files}
	hits, err := s.run(ctx)
	f := matches{more: len(hits) > q.limit, searched: min(s.next, len(files)), of: len(files)}
	if !f.more && err == nil { // else it depends on the machine which files were looked into
		slices.Sort(s.foreign)
		for _, i := range s.foreign {
			f.foreign = append(f.foreign, g.named(at, files[i].Path))
		}
	}
	for _, i := range hits[:min(len(hits), q.limit)] {
		f.paths = append(f.paths, g.named(at, files[i].Path))
	}
	return f, err
}

// searchFile searches a file named by the call, ignoring include.
func (g grepFiles) searchFile(ctx context.Context, at spot, q query) (matches, error) {
	file, err := at.open()
	if err != nil {
		return matches{}, err
	}
	defer file.Close()
	matched := q.pattern == nil
	var r match.Reader
	if !matched {
		if matched, err = r.Match(ctx, q.pattern, file); err != nil {
			return matches{of: 1}, err
		}
	}
	f := matches{searched: 1, of: 1}
	if r.Encoding != "" {
		f.foreign = []string{g.named(at, "")}
	}
	if matched {
		f.paths = []string{g.named(at, "")}
	}
	return f, nil
}

// search looks into files in their order, several at once, until it knows the
// first matches and whether there are others.
type search struct {
	tree  *walk.Tree
	query query
	files []walk.File

	mu      sync.Mutex
	next    int   // all before it are searched or being searched
	hits    []int // of files
	foreign []int // of files that are text in an encoding that is not searched
}

// run returns the matches in order. It may return more than the query's limit.
func (s *search) run(ctx context.Context) ([]int, error) {
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.files)) {
		workers.Go(func() { s.work(ctx) })
	}
	workers.Wait()
	slices.Sort(s.hits)
	return s.hits, ctx.Err()
}

func (s *search) work(ctx context.Context) {
	var r match.Reader
	for i, ok := s.take(); ok && ctx.Err() == nil; i, ok = s.take() {
		if s.matches(ctx, &r, s.files[i]) {
			s.mu.Lock()
			s.hits = append(s.hits, i)
			s.mu.Unlock()
		} else if r.Encoding != "" {
			s.mu.Lock()
			s.foreign = append(s.foreign, i)
			s.mu.Unlock()
		}
		r.Encoding = ""
	}
}

func (s *search) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.files) || len(s.hits) > s.query.limit {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// matches returns false for unreadable files, like rg and git.
func (s *search) matches(ctx context.Context, r *match.Reader, f walk.File) bool {
	if s.query.pattern == nil {
		return true
	}
	if f.Size == 0 {
		return false
	}
	file, err := s.tree.Open(f)
	if err != nil {
		return false
	}
	defer file.Close()
	matched, err := r.Match(ctx, s.query.pattern, file)
	return err == nil && matched
}
