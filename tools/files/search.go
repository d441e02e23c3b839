package files

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/tools/files/internal/match"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// search finds the first q.limit matching files at a location. With an error it returns those found so far.
func (g grepFiles) search(ctx context.Context, location location, q query) (searchResult, error) {
	if info, err := location.root.Stat(location.path); err == nil && !info.IsDir() {
		return g.searchFile(ctx, location, q)
	}
	tree, err := g.openTree(location)
	if err != nil {
		return searchResult{}, err
	}
	defer tree.close()
	files, err := tree.Files(ctx, g.Since, func(path string) bool { return q.include.includes(path, location.displayPath) })
	if err != nil {
		return searchResult{}, err
	}
	s := &search{tree: tree.Tree, query: q, files: files}
	hits, err := s.searchAll(ctx)
	result := searchResult{hasMore: len(hits) > q.limit, searched: min(s.next, len(files)), total: len(files)}
	if !result.hasMore && err == nil { // after an early stop, the searched files depend on the speed of the machine
		slices.Sort(s.unsearched)
		for _, i := range s.unsearched {
			result.unsearched = append(result.unsearched, g.toolPath(location, files[i].Path))
		}
	}
	for _, i := range hits[:min(len(hits), q.limit)] {
		result.paths = append(result.paths, g.toolPath(location, files[i].Path))
	}
	return result, err
}

// searchFile returns the result of a search in a single file. It ignores the query's include.
func (g grepFiles) searchFile(ctx context.Context, location location, q query) (searchResult, error) {
	file, err := location.open()
	if err != nil {
		return searchResult{}, err
	}
	defer file.Close()
	var r match.Reader
	matched := true
	if q.pattern != nil {
		if matched, err = r.Match(ctx, q.pattern, file); err != nil {
			return searchResult{total: 1}, err
		}
	}
	result := searchResult{searched: 1, total: 1}
	if r.Encoding != "" {
		result.unsearched = []string{g.toolPath(location, "")}
	}
	if matched {
		result.paths = []string{g.toolPath(location, "")}
	}
	return result, nil
}

// search searches files in order, several at once, until it has found more matches than the limit.
type search struct {
	tree  *walk.Tree
	query query
	files []walk.File

	mu         sync.Mutex
	next       int   // index of the next file to search
	hits       []int // indexes of matching files
	unsearched []int // indexes of text files in encodings that are not searched
}

// searchAll returns the indexes of the matching files in order. It may return more than the query's limit.
func (s *search) searchAll(ctx context.Context) ([]int, error) {
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.files)) {
		workers.Go(func() { s.searchFiles(ctx) })
	}
	workers.Wait()
	slices.Sort(s.hits)
	return s.hits, ctx.Err()
}

// searchFiles searches files until none is left or needed. Several goroutines run it at once.
func (s *search) searchFiles(ctx context.Context) {
	var r match.Reader
	for {
		i, exists := s.takeNext()
		if !exists || ctx.Err() != nil {
			return
		}
		if s.fileMatches(ctx, &r, s.files[i]) {
			s.mu.Lock()
			s.hits = append(s.hits, i)
			s.mu.Unlock()
		} else if r.Encoding != "" {
			s.mu.Lock()
			s.unsearched = append(s.unsearched, i)
			s.mu.Unlock()
		}
		r.Encoding = ""
	}
}

// takeNext returns the index of the next file to search. exists is false if none is left, or if there are enough
// matches.
func (s *search) takeNext() (index int, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.files) || len(s.hits) > s.query.limit {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// fileMatches reports whether a file matches the query. Like rg and git, it returns false for a file that cannot be
// read.
func (s *search) fileMatches(ctx context.Context, r *match.Reader, f walk.File) bool {
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
