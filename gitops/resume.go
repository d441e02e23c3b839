package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/trees"
	"github.com/agent-ci/agent-ci/policy/plainjson"
)

var ErrOtherCheckout = errors.New("this is not the checkout that was worked in")

// resumeState is the state that a later process needs to resume in a checkout.
type resumeState struct {
	Version   int              `json:"version"`
	Root      string           `json:"root"`
	Device    uint32           `json:"device"`
	Inode     uint32           `json:"inode"`
	Head      string           `json:"head"` // the content of HEAD when it was opened
	Branch    string           `json:"branch"`
	Commit    string           `json:"commit"`
	Base      Base             `json:"base"`
	Untracked []untrackedEntry `json:"untracked"` // in the checkout, before the agent's first turn
	InTree    []untrackedEntry `json:"in_tree"`   // in the work tree, if it is on another commit than the checkout
}

type untrackedEntry struct {
	Path []byte `json:"path"` // base64 in JSON, because a path need not be valid Unicode
	untrackedPath
}

// Mark returns the state that Resume needs in another process: the position of the checkout, and
// the untracked files of two snapshots. snap is the snapshot of the checkout, inTree the one of the
// work tree.
func (c *Checkout) Mark(snap, inTree *Snapshot) ([]byte, error) {
	device, inode, err := fileIdentity(c.repo.Root)
	if err != nil {
		return nil, fmt.Errorf("mark the checkout: %w", err)
	}
	start := c.StartCommit()
	m := resumeState{
		Version: 2, Root: c.repo.Root, Device: device, Inode: inode, Base: c.Base(),
		Head: c.startHead, Branch: start.Branch, Commit: start.SHA,
	}
	m.Untracked = snap.untrackedList()
	if c.Base().Tree != start.Tree {
		m.InTree = inTree.untrackedList()
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("mark the checkout: %w", err)
	}
	return raw, nil
}

// untrackedList returns the untracked files and folders, sorted by path.
func (s *Snapshot) untrackedList() (all []untrackedEntry) {
	for _, path := range slices.Sorted(maps.Keys(s.untracked)) {
		all = append(all, untrackedEntry{[]byte(path), s.untracked[path]})
	}
	return all
}

// withUntracked returns a snapshot with the index of s and the untracked files of a mark.
func (s *Snapshot) withUntracked(all []untrackedEntry) *Snapshot {
	was := &Snapshot{index: s.index, untracked: map[string]untrackedPath{}}
	for _, u := range all {
		was.untracked[string(u.Path)] = u.untrackedPath
	}
	return was
}

// Resume continues from the mark of an earlier process. It restores the base, the original HEAD,
// and the list of untracked files that do not count as changes. It returns the snapshots of the
// checkout and of the work tree, without reading the files of the work tree. It returns
// ErrOtherCheckout for another checkout, including a copy of the same one.
func (c *Checkout) Resume(ctx context.Context, raw []byte) (snap, inTree *Snapshot, err error) {
	if snap, inTree, err = c.resume(ctx, raw); err != nil && !errors.Is(err, ErrOtherCheckout) {
		return nil, nil, fmt.Errorf("go on with the checkout: %w", err)
	}
	return snap, inTree, err
}

// resume sets the base and the position of c from the mark. It returns the snapshots that were
// given to [Checkout.Mark], with the current index. If the base has the same tree as the start
// commit, both are the same snapshot.
func (c *Checkout) resume(ctx context.Context, raw []byte) (snap, inTree *Snapshot, err error) {
	var m resumeState
	if err := plainjson.Unmarshal(raw, &m); err != nil {
		return nil, nil, err
	}
	device, inode, err := fileIdentity(c.repo.Root)
	if err != nil {
		return nil, nil, err
	}
	if m.Root != c.repo.Root || m.Device != device || m.Inode != inode {
		return nil, nil, ErrOtherCheckout
	}
	if _, err := c.BaseAt(m.Base.Branch, m.Base.SHA); err != nil { // before the start: its error says what to do
		return nil, nil, err
	}
	commit, err := c.objects.Commit(plumbing.NewHash(m.Commit))
	if err != nil {
		return nil, nil, err
	}
	c.setStart(position{head: m.Head, commit: Base{Branch: m.Branch, SHA: commit.Hash.String(), Tree: trees.IDOf(commit.TreeHash)}})
	base, err := c.SetBase(BaseSpec{Branch: m.Base.Branch, SHA: m.Base.SHA})
	if err != nil {
		return nil, nil, err
	}
	now, err := c.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.startIndex = now.index
	snap = now.withUntracked(m.Untracked)
	if base.Tree == c.StartCommit().Tree {
		return snap, snap, nil
	}
	return snap, now.withUntracked(m.InTree), nil
}

// fileIdentity returns the numbers that identify a folder on this machine.
func fileIdentity(root string) (device, inode uint32, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return 0, 0, err
	}
	stat := index.StatOf(info)
	return stat.Dev, stat.Ino, nil
}
