package team

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/judge"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// mergeState says whether the change in a child's copy was merged.
type mergeState int

const (
	unmerged   mergeState = iota // not tried yet
	merged                       // merged
	conflicted                   // the last merge failed with conflicts
)

// Unmerged returns the IDs of completed agents whose changes nobody has tried to merge. ids limits them to these IDs or
// names; empty means all. After a replayed wait, it returns the agents that the recorded wait merged.
func (m *member) Unmerged(ids []string) (all []string) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	defer func() { m.recordedMerges = nil }()
	for _, c := range m.team.children {
		isWanted := len(ids) == 0 || slices.Contains(ids, c.id) || slices.Contains(ids, c.name)
		if m.recordedMerges != nil {
			isWanted = slices.Contains(m.recordedMerges, c.id)
		}
		isOpenCopy := c.starter == m && !c.closed && c.place != nil
		isReady := c.status.State == agents.Completed && c.mergeState == unmerged
		if isWanted && isOpenCopy && isReady {
			all = append(all, c.id)
		}
	}
	return all
}

// Merge merges an agent's change into the caller's tree. On conflicts it changes nothing, and its result describes
// them.
func (m *member) Merge(ctx context.Context, id string) (tools.Result, error) {
	c, err := m.requireMergeable(id)
	if err != nil {
		return tools.Result{}, err
	}
	m.team.mergeLock.Lock()
	defer m.team.mergeLock.Unlock()
	state, err := m.stateOfCopy(ctx, c)
	if err != nil {
		return tools.Result{}, err
	}
	mergedChange, err := m.mergeChild(ctx, c, state.mergeTree)
	if conflict, isConflict := errors.AsType[*gitops.MergeError](err); isConflict {
		m.settleMerge(c, conflicted)
		return m.describeConflict(c, state.allChanges.Tree, conflict), nil
	}
	if err != nil {
		return tools.Result{}, err
	}
	result := describeMerge(c, mergedChange, state)
	c.mergedState = state.allChanges
	m.settleMerge(c, merged)
	return result, nil
}

// settleMerge sets the merge state of a child.
func (m *member) settleMerge(c *child, state mergeState) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c.mergeState = state
}

// requireMergeable returns the child with this ID or name, or an error for the model if its change cannot be merged now.
func (m *member) requireMergeable(id string) (*child, error) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c, err := m.findForModel(id)
	switch {
	case err != nil:
		return nil, err
	case c.starter != m:
		return nil, agents.Refusef("%s was started by another agent, which takes its change over.", c.id)
	case c.place == nil:
		return nil, agents.Refusef("%s has no copy of the tree, and so no change to take over.", c.id)
	case c.closed:
		return nil, agents.Refusef("%s is closed. Open it by resume_agent first.", c.id)
	case c.stopTurn != nil:
		return nil, agents.Refusef("%s still works. Wait for it, or interrupt it, before you take its change over.", c.id)
	}
	return c, nil
}

// copyState is the state of a child's copy, prepared for a merge.
type copyState struct {
	allChanges  *gitops.ChangeSet // all changes since the base of the run
	mergeTree   gitops.Tree       // the copy with only the permitted part of the child's change
	excluded    []string          // sorted paths of the part that is not permitted
	unmergeable []string          // paths that git cannot record, such as nested repositories and files too large
}

// stateOfCopy returns the state of a child's copy and the part of its change that may be merged. The change counts
// from the child's start or last merge.
func (m *member) stateOfCopy(ctx context.Context, c *child) (state copyState, err error) {
	o := m.team.options
	if state.allChanges, err = m.team.changesIn(ctx, *c.place); err != nil {
		return state, err
	}
	checkout := o.Workspace.Checkout()
	change, err := checkout.ChangeBetween(ctx, gitops.Base{Tree: c.mergedState.Tree}, state.allChanges.Tree)
	if err != nil {
		return state, err
	}
	verdict, err := judge.Verdict(o.Job.Policy, change, nil)
	if err != nil {
		return state, err
	}
	excluded := excludedFiles(change.Files, func(path string) bool { return !c.mayChange(path) || verdict.ExcludesPath(path) })
	state.excluded = slices.Sorted(maps.Keys(excluded))
	for _, p := range state.allChanges.Problems {
		isInChange := slices.ContainsFunc(state.allChanges.Files, func(f changeset.File) bool { return f.Path == p.Path })
		isOld := slices.ContainsFunc(c.mergedState.Problems, func(old gitops.Problem) bool { return old == p })
		if !isInChange && !isOld {
			state.unmergeable = append(state.unmergeable, p.Path)
		}
	}
	state.mergeTree, err = checkout.PartialTree(ctx, c.mergedState.Tree, state.allChanges.Tree, func(path string) bool { return !excluded[path] })
	return state, err
}

// changesIn returns the changes in a copy since the base of the run.
func (t *team) changesIn(ctx context.Context, place confine.Place) (*gitops.ChangeSet, error) {
	copied, err := t.options.Sandboxes.OpenLayer(ctx, place)
	if err != nil {
		return nil, err
	}
	state, err := t.options.Workspace.ChangesIn(ctx, copied)
	return state, errors.Join(err, copied.Close())
}

// excludedFiles returns the paths of a change that must be left out: the refused paths, and new files that collide
// with an existing refused file. Such a new file has the path of the refused file's folder, or is below its path.
func excludedFiles(files []changeset.File, refused func(path string) bool) map[string]bool {
	excluded := map[string]bool{}
	remaining, foldersOfRemaining := map[string]bool{}, map[string]bool{} // the refused files that stay, and the folders above them
	for _, f := range files {
		if !refused(f.Path) {
			continue
		}
		excluded[f.Path] = true
		existed := f.OldMode != ""
		if !existed {
			continue
		}
		remaining[f.Path] = true
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			foldersOfRemaining[dir] = true
		}
	}
	for _, f := range files {
		collides := foldersOfRemaining[f.Path]
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			collides = collides || remaining[dir]
		}
		isDeleted := f.NewMode == ""
		if collides && !isDeleted {
			excluded[f.Path] = true
		}
	}
	return excluded
}

// mergeChild merges a child's change into the agent's tree, while the agent's commands are paused. tree is the child's
// copy with the permitted part of its change. It returns the change of the agent's tree.
func (m *member) mergeChild(ctx context.Context, c *child, tree gitops.Tree) (mergedChange *gitops.ChangeSet, err error) {
	o, box := m.team.options, m.agent.Sandbox()
	if box == nil {
		return nil, agents.Refusef("Nothing can be taken over now.")
	}
	if _, err := box.Tree(); err != nil { // opens the sandbox if it is not open yet
		return nil, err
	}
	err = o.Sandboxes.WhilePaused(box, func() error {
		into, err := o.Sandboxes.LayerOf(box, m.agent.Place())
		if err != nil {
			return err
		}
		mergedChange, err = o.Workspace.MergeCopy(ctx, into, m.agent.MergeSaver(), c.mergedState.Tree, tree)
		return errors.Join(err, into.Close())
	})
	return mergedChange, err
}

// maxListedFiles is the maximum number of files listed to the model.
const maxListedFiles = 50

// describeMerge returns the tool result for a successful merge.
func describeMerge(c *child, mergedChange *gitops.ChangeSet, state copyState) tools.Result {
	var s strings.Builder
	var files []map[string]any
	fmt.Fprintf(&s, "The change of %s is taken over: ", c.id)
	if len(mergedChange.Files) == 0 {
		s.WriteString("there is none.")
	} else {
		fmt.Fprintf(&s, "%d files.", len(mergedChange.Files))
	}
	for i, f := range mergedChange.Files {
		files = append(files, map[string]any{"op": string(f.Status), "path": f.Path})
		if i < maxListedFiles {
			fmt.Fprintf(&s, "\n%s %s", f.Status, clip.Visible(f.Path, 500))
		}
	}
	if len(mergedChange.Files) > maxListedFiles {
		fmt.Fprintf(&s, "\nand %d more", len(mergedChange.Files)-maxListedFiles)
	}
	for _, omitted := range []struct {
		reason string
		paths  []string
	}{{"it may not change these", state.excluded}, {"these can be no part of a change", state.unmergeable}} {
		if len(omitted.paths) > 0 {
			fmt.Fprintf(&s, "\nLeft out, as %s: %s", omitted.reason, clip.Visible(strings.Join(omitted.paths[:min(len(omitted.paths), maxListedFiles)], ", "), 5000))
		}
	}
	return tools.Result{Output: s.String(), Detail: map[string]any{"agent": c.id, "files": files, "left_out": slices.Concat(state.excluded, state.unmergeable)}}
}

// maxConflictBytes is the maximum size of a saved conflicting file, in bytes.
const maxConflictBytes = 1 << 20

// describeConflict returns the tool result for a merge with conflicts. It saves the child's versions of the files where
// the agent can read them.
func (m *member) describeConflict(c *child, tree gitops.Tree, conflict *gitops.MergeError) tools.Result {
	o := m.team.options
	var s strings.Builder
	var paths []string
	fmt.Fprintf(&s, "Nothing of the change of %s is taken over, since it conflicts with yours:", c.id)
	for i, conflicting := range conflict.Conflicts {
		paths = append(paths, conflicting.Path)
		if i >= maxListedFiles {
			continue
		}
		fmt.Fprintf(&s, "\n- %s: %s", clip.Visible(conflicting.Path, 500), clip.Visible(conflicting.Why, 500))
		if saved := m.saveConflicting(c, tree, conflicting.Path); saved != "" {
			fmt.Fprintf(&s, "; as %s has it: %s", c.name, o.Record.Join(saved))
		}
	}
	s.WriteString("\nMake your side fit, or tell the agent what to change, and call merge_agent again; a change that is not taken over in the end is dropped.")
	return tools.Result{Output: s.String(), Failed: true, Detail: map[string]any{"agent": c.id, "conflicts": paths}}
}

// saveConflicting saves the child's version of a file where the agent can read it. It returns the saved file's path,
// relative to the run directory, or "" on failure.
func (m *member) saveConflicting(c *child, tree gitops.Tree, name string) string {
	o := m.team.options
	content, err := o.Workspace.Checkout().ReadFile(tree, name, maxConflictBytes)
	if err != nil {
		return ""
	}
	saved := path.Join(record.OutputsFolder, savedName(c, name))
	if o.Record.Write(saved, []byte(o.Record.Redact(strings.ToValidUTF8(string(content), "\uFFFD")))) != nil {
		return ""
	}
	return saved
}

// maxSavedName is how many bytes of the original name a saved file's name has.
const maxSavedName = 100

// savedName returns the name of a saved file: the child, a hash of the path, and the end of the file name.
func savedName(c *child, name string) string {
	sum := sha256.Sum256([]byte(name))
	base := sanitizeName(path.Base(name))
	return fmt.Sprintf("%s-%x-%s", scratchOf(c), sum[:4], base[max(0, len(base)-maxSavedName):])
}
