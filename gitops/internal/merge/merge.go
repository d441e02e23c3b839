// Package merge merges the changes between two trees into a third one, like `git merge`. The git
// program merges, in the private git folder, with only the files it needs. No work tree changes.
// The package does not know bases, change sets or checkouts.
package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Conflict is a path that both sides changed and that git could not merge.
type Conflict struct {
	Path string
	Why  string // "both changed the same lines"
	// Marked reports whether the file has conflict markers. Otherwise it is as in the tree that was
	// merged into.
	Marked bool
}

// Place is the repository in which trees are merged.
type Place struct {
	Repo    *repository.Repository
	Objects *objects.Store
	Work    *worktree.Worktree // reads the attributes of trees
}

// Merge is the result of a `git merge-tree`.
type Merge struct {
	Conflicts []Conflict // sorted by path

	place      Place
	trees      [3]plumbing.Hash       // of each side
	folders    [3]*objects.CachedTree // of these trees
	ontoName   string
	paths      map[string]sides // the paths that git merges
	renames    bool             // git looks for renames
	attributes *worktree.Merging
	merged     plumbing.Hash // git's merged tree, with these paths only
	commits    [3]string     // commits given to git, one for each side
	edits      []index.Entry // edits from onto to the result
}

// The three sides of a merge, in the order of index stages.
const (
	oldSide = iota
	ontoSide
	nowSide
)

// sides holds the entries of three trees at a path.
type sides [3]objects.Entry

// Trees merges the differences between old and now into onto. ontoName describes onto in messages.
// The result lists conflicts; they cause no error.
func Trees(ctx context.Context, in Place, old, now, onto plumbing.Hash, ontoName string) (*Merge, error) {
	m := &Merge{place: in, trees: [3]plumbing.Hash{old, onto, now}, ontoName: ontoName, paths: map[string]sides{}}
	for i, tree := range m.trees {
		m.folders[i] = in.Objects.CachedTree(tree)
	}
	if err := m.collectPaths(ctx); err != nil {
		return nil, err
	}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Tree writes the merged tree and returns its id. A path in conflict is as in onto, or as
// [Merge.MarkConflicts] left it.
func (m *Merge) Tree() (plumbing.Hash, error) {
	return m.place.Objects.Apply(m.trees[ontoSide], m.edits)
}

// collectPaths collects the paths that git needs for the merge: the changed paths, and paths that
// block them. If one side deleted a path that the other changed, git must look for renames. Then it
// also needs all changes of onto.
func (m *Merge) collectPaths(ctx context.Context) error {
	changes, err := m.place.Objects.Differences(ctx, m.trees[oldSide], m.trees[nowSide])
	if err != nil {
		return err
	}
	for _, d := range changes {
		there, err := m.folders[ontoSide].Find(d.Path)
		if err != nil {
			return err
		}
		if there.IsTree() {
			if err := m.collectBelow(ctx, d.Path, there.ID); err != nil {
				return err
			}
			there = objects.Entry{}
		}
		m.paths[d.Path] = sides{d.Old, there, d.New}
		gone := there.Mode == 0 || d.New.Mode == 0
		if d.Old.Mode != 0 && gone && d.Old != there {
			m.renames = true
		}
		if err := m.collectAbove(d, there); err != nil {
			return err
		}
	}
	if !m.renames {
		return nil
	}
	moved, err := m.place.Objects.Differences(ctx, m.trees[oldSide], m.trees[ontoSide])
	if err != nil {
		return err
	}
	for _, d := range moved {
		if _, known := m.paths[d.Path]; !known {
			m.paths[d.Path] = sides{d.Old, d.New, d.Old}
		}
	}
	return m.addFolderFiles()
}

// collectBelow adds the files below a folder of onto, if the change has a file in its place.
func (m *Merge) collectBelow(ctx context.Context, folder string, tree plumbing.Hash) error {
	below, err := m.place.Objects.Differences(ctx, plumbing.ZeroHash, tree)
	for _, d := range below {
		if err == nil {
			err = m.add(folder + "/" + d.Path)
		}
	}
	return err
}

// collectAbove checks the folders above a changed path. onto may have a file in place of a folder.
// A folder that is missing on one side may have been renamed.
func (m *Merge) collectAbove(d objects.Difference, there objects.Entry) error {
	for dir := path.Dir(d.Path); dir != "."; dir = path.Dir(dir) {
		at, err := m.entriesAt(dir)
		if err != nil {
			return err
		}
		wasFolder := at[oldSide].IsTree()
		addedToMissing := wasFolder && d.Old.Mode == 0 && !at[ontoSide].IsTree()            // onto may have renamed the folder
		removedChanged := wasFolder && at[ontoSide] != at[oldSide] && !at[nowSide].IsTree() // the change may have renamed it
		m.renames = m.renames || addedToMissing || removedChanged
		if there.Mode == 0 && at[ontoSide].Mode != 0 && !at[ontoSide].IsTree() {
			return m.add(dir)
		}
	}
	return nil
}

// entriesAt returns the entries of the three trees at a path.
func (m *Merge) entriesAt(name string) (at sides, err error) {
	for i, folders := range m.folders {
		if at[i], err = folders.Find(name); err != nil {
			return at, err
		}
	}
	return at, nil
}

// add adds a path with its entries in the three trees, except folders.
func (m *Merge) add(name string) error {
	at, err := m.entriesAt(name)
	if err != nil {
		return err
	}
	for i, e := range at {
		if e.IsTree() {
			at[i] = objects.Entry{}
		}
	}
	m.paths[name] = at
	return nil
}

// addFolderFiles adds a file of each folder that has no file among the paths. Otherwise git would
// believe that the folder was renamed.
func (m *Merge) addFolderFiles() error {
	for _, side := range [...]int{ontoSide, nowSide} {
		has := map[string]bool{}
		for name, s := range m.paths {
			if s[side].Mode == 0 {
				continue
			}
			for dir := path.Dir(name); dir != "." && !has[dir]; dir = path.Dir(dir) {
				has[dir] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.paths)) {
			for dir := path.Dir(name); dir != "." && !has[dir]; dir = path.Dir(dir) {
				has[dir] = true
				file, err := m.anyFile(m.folders[side], dir)
				if err == nil && file != "" {
					err = m.add(file)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// anyFile returns the path of any file in a folder of a tree, or "" if there is no such folder. name is the
// path of the folder.
func (m *Merge) anyFile(tree *objects.CachedTree, name string) (string, error) {
	e, err := tree.Find(name)
	if err != nil {
		return "", err
	}
	if !e.IsTree() {
		return "", nil
	}
	for e.IsTree() {
		entries, err := m.place.Objects.Tree(e.ID)
		if err != nil {
			return "", err
		}
		if len(entries) == 0 {
			return "", nil
		}
		e = entries[0]
		name += "/" + e.Name
	}
	return name, nil
}

// run lets git merge and parses the result.
func (m *Merge) run(ctx context.Context) (err error) {
	trees, err := m.writeCommits(ctx)
	if err != nil {
		return err
	}
	if m.attributes, err = m.place.Work.Merging(ctx, m.trees[ontoSide], slices.Collect(maps.Keys(m.paths))); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.attributes.Close()) }()
	git, err := m.place.Repo.PrivateGit()
	if err != nil {
		return err
	}
	out, err := git.With("GIT_WORK_TREE="+m.attributes.Folder()).Run(ctx, m.attributes.Folder(), nil, "-c", "merge.conflictStyle=diff3", "-c", "merge.renames="+strconv.FormatBool(m.renames),
		"merge-tree", "--write-tree", "-z", "--messages", m.commits[ontoSide], m.commits[nowSide])
	if err != nil && program.ExitStatus(err) != 1 { // 1: there are conflicts
		return err
	}
	if err := m.parseOutput(string(out)); err != nil {
		return err
	}
	made, err := m.place.Objects.Differences(ctx, trees[ontoSide], m.merged)
	m.edits = objects.Updates(made, nil)
	return err
}

// writeCommits writes a commit of each side, with only the paths that git merges. The first is the
// parent of the others. It returns their trees.
func (m *Merge) writeCommits(ctx context.Context) (trees [3]plumbing.Hash, err error) {
	for i, name := range []string{"before", "onto", "change"} {
		if trees[i], err = m.writeTree(ctx, i); err != nil {
			return trees, err
		}
		commit := object.Commit{Message: name + "\n", TreeHash: trees[i]}
		if i > 0 {
			commit.ParentHashes = []plumbing.Hash{plumbing.NewHash(m.commits[oldSide])}
		}
		text, err := objects.EncodeObject(commit.Encode)
		if err != nil {
			return trees, err
		}
		id, err := m.place.Objects.WriteBytes(plumbing.CommitObject, text)
		if err != nil {
			return trees, err
		}
		m.commits[i] = id.String()
	}
	return trees, nil
}

// writeTree writes the tree of a side, with only the paths that git merges.
func (m *Merge) writeTree(ctx context.Context, side int) (plumbing.Hash, error) {
	var edits []index.Entry
	for name, s := range m.paths {
		edits = append(edits, s[side].At(name))
	}
	if err := m.place.Objects.OwnFiles(ctx, edits); err != nil {
		return plumbing.ZeroHash, err
	}
	return m.place.Objects.Apply(plumbing.ZeroHash, edits)
}

// gitReport is git's report about a path: the mode in each index stage, and by kind of message the
// paths in it.
type gitReport struct {
	modes [4]uint32
	kinds map[string][]string
}

// parseOutput parses the output of merge-tree -z: the tree, the stages in conflict, and messages.
func (m *Merge) parseOutput(out string) error {
	fields := strings.Split(out, "\x00")
	next := func() (field string) {
		if len(fields) > 0 {
			field, fields = fields[0], fields[1:]
		}
		return field
	}
	m.merged = plumbing.NewHash(next())
	all := map[string]*gitReport{}
	at := func(name string) *gitReport {
		name = m.pathBeforeConflict(name)
		if all[name] == nil {
			all[name] = &gitReport{kinds: map[string][]string{}}
		}
		return all[name]
	}
	for field := next(); field != ""; field = next() {
		stage, name, _ := strings.Cut(field, "\t")
		var mode uint32
		var id string
		var n int
		if _, err := fmt.Sscanf(stage, "%o %s %d", &mode, &id, &n); err != nil || n < 1 || n > 3 {
			return fmt.Errorf("read what git merged: %q is not understood", field)
		}
		at(name).modes[n] = mode
	}
	for len(fields) > 1 {
		n, err := strconv.Atoi(next())
		if err != nil || n < 0 || n+2 > len(fields) {
			return errors.New("read what git merged: a message is not understood")
		}
		names, kind := fields[:n], fields[n]
		fields = fields[n+2:]
		for _, name := range names {
			at(name).kinds[kind] = names
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if why := m.conflictReason(name, all[name]); why != "" {
			m.Conflicts = append(m.Conflicts, Conflict{Path: name, Why: why})
		}
	}
	return nil
}

const (
	addedTwice = "added here and on %s, each in another way"
	sameLines  = "both changed the same lines"
)

// conflictReason returns the reason why a path is in conflict, or "" if it is not.
func (m *Merge) conflictReason(name string, t *gitReport) string {
	names := func(kind string) []string { return t.kinds["CONFLICT ("+kind+")"] }
	if driver := m.attributes.Driver(name); driver != "" && t.kinds["Auto-merging"] != nil {
		return fmt.Sprintf("both changed it, and agent-ci does not run its merge driver %q", driver)
	}
	old, onto, here := t.modes[1], t.modes[2], t.modes[3]
	plain := func(mode uint32) bool { return mode == 0 || mode == index.Regular || mode == index.Executable }
	// git lists the paths of these messages in this order: the old path and those on onto and here; the new path and the
	// old one; the suggested path and the added one.
	split, deleted, moved := names("rename/rename"), names("rename/delete"), names("directory rename suggested")
	switch {
	case old == 0 && onto == 0 && here == 0:
		return ""
	case names("file/directory") != nil && here != 0:
		return "it is a folder on " + m.ontoName
	case names("file/directory") != nil && old == 0:
		return fmt.Sprintf("it is a file on %s, and a folder here", m.ontoName)
	case len(split) == 3:
		return fmt.Sprintf("%q is renamed to %q here, and to %q on %s", split[0], split[2], split[1], m.ontoName)
	case len(deleted) == 2 && here != 0:
		return fmt.Sprintf("%q is renamed to %q here, and deleted on %s", deleted[1], deleted[0], m.ontoName)
	case len(deleted) == 2:
		return fmt.Sprintf("%q is deleted here, and renamed to %q on %s", deleted[1], deleted[0], m.ontoName)
	case len(moved) == 2 && here != 0:
		return fmt.Sprintf("%q is added here, and its folder is renamed on %s", moved[1], m.ontoName)
	case len(moved) == 2:
		return fmt.Sprintf("%q is added on %s, and its folder is renamed here", moved[1], m.ontoName)
	case !plain(cmp.Or(old, index.Regular)) || !plain(onto) || !plain(here):
		return "both changed it, and it is a link or a submodule on one side"
	case onto == 0:
		return "changed here and deleted on " + m.ontoName
	case here == 0:
		return "deleted here and changed on " + m.ontoName
	case names("binary") != nil:
		return "both changed it, and it is binary"
	case old == 0:
		return fmt.Sprintf(addedTwice, m.ontoName)
	}
	return sameLines
}

// MarkConflicts replaces git's conflict markers by those of labels. A conflicting file without
// markers becomes onto's version.
func (m *Merge) MarkConflicts(labels Labels) error {
	for i := range m.Conflicts {
		c := &m.Conflicts[i]
		at := slices.IndexFunc(m.edits, func(e index.Entry) bool { return e.Path == c.Path })
		if at >= 0 && (c.Why == sameLines || c.Why == fmt.Sprintf(addedTwice, m.ontoName)) {
			text, err := m.place.Objects.BlobBytes(m.edits[at].ID, maxMarkedBytes)
			if err != nil && !errors.As(err, new(*objects.TooLargeError)) {
				return err
			}
			marked, found := labels.relabel(string(text))
			if c.Marked = found; found {
				if m.edits[at].ID, err = m.place.Objects.WriteBytes(plumbing.BlobObject, []byte(marked)); err != nil {
					return err
				}
			}
		}
	}
	m.edits = slices.DeleteFunc(m.edits, func(e index.Entry) bool {
		name := m.pathBeforeConflict(e.Path)
		return slices.ContainsFunc(m.Conflicts, func(c Conflict) bool { return c.Path == name && !c.Marked })
	})
	m.dropBlocked()
	return nil
}

// dropBlocked drops edits that a conflicting path blocks, because that path stays as in onto. It
// may be a file where the edit needs a folder, or a folder where the edit needs a file.
func (m *Merge) dropBlocked() {
	kept := slices.DeleteFunc(slices.Clone(m.Conflicts), func(c Conflict) bool { return c.Marked })
	m.edits = slices.DeleteFunc(m.edits, func(e index.Entry) bool {
		i := slices.IndexFunc(kept, func(c Conflict) bool {
			return e.Path != c.Path && pathname.Overlap(e.Path, c.Path)
		})
		if i < 0 || e.Mode == 0 {
			return false
		}
		m.Conflicts = append(m.Conflicts, Conflict{Path: e.Path, Why: fmt.Sprintf("%q is in its way on %s", kept[i].Path, m.ontoName)})
		return true
	})
	slices.SortFunc(m.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
}

// pathBeforeConflict returns the path that a file had before git renamed it in a conflict.
func (m *Merge) pathBeforeConflict(name string) string {
	for _, commit := range m.commits {
		name, _, _ = strings.Cut(name, "~"+commit)
	}
	return name
}

// maxMarkedBytes is the largest size of a file that gets markers, in bytes.
const maxMarkedBytes = 4 << 20
