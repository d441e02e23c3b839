package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

var ErrOtherCheckout = errors.New("this is not the checkout that was worked in")

// mark is what a later process must know of a checkout to go on in it.
type mark struct {
	Version   int         `json:"version"`
	Root      string      `json:"root"`
	Device    uint32      `json:"device"`
	Inode     uint32      `json:"inode"`
	Head      string      `json:"head"` // the content of HEAD when it was opened
	Branch    string      `json:"branch"`
	Commit    string      `json:"commit"`
	Base      Base        `json:"base"`
	Locked    []string    `json:"locked"`    // lock files that were there
	Untracked []untracked `json:"untracked"` // before the first turn
}

type untracked struct {
	Path []byte      `json:"path"` // as JSON has it: base64, since a path need not be Unicode
	Dir  bool        `json:"dir,omitempty"`
	Seen bool        `json:"seen,omitempty"` // git shows it, and it was there before setup commands
	Stat *index.Stat `json:"stat,omitempty"` // of a file or link in the checkout; marks of version 1 have none
}

// Mark is what Resume needs to go on with the checkout in another process.
func (c *Checkout) Mark(snap *Snapshot) ([]byte, error) {
	device, inode, err := identity(c.repo.Root)
	if err != nil {
		return nil, fmt.Errorf("mark the checkout: %w", err)
	}
	m := mark{
		Version: 2, Root: c.repo.Root, Device: device, Inode: inode, Base: c.base, Locked: c.locked,
		Head: c.start.head, Branch: c.start.branch, Commit: c.start.commit.String(),
	}
	for path, dir := range snap.untracked {
		_, seen := slices.BinarySearch(snap.before, path)
		one := untracked{Path: []byte(path), Dir: dir, Seen: seen}
		if stat, noted := snap.stats[path]; noted {
			one.Stat = &stat
		}
		m.Untracked = append(m.Untracked, one)
	}
	slices.SortFunc(m.Untracked, func(a, b untracked) int { return slices.Compare(a.Path, b.Path) })
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("mark the checkout: %w", err)
	}
	return raw, nil
}

// Resume goes on where the process that made the mark was: the checkout counts
// as opened where HEAD stood then, on the same base, and what was not tracked
// then is nobody's change. It is ErrOtherCheckout for another work tree, also
// for a copy.
func (c *Checkout) Resume(ctx context.Context, raw []byte) (*Snapshot, error) {
	var m mark
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("go on with the checkout: %w", err)
	}
	device, inode, err := identity(c.repo.Root)
	if err != nil {
		return nil, fmt.Errorf("go on with the checkout: %w", err)
	}
	if m.Root != c.repo.Root || m.Device != device || m.Inode != inode {
		return nil, ErrOtherCheckout
	}
	base, err := c.baseAt(m.Base.Branch, plumbing.NewHash(m.Base.SHA))
	if err != nil {
		return nil, fmt.Errorf("go on with the checkout: %w", err)
	}
	commit, err := c.objects.Commit(plumbing.NewHash(m.Commit))
	if err != nil {
		return nil, fmt.Errorf("go on with the checkout: %w", err)
	}
	c.base, c.locked, c.moved = base, m.Locked, m.Base.SHA != m.Commit
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	snap.untracked, snap.stats, snap.before = map[string]bool{}, map[string]index.Stat{}, nil
	for _, u := range m.Untracked {
		snap.untracked[string(u.Path)] = u.Dir
		if u.Seen {
			snap.before = append(snap.before, string(u.Path))
		}
		if u.Stat != nil {
			snap.stats[string(u.Path)] = *u.Stat
		}
	}
	c.start = position{head: m.Head, branch: m.Branch, commit: plumbing.NewHash(m.Commit), tree: commit.TreeHash, index: snap.index}
	if !c.moved {
		return snap, nil
	}
	c.onBase = &position{head: base.SHA, commit: plumbing.NewHash(base.SHA), tree: base.Tree.hash(), index: snap.index}
	c.start.index, err = c.indexOf(ctx, Tree(commit.TreeHash.String()))
	return snap, err
}

// ToBase puts a checkout that was just opened on the base of a mark where it stands as it did before
// that base was checked out: the process that made the mark had put it back there, and died. Anywhere
// else it stays.
func (c *Checkout) ToBase(ctx context.Context, raw []byte) error {
	var m mark
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("go on with the checkout: %w", err)
	}
	if m.Root != c.repo.Root || m.Base.SHA == m.Commit || c.start.head != m.Head || c.start.commit.String() != m.Commit {
		return nil
	}
	_, err := c.SetBase(ctx, BaseSpec{Branch: m.Base.Branch, SHA: m.Base.SHA})
	return err
}

// identity tells one folder from all others on this machine.
func identity(root string) (device, inode uint32, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return 0, 0, err
	}
	stat := index.StatOf(info)
	return stat.Dev, stat.Ino, nil
}
