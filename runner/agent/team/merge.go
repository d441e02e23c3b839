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

// mergeState says whether the change in a subagent's copy was merged.
type mergeState int

const (
	unmerged   mergeState = iota // not tried yet
	merged                       // merged
	conflicted                   // the last merge failed with conflicts
)

// Unmerged returns the IDs of completed subagents whose changes nobody has tried to merge. ids limits them to these IDs or
// names; empty means all. After a replayed wait, it returns the subagents that the recorded wait merged.
func (a *teamAgent) Unmerged(ids []string) (all []string) {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	defer func() { a.recordedMerges = nil }()
	for _, s := range a.team.subagents {
		isWanted := len(ids) == 0 || slices.Contains(ids, s.id) || slices.Contains(ids, s.name)
		if a.recordedMerges != nil {
			isWanted = slices.Contains(a.recordedMerges, s.id)
		}
		isOpenCopy := s.starter == a && !s.closed && s.place != nil
		isReady := s.status.State == agents.Completed && s.mergeState == unmerged
		if isWanted && isOpenCopy && isReady {
			all = append(all, s.id)
		}
	}
	return all
}

// Merge merges a subagent's change into the agent's tree. On conflicts it changes nothing, and its result describes
// them.
func (a *teamAgent) Merge(ctx context.Context, id string) (tools.Result, error) {
	s, place, err := a.requireMergeable(id)
	if err != nil {
		return tools.Result{}, err
	}
	a.team.mergeLock.Lock()
	defer a.team.mergeLock.Unlock()
	state, err := s.stateOfCopy(ctx, place)
	if err != nil {
		return tools.Result{}, err
	}
	mergedChange, err := s.mergeIntoStarter(ctx, state.mergeTree)
	if conflict, isConflict := errors.AsType[*gitops.MergeError](err); isConflict {
		s.settleMerge(conflicted)
		return s.describeConflict(state.allChanges.Tree, conflict), nil
	}
	if err != nil {
		return tools.Result{}, err
	}
	s.mergedState = state.allChanges
	s.settleMerge(merged)
	return s.describeMerge(mergedChange, state), nil
}

// settleMerge sets the merge state of the subagent.
func (s *teamAgent) settleMerge(state mergeState) {
	s.team.mu.Lock()
	defer s.team.mu.Unlock()
	s.mergeState = state
}

// requireMergeable returns the subagent with this ID or name and its copy, or an error for the model if its change cannot
// be merged now.
func (a *teamAgent) requireMergeable(id string) (*teamAgent, confine.Place, error) {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	s, err := a.find(id)
	switch {
	case err != nil:
		return nil, confine.Place{}, err
	case s.starter != a:
		return nil, confine.Place{}, agents.Refusef("%s was started by another agent, which takes its change over.", s.id)
	case s.worksOnCopy() && s.closed:
		return nil, confine.Place{}, agents.Refusef("%s is closed. Open it by resume_agent first.", s.id)
	case s.place == nil:
		return nil, confine.Place{}, agents.Refusef("%s has no copy of the tree, and so no change to take over.", s.id)
	case s.stopTurn != nil:
		return nil, confine.Place{}, agents.Refusef("%s still works. Wait for it, or interrupt it, before you take its change over.", s.id)
	}
	return s, *s.place, nil
}

// copyState is the state of a subagent's copy, prepared for a merge.
type copyState struct {
	allChanges  *gitops.ChangeSet // all changes since the base of the run
	mergeTree   gitops.Tree       // the copy with only the permitted part of the subagent's change
	excluded    []string          // sorted paths of the part that is not permitted
	unmergeable []string          // paths that git cannot record, such as nested repositories and files too large
}

// stateOfCopy returns the state of the subagent's copy and the part of its change that may be merged. The change counts
// from the subagent's start or last merge.
func (s *teamAgent) stateOfCopy(ctx context.Context, place confine.Place) (state copyState, err error) {
	o := s.team.options
	if state.allChanges, err = s.team.changesIn(ctx, place); err != nil {
		return state, err
	}
	checkout := o.Workspace.Checkout()
	change, err := checkout.ChangeBetween(ctx, gitops.Base{Tree: s.mergedState.Tree}, state.allChanges.Tree)
	if err != nil {
		return state, err
	}
	verdict, err := judge.Verdict(o.Job.Policy, change, nil)
	if err != nil {
		return state, err
	}
	excluded := excludedFiles(change.Files, func(path string) bool { return !s.mayChange(path) || verdict.ExcludesPath(path) })
	state.excluded = slices.Sorted(maps.Keys(excluded))
	for _, p := range state.allChanges.Problems {
		isInChange := slices.ContainsFunc(state.allChanges.Files, func(f changeset.File) bool { return f.Path == p.Path })
		isOld := slices.Contains(s.mergedState.Problems, p)
		if !isInChange && !isOld {
			state.unmergeable = append(state.unmergeable, p.Path)
		}
	}
	state.mergeTree, err = checkout.PartialTree(ctx, s.mergedState.Tree, state.allChanges.Tree, func(path string) bool { return !excluded[path] })
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

// mergeIntoStarter merges the subagent's change into its starter's tree, while the starter's commands are paused. tree is
// the subagent's copy with the permitted part of its change. It returns the change of the starter's tree.
func (s *teamAgent) mergeIntoStarter(ctx context.Context, tree gitops.Tree) (mergedChange *gitops.ChangeSet, err error) {
	o, starter := s.team.options, s.starter.agent
	box := starter.Sandbox()
	if box == nil {
		return nil, agents.Refusef("Nothing can be taken over now.")
	}
	if _, err := box.Tree(); err != nil { // opens the sandbox if it is not open yet
		return nil, err
	}
	err = o.Sandboxes.WhilePaused(box, func() error {
		into, err := o.Sandboxes.LayerOf(box, starter.Place())
		if err != nil {
			return err
		}
		mergedChange, err = o.Workspace.MergeCopy(ctx, into, starter.MergeSaver(), s.mergedState.Tree, tree)
		return errors.Join(err, into.Close())
	})
	return mergedChange, err
}

// maxListedFiles is the maximum number of files listed to the model.
const maxListedFiles = 50

// describeMerge returns the tool result for a successful merge.
func (s *teamAgent) describeMerge(mergedChange *gitops.ChangeSet, state copyState) tools.Result {
	var text strings.Builder
	var files []map[string]any
	fmt.Fprintf(&text, "The change of %s is taken over: ", s.id)
	if len(mergedChange.Files) == 0 {
		text.WriteString("there is none.")
	} else {
		fmt.Fprintf(&text, "%d files.", len(mergedChange.Files))
	}
	for i, f := range mergedChange.Files {
		files = append(files, map[string]any{"op": string(f.Status), "path": f.Path})
		if i < maxListedFiles {
			fmt.Fprintf(&text, "\n%s %s", f.Status, clip.Visible(f.Path, 500))
		}
	}
	if len(mergedChange.Files) > maxListedFiles {
		fmt.Fprintf(&text, "\nand %d more", len(mergedChange.Files)-maxListedFiles)
	}
	for _, omitted := range []struct {
		reason string
		paths  []string
	}{{"it may not change these", state.excluded}, {"these can be no part of a change", state.unmergeable}} {
		if len(omitted.paths) > 0 {
			fmt.Fprintf(&text, "\nLeft out, as %s: %s", omitted.reason, clip.Visible(strings.Join(omitted.paths[:min(len(omitted.paths), maxListedFiles)], ", "), 5000))
		}
	}
	return tools.Result{Output: text.String(), Detail: map[string]any{"agent": s.id, "files": files, "left_out": slices.Concat(state.excluded, state.unmergeable)}}
}

// maxConflictBytes is the maximum size of a saved conflicting file, in bytes.
const maxConflictBytes = 1 << 20

// describeConflict returns the tool result for a merge with conflicts. It saves the subagent's versions of the files where
// the agent can read them.
func (s *teamAgent) describeConflict(tree gitops.Tree, conflict *gitops.MergeError) tools.Result {
	o := s.team.options
	var text strings.Builder
	var paths []string
	fmt.Fprintf(&text, "Nothing of the change of %s is taken over, since it conflicts with yours:", s.id)
	for i, conflicting := range conflict.Conflicts {
		paths = append(paths, conflicting.Path)
		if i >= maxListedFiles {
			continue
		}
		fmt.Fprintf(&text, "\n- %s: %s", clip.Visible(conflicting.Path, 500), clip.Visible(conflicting.Why, 500))
		if saved := s.saveConflicting(tree, conflicting.Path); saved != "" {
			fmt.Fprintf(&text, "; as %s has it: %s", s.name, o.Record.Join(saved))
		}
	}
	text.WriteString("\nMake your side fit, or tell the agent what to change, and call merge_agent again; a change that is not taken over in the end is dropped.")
	return tools.Result{Output: text.String(), Failed: true, Detail: map[string]any{"agent": s.id, "conflicts": paths}}
}

// saveConflicting saves the subagent's version of a file where the agent can read it. It returns the saved file's path,
// relative to the run directory, or "" on failure.
func (s *teamAgent) saveConflicting(tree gitops.Tree, name string) string {
	o := s.team.options
	content, err := o.Workspace.Checkout().ReadFile(tree, name, maxConflictBytes)
	if err != nil {
		return ""
	}
	saved := path.Join(record.OutputsFolder, s.savedName(name))
	if o.Record.Write(saved, []byte(o.Record.Redact(strings.ToValidUTF8(string(content), "\uFFFD")))) != nil {
		return ""
	}
	return saved
}

// maxSavedName is how many bytes of the original name a saved file's name has.
const maxSavedName = 100

// savedName returns the name of a saved file: the subagent, a hash of the path, and the end of the file name.
func (s *teamAgent) savedName(name string) string {
	sum := sha256.Sum256([]byte(name))
	base := clip.Name(path.Base(name), ".", '-')
	return fmt.Sprintf("%s-%x-%s", s.scratch(), sum[:4], clip.End(base, maxSavedName))
}
