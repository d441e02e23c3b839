package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
)

// attributes looks up the gitattributes of paths with git. It reads each .gitattributes file once.
type attributes struct {
	work    *Worktree
	read    func(path string) ([]byte, error)
	folders map[string]bool                  // folders whose .gitattributes was looked for; keys are "" or end with a slash
	files   map[string][]byte                // contents of the .gitattributes files that exist, by path
	byPath  map[string]repository.Attributes // by path
}

// attributesBy returns attributes whose .gitattributes files read reads, from a tree or work tree.
// read returns fs.ErrNotExist for a missing file.
func (w *Worktree) attributesBy(read func(path string) ([]byte, error)) *attributes {
	return &attributes{w, read, map[string]bool{}, map[string][]byte{}, map[string]repository.Attributes{}}
}

// scannedAttributes returns the attributes in the work tree. s is a finished scan of it, which knows
// the folders with attribute files.
func (w *Worktree) scannedAttributes(s *scan.Scan) *attributes {
	return w.attributesBy(func(path string) ([]byte, error) {
		if !s.AttributeFolders[strings.TrimSuffix(path, ".gitattributes")] {
			return nil, fs.ErrNotExist
		}
		return regularfile.ReadIn(w.dir, path)
	})
}

// RequireAttributeFiles returns an *UnsupportedError if git would wait for a .gitattributes file in
// one of the folders, such as a pipe, or take too long for its patterns. The keys are "" or end with a
// slash.
func (w *Worktree) RequireAttributeFiles(folders map[string]bool) error {
	for folder := range folders {
		name := folder + ".gitattributes"
		info, err := w.dir.Lstat(name)
		if err != nil || info.Mode().Type()&(fs.ModeDir|fs.ModeSymlink) != 0 {
			continue
		}
		if !info.Mode().IsRegular() {
			return repository.NotRegular(filepath.Join(w.repo.Root, name))
		}
		if err := w.requireQuickAttributes(name, info.Size()); err != nil {
			return err
		}
	}
	return nil
}

// mostStars is the largest number of "**/" in a line of a .gitattributes file. The time that git takes to
// match a pattern grows with the depth of a path to that power.
const mostStars = 4

// escapes replaces the codes that stand for stars and slashes in a quoted pattern of a .gitattributes file.
var escapes = strings.NewReplacer(`\052`, "*", `\057`, "/")

// isCostly reports whether git could take very long to match paths with a pattern of a .gitattributes file.
func isCostly(data []byte) bool {
	for stars := range starsPerLine(data) {
		if stars > mostStars {
			return true
		}
	}
	return false
}

// starsPerLine yields the number of "**/" in each line of a .gitattributes file.
func starsPerLine(data []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for line := range strings.Lines(escapes.Replace(string(data))) {
			if !yield(strings.Count(line, "**/")) {
				return
			}
		}
	}
}

// requireQuickAttributes returns an *UnsupportedError for a .gitattributes file of this size for which git could
// take very long.
func (w *Worktree) requireQuickAttributes(name string, size int64) error {
	data, err := regularfile.ReadIn(w.dir, name)
	isQuick := err != nil || !isCostly(data) // an unreadable file is ignored
	if isQuick && size <= regularfile.Small {
		return nil
	}
	return &repository.UnsupportedError{
		Feature: fmt.Sprintf("%s with more than %d bytes, or more than %d \"**/\" in a line", filepath.Join(w.repo.Root, name), regularfile.Small, mostStars),
		Remedy:  "shorten it, because git can take hours for it",
	}
}

// mostMatches limits the ways in which patterns with several "**/" may match the paths of one load. git takes
// up to 0.1 µs for each.
const mostMatches = 1e9

// requireQuickPatterns returns an *UnsupportedError if git could take very long to match paths with the patterns of
// the .gitattributes files.
func (a *attributes) requireQuickPatterns(paths []string) error {
	matches := 0.0
	for name, data := range a.files {
		lines, isStarred := [mostStars + 1]float64{}, false // by the number of "**/"
		for stars := range starsPerLine(data) {
			lines[stars]++
			isStarred = isStarred || stars > 1
		}
		if !isStarred {
			continue
		}
		for _, file := range paths {
			below, isBelow := strings.CutPrefix(file, strings.TrimSuffix(name, ".gitattributes"))
			if !isBelow {
				continue
			}
			depth, ways := strings.Count(below, "/")+1, 1.0
			for stars := 1; stars <= min(mostStars, depth); stars++ {
				ways *= float64(depth-stars+1) / float64(stars)
				if stars > 1 {
					matches += lines[stars] * ways
				}
			}
		}
		if matches > mostMatches {
			return &repository.UnsupportedError{
				Feature: fmt.Sprintf("%s with so many patterns with several \"**/\" for so many or such deep paths", filepath.Join(a.work.repo.Root, name)),
				Remedy:  "shorten it, because git can take hours for it",
			}
		}
	}
	return nil
}

// treeAttributes returns the attributes that the .gitattributes files of a tree give.
func (w *Worktree) treeAttributes(tree plumbing.Hash) *attributes {
	cached := w.objects.CachedTree(tree)
	return w.attributesBy(func(file string) ([]byte, error) {
		e, err := cached.Find(file)
		if err != nil {
			return nil, err
		}
		if e.Mode == 0 || e.IsTree() {
			return nil, fs.ErrNotExist
		}
		return w.objects.BlobBytes(e.ID, regularfile.Small)
	})
}

// contentAttributes lists the attributes that decide about a file's content in the work tree or in a merge.
var contentAttributes = []string{"text", "crlf", "eol", "ident", "working-tree-encoding", "filter", "merge"}

// load asks git for the attributes of paths, so that of can return them.
func (a *attributes) load(ctx context.Context, paths []string) (err error) {
	var list bytes.Buffer
	for _, file := range paths {
		folder, _ := path.Split(file)
		a.readFolder(folder)
		list.WriteString(file + "\x00")
	}
	if len(paths) == 0 || len(a.files) == 0 && !a.work.repo.HasAttributes() {
		return nil
	}
	if err := a.requireQuickPatterns(paths); err != nil {
		return err
	}
	staged, err := a.newStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staged.remove()) }()
	out, err := staged.runGit(ctx, nil, &list, append([]string{"check-attr", "-z", "--stdin"}, contentAttributes...)...)
	if err != nil {
		return fmt.Errorf("read attributes: %w", err)
	}
	for words := strings.Split(string(out), "\x00"); len(words) > 3; words = words[3:] { // path, attribute, value
		if words[2] == "unspecified" {
			continue
		}
		if a.byPath[words[0]] == nil {
			a.byPath[words[0]] = repository.Attributes{}
		}
		a.byPath[words[0]][words[1]] = words[2]
	}
	return nil
}

// of returns the attributes of a path that was loaded before.
func (a *attributes) of(file string) repository.Attributes { return a.byPath[file] }

// readFolder reads the attribute files of a folder, "" or ending with a slash, and of those above it. It
// ignores costly ones.
func (a *attributes) readFolder(folder string) {
	if a.folders[folder] {
		return
	}
	a.folders[folder] = true
	if folder != "" {
		above, _ := path.Split(strings.TrimSuffix(folder, "/"))
		a.readFolder(above)
	}
	if data, err := a.read(folder + ".gitattributes"); err == nil && !isCostly(data) {
		a.files[folder+".gitattributes"] = data
	}
}

// entries stores the .gitattributes files as blobs and returns index entries for them.
func (a *attributes) entries() (list []index.Entry, err error) {
	for path, data := range a.files {
		id, err := a.work.objects.WriteBytes(plumbing.BlobObject, data)
		if err != nil {
			return nil, err
		}
		list = append(list, index.Entry{Path: path, Mode: index.Regular, ID: id})
	}
	return list, nil
}

// newStage makes a stage with the .gitattributes files. The caller removes it.
func (a *attributes) newStage(ctx context.Context) (*stage, error) {
	staged, err := a.work.newStage()
	if err != nil {
		return nil, err
	}
	for name, data := range a.files {
		if err := staged.add(ctx, name, bytes.NewReader(data)); err != nil {
			return nil, errors.Join(err, staged.remove())
		}
	}
	return staged, nil
}

// Merging holds the attributes that decide how git merges files of a tree.
type Merging struct {
	attributes *attributes
	staged     *stage
}

// Merging returns the merge attributes of paths of a tree. The caller closes the result.
func (w *Worktree) Merging(ctx context.Context, tree plumbing.Hash, paths []string) (*Merging, error) {
	a := w.treeAttributes(tree)
	if err := a.load(ctx, paths); err != nil {
		return nil, err
	}
	staged, err := a.newStage(ctx)
	if err != nil {
		return nil, err
	}
	return &Merging{a, staged}, nil
}

// Folder returns a private folder with the paths' attribute files, which Close removes.
func (m *Merging) Folder() string { return m.staged.dir }

func (m *Merging) Close() error { return m.staged.remove() }

// Driver returns the name of a file's own merge driver, or "" if git merges it with a built-in
// driver.
func (m *Merging) Driver(path string) string {
	driver := m.attributes.of(path).Text("merge")
	if slices.Contains([]string{"text", "binary", "union"}, driver) {
		return ""
	}
	return driver
}
