package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// CheckOutOver is CheckOut that overwrites only content that is in the index or in the tree from.
// The old sides of changes are entries of from. It returns an *ObstructedError for untracked files
// in the way, and a *ChangedError for modified ones. Then it has written nothing, unless the error
// says so.
func (w *Worktree) CheckOutOver(ctx context.Context, ix *index.File, from, to plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	if err := w.requireUnobstructed(ix, changes); err != nil {
		return nil, err
	}
	if w.InLayer() {
		return w.CheckOut(ctx, to, changes)
	}
	known, err := w.requireUnmodified(ctx, ix, from, changes)
	if err == nil { // the comparison may take a while, and git overwrites ignored files, so look again
		err = w.requireUnobstructed(ix, changes)
	}
	if err != nil {
		return nil, err
	}
	return w.CheckOutKnown(ctx, to, changes, known)
}

// CheckOutKnown is like CheckOut, but replaces and removes only files that still have the known stat
// data. It returns a *ChangedError if a file has other stat data. In a layer it is CheckOut, because no
// other process writes there now.
//
// git writes the changes: it compares the stat data of all files before it writes the first. The private
// git has no filters. So filtered files are made in a stage before git starts, and copied to their places
// afterwards.
func (w *Worktree) CheckOutKnown(ctx context.Context, to plumbing.Hash, changes []objects.Difference, known map[string]index.Stat) (_ map[string]index.Stat, err error) {
	if len(changes) == 0 {
		return map[string]index.Stat{}, nil
	}
	if w.InLayer() {
		return w.CheckOut(ctx, to, changes)
	}
	if err := w.objects.CheckFiles(ctx, changes); err != nil {
		return nil, err
	}
	git := gitCheckout{Worktree: w, attributes: w.treeAttributes(to)}
	if err := git.attributes.load(ctx, pathsOf(changes)); err != nil {
		return nil, err
	}
	for _, d := range changes {
		if err := git.add(d, known[d.Path]); err != nil {
			return nil, err
		}
	}
	if len(git.notForGit) == 0 {
		return git.run(ctx)
	}
	stage, err := w.newStage()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.remove()) }()
	maker := smudger{Worktree: w.at(stage.root), attributes: git.attributes, landing: true}
	if _, err := maker.write(ctx, git.notForGit); err != nil {
		return nil, err
	}
	stats, err := git.run(ctx)
	if err != nil {
		return nil, err
	}
	noFilters := &attributes{} // the staged files have passed theirs
	placer := smudger{Worktree: w, attributes: noFilters, landing: true, folders: map[string]bool{}, stats: stats}
	return stats, placer.placeAll(ctx, git.notForGit, stage.root)
}

// placeAll creates the files of list from their copies in the folder from, through their filters, and the folders
// of submodules.
func (s *smudger) placeAll(ctx context.Context, list []objects.Difference, from *os.Root) error {
	for _, d := range list {
		if err := s.writeError(d, s.placeEntry(ctx, d, from)); err != nil {
			return err
		}
	}
	return nil
}

// placeEntry creates the folder above an entry, and then its file or submodule folder.
func (s *smudger) placeEntry(ctx context.Context, d objects.Difference, from *os.Root) error {
	if err := s.makeFolder(path.Dir(d.Path)); err != nil {
		return err
	}
	if d.New.Mode == index.Gitlink {
		_, err := s.writeFile(ctx, d)
		return err
	}
	made, err := regularfile.OpenIn(from, d.Path)
	if err != nil {
		return err
	}
	return errors.Join(s.createFiltered(ctx, d, regularfile.Until(ctx, made)), made.Close())
}

// CopyFilteredFrom sets the work tree that the change was made in. Files with a filter are copied
// from it. Nil means that the filters run again.
func (w *Worktree) CopyFilteredFrom(tree *os.Root) { w.originalTree = tree }

// openInOriginalTree opens a filtered file in the change's original tree. It returns nil if there
// is no such tree, or if the file there no longer has the content of the change.
func (s *smudger) openInOriginalTree(ctx context.Context, d objects.Difference) (*os.File, error) {
	if !s.landing || s.originalTree == nil {
		return nil, nil
	}
	info, err := s.originalTree.Lstat(d.Path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilerr // the file is missing
	}
	one := []scan.Suspect{{Path: d.Path, Info: info, Mode: d.New.Mode, Entry: -1}}
	c := cleaner{Worktree: s.at(s.originalTree), attributes: s.attributes}
	if err := c.clean(ctx, one); err != nil {
		return nil, err
	}
	if one[0].ID != d.New.ID {
		return nil, nil
	}
	return regularfile.OpenIn(s.originalTree, d.Path)
}

// gitCheckout is the input of git's read-tree: two trees with only the changed files in them, and an
// index of the first.
type gitCheckout struct {
	*Worktree
	attributes         *attributes
	oldSides, newSides []index.Entry
	notForGit          []objects.Difference // files that git must not write
}

// add adds a difference to the input for git. Filtered files and submodules go to notForGit. known is the stat data
// of the old file. If a file replaces a submodule, the submodule's folder must be empty; otherwise add returns an
// *ObstructedError.
func (l *gitCheckout) add(d objects.Difference, known index.Stat) error {
	wasSubmodule, isSubmodule := d.Old.Mode == index.Gitlink, d.New.Mode == index.Gitlink
	isDeleted := d.New.Mode == 0
	if wasSubmodule && !isSubmodule {
		err := l.dir.Remove(d.Path)
		stays := err != nil && !regularfile.Absent(err)
		if stays && !isDeleted {
			return &ObstructedError{Paths: []string{d.Path + "/"}}
		}
	}
	if d.Old.Mode != 0 && !wasSubmodule {
		old := d.Old.At(d.Path)
		old.Stat = known
		l.oldSides = append(l.oldSides, old)
	}
	if isDeleted {
		return nil // git deletes a file that is only in oldSides
	}
	isFiltered := d.New.Mode != index.Symlink && l.repo.Settings.FilterOf(l.attributes.of(d.Path)) != ""
	if isFiltered || isSubmodule {
		l.notForGit = append(l.notForGit, d)
	} else {
		l.newSides = append(l.newSides, d.New.At(d.Path))
	}
	return nil
}

// run lets git write the files and returns their stat data. If a file in the way differs from the
// old tree, git writes nothing and run returns a *ChangedError.
func (l *gitCheckout) run(ctx context.Context) (_ map[string]index.Stat, err error) {
	files := l.newSides // without the attribute files that addAttributes adds
	if err := errors.Join(l.RequireAttributeFiles(l.attributes.folders), l.addAttributes()); err != nil {
		return nil, err
	}
	if err := l.objects.OwnFiles(ctx, l.newSides); err != nil {
		return nil, err
	}
	var trees []string
	for _, side := range [][]index.Entry{l.oldSides, l.newSides} {
		tree, err := l.objects.Apply(plumbing.ZeroHash, side)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree.String())
	}
	dir, err := os.MkdirTemp(l.repo.PrivateDir, "landing-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at := filepath.Join(dir, "index")
	if err := index.WriteNew(at, l.oldSides); err != nil {
		return nil, err
	}
	// git would read files again that are as new as the index. Their stat data is proof enough, and
	// a filter may have made their content, which git cannot compare.
	if err := os.Chtimes(at, time.Time{}, time.Now().AddDate(1, 0, 0)); err != nil {
		return nil, err
	}
	git, err := l.repo.PrivateGit()
	if err != nil {
		return nil, err
	}
	if _, err := git.With("GIT_INDEX_FILE="+at).Run(ctx, l.repo.Root, nil, "read-tree", "-m", "-u", trees[0], trees[1]); err != nil {
		return nil, changedFilesError(err)
	}
	return statsOf(at, files)
}

// addAttributes adds the unchanged .gitattributes files to both trees, because they decide about
// conversions.
func (l *gitCheckout) addAttributes() error {
	changed := map[string]bool{}
	for _, side := range [][]index.Entry{l.oldSides, l.newSides} {
		for _, e := range side {
			changed[e.Path] = true
		}
	}
	files, err := l.attributes.entries()
	if err != nil {
		return err
	}
	for _, e := range files {
		if changed[e.Path] {
			continue
		}
		l.oldSides = append(l.oldSides, e)
		l.newSides = append(l.newSides, e)
	}
	return nil
}

// statsOf reads the stat data of files from the index file at path.
func statsOf(path string, files []index.Entry) (map[string]index.Stat, error) {
	written, err := index.Read(path)
	if err != nil {
		return nil, err
	}
	stats := map[string]index.Stat{}
	for _, e := range files {
		if i, is := written.Search(e.Path); is {
			stats[e.Path] = written.Entry(i).Stat
		}
	}
	return stats, nil
}

// obstructedMessages matches git's messages about files that differ from its index. The group is
// the path.
var obstructedMessages = lazyregexp.New(`(?m)error: (?:Entry|Untracked working tree file|Updating) '(.*)'`)

// changedFilesError returns a *ChangedError if git's error lists files that it refused to overwrite. It
// returns any other error unchanged.
func changedFilesError(err error) error {
	var paths []string
	for _, found := range obstructedMessages().FindAllStringSubmatch(err.Error(), -1) {
		paths = append(paths, found[1])
	}
	if len(paths) == 0 {
		return err
	}
	return &ChangedError{Paths: paths}
}

// requireUnmodified checks that each path has the old side of its change in the work tree. It
// returns the stat data of the old files, or a *ChangedError with the paths that differ.
func (w *Worktree) requireUnmodified(ctx context.Context, ix *index.File, from plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	known := map[string]index.Stat{}
	var changed []string
	var suspects []scan.Suspect
	for _, d := range changes {
		if above := regularfile.Obstacle(w.dir, path.Dir(d.Path)); above != "" {
			replacesAbove := func(o objects.Difference) bool { return o.Path == above && o.Old.Mode != 0 }
			if d.New.Mode != 0 && !slices.ContainsFunc(changes, replacesAbove) {
				changed = append(changed, above)
			}
			continue // nothing exists below a file or link
		}
		info, err := w.dir.Lstat(d.Path)
		hadFile := d.Old.Mode != 0 && d.Old.Mode != index.Gitlink
		if !hadFile || err != nil { // a missing file differs, but nothing gets lost
			continue
		}
		known[d.Path] = index.StatOf(info)
		switch mode := scan.ModeOf(&w.repo.Settings, info.Mode(), d.Old.Mode); {
		case mode != d.Old.Mode:
			changed = append(changed, d.Path)
		case !w.asIndexed(ix, d, info):
			suspects = append(suspects, scan.Suspect{Path: d.Path, Info: info, Mode: mode, Entry: -1, Old: d.Old.ID})
		}
	}
	c := cleaner{Worktree: w, attributes: w.treeAttributes(from)}
	if err := c.clean(ctx, suspects); err != nil {
		return nil, err
	}
	for _, s := range suspects {
		if s.ID != s.Old {
			changed = append(changed, s.Path)
		}
	}
	if len(changed) > 0 {
		return nil, &ChangedError{Paths: changed}
	}
	return known, nil
}

// asIndexed reports whether the stat data in the index proves that the file is the old side of d.
func (w *Worktree) asIndexed(ix *index.File, d objects.Difference, info fs.FileInfo) bool {
	i, ok := ix.Search(d.Path)
	if !ok {
		return false
	}
	e := ix.Entry(i)
	return e.ID == d.Old.ID && e.Mode == d.Old.Mode && scan.Unchanged(&w.repo.Settings, e.Stat, scan.LstatOf(info), ix.Modified)
}

// requireUnobstructed returns an *ObstructedError if new files of changes would overwrite untracked files.
func (w *Worktree) requireUnobstructed(ix *index.File, changes []objects.Difference) error {
	var paths []string
	for _, d := range changes {
		// only an added file can be in conflict with an untracked one
		if d.Old.Mode != 0 || d.New.Mode == 0 {
			continue
		}
		obstacle, err := w.findObstacle(ix, d)
		if err != nil {
			return err
		}
		if obstacle != "" && !slices.Contains(paths, obstacle) {
			paths = append(paths, obstacle)
		}
	}
	if len(paths) > 0 {
		return &ObstructedError{Paths: paths}
	}
	return nil
}

// findObstacle returns an untracked path that is in the place of a new file or of a folder above it, or
// "".
func (w *Worktree) findObstacle(ix *index.File, d objects.Difference) (string, error) {
	if above := regularfile.Obstacle(w.dir, path.Dir(d.Path)); above != "" {
		if ix.Tracks(above) {
			return "", nil
		}
		return above, nil
	}
	info, err := w.dir.Lstat(d.Path)
	switch {
	case err != nil:
		return "", nil //nolint:nilerr // the place is free
	case !ix.Tracks(d.Path):
		return d.Path, nil
	case !info.IsDir() || d.New.Mode == index.Gitlink:
		return "", nil
	}
	return w.untrackedBelow(ix, d.Path)
}

// untrackedBelow returns an untracked path in a folder, or "".
func (w *Worktree) untrackedBelow(ix *index.File, folder string) (found string, err error) {
	dir, err := w.dir.Open(folder)
	if err != nil {
		return "", err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return "", err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		switch {
		case e.IsDir():
			found, err = w.untrackedBelow(ix, name)
		case !ix.Tracks(name):
			found = name
		}
		if found != "" || err != nil {
			return found, err
		}
	}
	return "", nil
}
