package team

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/judge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// mergeState is what became of the change of a child that worked on a copy.
type mergeState int

const (
	unmerged   mergeState = iota // nothing yet
	merged                       // it was taken over
	conflicted                   // it was refused
)

// hasUnmerged says whether a child may have a change that was not taken over. The caller has the lock.
func (c *child) hasUnmerged() bool { return c.place != nil && c.merged != merged }

// Unmerged is, of agents, those that have completed and whose changes were neither taken over nor
// refused yet.
func (m *Member) Unmerged(ids []string) (all []string) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	defer func() { m.merges = nil }()
	for _, c := range m.team.children {
		wanted := len(ids) == 0 || slices.Contains(ids, c.id) || slices.Contains(ids, c.name)
		if m.merges != nil {
			wanted = slices.Contains(m.merges, c.id)
		}
		if wanted && c.by == m && !c.closed && c.place != nil && c.status.State == agents.Completed && c.merged == unmerged {
			all = append(all, c.id)
		}
	}
	return all
}

// Merge takes the change of an agent over into the tree of the one that calls.
func (m *Member) Merge(ctx context.Context, id string) (tools.Result, error) {
	c, err := m.mergeable(id)
	if err != nil {
		return tools.Result{}, err
	}
	m.team.merging.Lock()
	defer m.team.merging.Unlock()
	now, leftOut, err := m.changeOf(ctx, c)
	if err != nil {
		return tools.Result{}, err
	}
	taken, err := m.take(ctx, c, now.part)
	if conflict := (*gitops.MergeError)(nil); errors.As(err, &conflict) {
		m.settleMerge(c, conflicted)
		return m.refuse(ctx, c, now.whole, conflict)
	}
	if err != nil {
		return tools.Result{}, err
	}
	c.base = now.whole
	m.settleMerge(c, merged)
	return takenOver(c, taken, leftOut), nil
}

func (m *Member) settleMerge(c *child, state mergeState) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c.merged = state
}

// mergeable is a child whose change can be taken over now.
func (m *Member) mergeable(id string) (*child, error) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c, err := m.find(id)
	switch {
	case err != nil:
		return nil, err
	case c.by != m:
		return nil, agents.Refusef("%s was started by another agent, which takes its change over.", c.id)
	case c.place == nil:
		return nil, agents.Refusef("%s has no copy of the tree, and so no change to take over.", c.id)
	case c.closed:
		return nil, agents.Refusef("%s is closed, and its copy of the tree is gone.", c.id)
	case c.stop != nil:
		return nil, agents.Refusef("%s still works. Wait for it, or interrupt it, before you take its change over.", c.id)
	}
	return c, nil
}

// trees are those of a copy: as it is, and with what of its change is taken over.
type trees struct{ whole, part gitops.Tree }

// changeOf is the change of a child since its copy began, and which paths of it are left out.
func (m *Member) changeOf(ctx context.Context, c *child) (t trees, leftOut []string, err error) {
	o := m.team.options
	at, err := o.Sandboxes.OpenLayer(ctx, *c.place)
	if err != nil {
		return t, nil, err
	}
	whole, err := o.Workspace.ChangesIn(ctx, at)
	if err = errors.Join(err, at.Tree.Close(), at.Upper.Close()); err != nil {
		return t, nil, err
	}
	checkout := o.Workspace.Checkout()
	change, err := checkout.Between(ctx, gitops.Base{Tree: c.base}, whole.Tree)
	if err != nil {
		return t, nil, err
	}
	verdict, err := judge.Verdict(o.Job.Policy, change, nil)
	if err != nil {
		return t, nil, err
	}
	for _, f := range change.Files {
		if !c.mine(f.Path) || verdict.Refuses(f.Path) {
			leftOut = append(leftOut, f.Path)
		}
	}
	part, err := checkout.Part(ctx, c.base, whole.Tree, func(path string) bool { return !slices.Contains(leftOut, path) })
	return trees{whole.Tree, part}, leftOut, err
}

// take merges the change of a child into the tree of the agent, while its commands stand still.
func (m *Member) take(ctx context.Context, c *child, now gitops.Tree) (taken *gitops.ChangeSet, err error) {
	o, box := m.team.options, m.agent.Sandbox()
	if box == nil {
		return nil, agents.Refusef("Nothing can be taken over now.")
	}
	if _, err := box.Tree(); err != nil { // which opens it
		return nil, err
	}
	err = box.Paused(func() error {
		into, err := o.Sandboxes.LayerOf(box, m.agent.Place())
		if err != nil {
			return err
		}
		taken, err = o.Workspace.TakeOver(ctx, into, m.agent.Own(), c.base, now)
		return errors.Join(err, into.Tree.Close(), into.Upper.Close())
	})
	return taken, err
}

// mostFiles is how many files of a change the model is told of.
const mostFiles = 50

// takenOver tells what a merge changed.
func takenOver(c *child, taken *gitops.ChangeSet, leftOut []string) tools.Result {
	var s strings.Builder
	var files []map[string]any
	fmt.Fprintf(&s, "The change of %s is taken over: ", c.id)
	if len(taken.Files) == 0 {
		s.WriteString("there is none.")
	} else {
		fmt.Fprintf(&s, "%d files.", len(taken.Files))
	}
	for i, f := range taken.Files {
		files = append(files, map[string]any{"op": string(f.Status), "path": f.Path})
		if i < mostFiles {
			fmt.Fprintf(&s, "\n%s %s", f.Status, tools.Visible(f.Path, 500))
		}
	}
	if len(taken.Files) > mostFiles {
		fmt.Fprintf(&s, "\nand %d more", len(taken.Files)-mostFiles)
	}
	if len(leftOut) > 0 {
		fmt.Fprintf(&s, "\nLeft out, as it may not change these: %s", tools.Visible(strings.Join(leftOut[:min(len(leftOut), mostFiles)], ", "), 5000))
	}
	return tools.Result{Output: s.String(), Detail: map[string]any{"agent": c.id, "files": files, "left_out": leftOut}}
}

// mostShown is how many bytes of a file the agent is shown that conflicts, in the form that a child gave it.
const mostShown = 1 << 20

// refuse tells which files conflict, and keeps them as the child has them where the agent reads them.
func (m *Member) refuse(_ context.Context, c *child, whole gitops.Tree, conflict *gitops.MergeError) (tools.Result, error) {
	o := m.team.options
	var s strings.Builder
	var paths []string
	fmt.Fprintf(&s, "Nothing of the change of %s is taken over, since it conflicts with yours:", c.id)
	for i, at := range conflict.Conflicts {
		paths = append(paths, at.Path)
		if i >= mostFiles {
			continue
		}
		fmt.Fprintf(&s, "\n- %s: %s", tools.Visible(at.Path, 500), tools.Visible(at.Why, 500))
		if kept := m.keep(c, whole, at.Path); kept != "" {
			fmt.Fprintf(&s, "; as %s has it: %s", c.name, o.Record.Join(kept))
		}
	}
	s.WriteString("\nMake your side fit, or tell the agent what to change, and call merge_agent again; or close the agent, which drops its change.")
	return tools.Result{Output: s.String(), Failed: true, Detail: map[string]any{"agent": c.id, "conflicts": paths}}, nil
}

// keep puts a file of a child where the agent can read it; empty where that can't be.
func (m *Member) keep(c *child, whole gitops.Tree, name string) string {
	o := m.team.options
	content, err := o.Workspace.Checkout().FileIn(whole, name, mostShown)
	if err != nil {
		return ""
	}
	kept := path.Join(record.OutputsFolder, scratchOf(c)+"-"+strings.ReplaceAll(name, "/", "-"))
	if o.Record.Write(kept, []byte(o.Record.Redact(strings.ToValidUTF8(string(content), "\uFFFD")))) != nil {
		return ""
	}
	return kept
}
